#include "gateway/dtls/identity.h"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "host/linux/files.h"
#include "host/system.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

std::string takeOpensslError() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string text = reason ? reason : "unknown error";
  ERR_clear_error();
  return text;
}

namespace {

constexpr int kValidDays = 36525;                    // 100 years
constexpr size_t kMaxName = 64;                      // RFC 5280 appendix A.1: ub-common-name
constexpr size_t kMaxPemBytes = 64 << 10;            // far above any key or certificate
constexpr const char* kCurve = SN_X9_62_prime256v1;  // P-256; docs/protocol.md section 2
constexpr size_t kSerialBytes = 16;                  // RFC 5280 section 4.1.2.2: at most 20

[[noreturn]] void fail(const std::string& path, const std::string& trouble,
                       const std::string& remedy) {
  ERR_clear_error();
  throw IdentityError(path + ": " + trouble + "; " + remedy);
}

constexpr const char* kPathRemedy = "make a key with 'braidctl keygen' or correct the path";

// Reads the whole file into a BIO. `secret`: what it is called if it must be private, which is
// checked on the open file, not on its name; nullptr: it need not be.
BioHandle readFile(const std::string& path, const char* secret = nullptr,
                   const std::string& credentials = {}, const char* remedy = kPathRemedy) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0)
    fail(path, std::string("cannot be opened: ") + std::strerror(errno),
         errno == EACCES && secret ? "the daemon's user must own it, and a folder that the daemon "
                                     "did not know at its start needs a restart"
                                   : remedy);
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) fail(path, "is not a file", remedy);
  if (secret && !isPrivate(file.get(), info, path, credentials))
    fail(path, std::string("the ") + secret + " can be used by others than its owner",
         "run: chmod 600 " + path);
  if (static_cast<size_t>(info.st_size) > kMaxPemBytes)
    fail(path, "is too long for a key or a certificate", remedy);
  BioHandle bio(BIO_new(BIO_s_secmem()));
  if (!bio) fail(path, "there is no memory for it: " + takeOpensslError(), "free memory");
  std::array<char, 4096> chunk;
  ssize_t n;
  do {
    n = read(file.get(), chunk.data(), chunk.size());
    if (n > 0) BIO_write(bio.get(), chunk.data(), static_cast<int>(n));
  } while (n > 0 || (n < 0 && errno == EINTR));
  OPENSSL_cleanse(chunk.data(), chunk.size());
  if (n < 0) fail(path, std::string("cannot be read: ") + std::strerror(errno), remedy);
  return bio;
}

// Returns no passphrase, because there is no terminal to ask at.
int noPassphrase(char*, int, int, void*) {
  return -1;
}

CertificateHandle readCertificate(const std::string& path) {
  CertificateHandle certificate(
      PEM_read_bio_X509(readFile(path).get(), nullptr, noPassphrase, nullptr));
  if (!certificate) fail(path, "holds no PEM certificate", "make one with 'braidctl keygen'");
  // Where memory was short for its algorithms, OpenSSL does without these as long as the process
  // lives. Each handshake would fail.
  if (X509_check_purpose(certificate.get(), -1, 0) != 1)
    fail(path, "cannot be used: " + takeOpensslError(), "make one with 'braidctl keygen'");
  return certificate;
}

void writeNew(const std::string& path, mode_t mode, BIO* content) {
  char* bytes = nullptr;
  auto size = static_cast<size_t>(BIO_get_mem_data(content, &bytes));
  int error = newDurableFile(path, {bytes, size}, mode);
  if (error == EEXIST) fail(path, "exists already", "choose another name or move it away");
  if (error != 0)
    fail(path, std::string("cannot be written: ") + std::strerror(error),
         "check the folder and the disk");
}

bool setName(X509* certificate, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.data()),
                                    static_cast<int>(name.size()), -1, 0) == 1 &&
         X509_set_issuer_name(certificate, subject) == 1;
}

bool setSerial(X509* certificate) {
  std::array<uint8_t, kSerialBytes> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return false;
  bytes[0] = (bytes[0] & 0x7f) | 0x40;  // positive, and of full length
  std::unique_ptr<BIGNUM, OpensslFree<BN_free>> number(
      BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate));
}

CertificateHandle selfSigned(EVP_PKEY* key, const std::string& name) {
  CertificateHandle certificate(X509_new());
  X509* x = certificate.get();
  bool ok = x && X509_set_version(x, X509_VERSION_3) == 1 && setSerial(x) && setName(x, name) &&
            X509_time_adj_ex(X509_getm_notBefore(x), -1, 0, nullptr) &&
            X509_time_adj_ex(X509_getm_notAfter(x), kValidDays, 0, nullptr) &&
            X509_set_pubkey(x, key) == 1 && X509_sign(x, key, EVP_sha256()) > 0;
  if (!ok)
    throw IdentityError("cannot make a certificate named '" + name + "': " + takeOpensslError());
  return certificate;
}

std::string curveOf(const EVP_PKEY* key) {
  std::array<char, 64> name{};
  size_t size = 0;
  if (EVP_PKEY_get_group_name(key, name.data(), name.size(), &size) != 1) return "without a name";
  return {name.data(), size};
}

KeyHandle readKey(const std::string& path, const std::string& credentials) {
  KeyHandle key(PEM_read_bio_PrivateKey(readFile(path, "private key", credentials).get(), nullptr,
                                        noPassphrase, nullptr));
  if (!key)
    fail(path, "holds no PEM private key without passphrase", "make one with 'braidctl keygen'");
  if (EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_EC)
    fail(path, "is no elliptic-curve key", "make one with 'braidctl keygen'");
  if (std::string curve = curveOf(key.get()); curve != kCurve)
    fail(path, "is a key of the curve " + curve + ", and peers take only P-256",
         "make one with 'braidctl keygen'");
  return key;
}

Pin writeCertificate(EVP_PKEY* key, const std::string& path, const std::string& name) {
  CertificateHandle certificate = selfSigned(key, name);
  BioHandle text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(text.get(), certificate.get()) != 1)
    throw IdentityError("cannot write PEM: " + takeOpensslError());
  writeNew(path, 0644, text.get());
  return pinOf(certificate.get());
}

}  // namespace

Pin pinOf(const X509* certificate) {
  unsigned char* der = nullptr;
  int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  if (size <= 0) throw IdentityError("the certificate has no public key");
  Pin pin;
  SHA256(der, static_cast<size_t>(size), pin.data());
  OPENSSL_free(der);
  return pin;
}

Pin readPin(const std::string& certificatePath) {
  return pinOf(readCertificate(certificatePath).get());
}

Identity loadIdentity(const std::string& keyPath, const std::string& certificatePath,
                      const std::string& credentials) {
  Identity identity;
  identity.key = readKey(keyPath, credentials);
  identity.certificate = readCertificate(certificatePath);
  if (X509_check_private_key(identity.certificate.get(), identity.key.get()) != 1)
    fail(certificatePath, "is not the certificate of the key " + keyPath,
         "give the two files of one 'braidctl keygen'");
  identity.pin = pinOf(identity.certificate.get());
  return identity;
}

PresharedKey loadPresharedKey(const std::string& path, const std::string& credentials) {
  const std::string remedy =
      "make one with: (umask 077; head -c 32 /dev/urandom | base64 > " + path + ")";
  BioHandle file = readFile(path, "pre-shared key", credentials, remedy.c_str());
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(file.get(), &bytes);
  std::string_view text(bytes, size > 0 ? static_cast<size_t>(size) : 0);
  text = text.substr(0, text.find_last_not_of("\r\n") + 1);
  std::optional<PresharedKey> key = parsePresharedKey(text);
  if (!key) fail(path, "is not the base64 of 32 bytes", remedy);
  return *key;
}

Pin generateIdentity(const std::string& keyPath, const std::string& certificatePath,
                     const std::string& name) {
  if (name.empty() || name.size() > kMaxName)
    throw IdentityError("the name must have 1 to 64 bytes");
  KeyHandle key(EVP_EC_gen("P-256"));
  if (!key) throw IdentityError("cannot make a key: " + takeOpensslError());
  BioHandle keyText(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_PKCS8PrivateKey(keyText.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                    nullptr) != 1)
    throw IdentityError("cannot write PEM: " + takeOpensslError());
  writeNew(keyPath, 0600, keyText.get());
  try {
    return writeCertificate(key.get(), certificatePath, name);
  } catch (...) {
    unlink(keyPath.c_str());
    throw;
  }
}

Pin certifyKey(const std::string& keyPath, const std::string& certificatePath,
               const std::string& name) {
  return writeCertificate(readKey(keyPath, {}).get(), certificatePath, name);
}

}  // namespace braid
