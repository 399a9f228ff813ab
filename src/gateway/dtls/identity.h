#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "tunnel/peer/handshake.h"

namespace braid {

/// Owning handles of OpenSSL objects.
template <auto free>
struct OpensslFree {
  template <typename T>
  void operator()(T* p) const {
    free(p);
  }
};
using BioHandle = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using CertificateHandle = std::unique_ptr<X509, OpensslFree<X509_free>>;
using SslHandle = std::unique_ptr<SSL, OpensslFree<SSL_free>>;
using SslContextHandle = std::unique_ptr<SSL_CTX, OpensslFree<SSL_CTX_free>>;

/// Runs the body of a callback that OpenSSL calls. OpenSSL is C and no exception may pass through
/// it, so `refusal` is returned when the body throws: memory ran out, or a certificate is
/// malformed.
template <typename Result, typename Body>
Result callbackOfC(Result refusal, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::exception&) {
    return refusal;
  }
}

/// The latest entry of this thread's OpenSSL error queue, as OpenSSL's text; empties the queue.
std::string takeOpensslError();

/// An identity that cannot be loaded or created. what() names the file, the problem and the remedy.
class IdentityError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A gateway's identity: a private P-256 key and a certificate of it. Nobody signs or checks the
/// certificate, because peers know each other by the pin of the public key. The certificate's name
/// and dates have no meaning, and it never expires.
struct Identity {
  KeyHandle key;
  CertificateHandle certificate;
  Pin pin{};
};

/// SHA-256 of the certificate's SubjectPublicKeyInfo (RFC 7469 section 2.4). Throws IdentityError
/// when the certificate has none.
Pin pinOf(const X509* certificate);
/// The pin of a PEM certificate file. Throws IdentityError.
Pin readPin(const std::string& certificatePath);
/// Loads both PEM files. Throws IdentityError when a file is missing or malformed, when the key is
/// not a P-256 key, has a passphrase or is readable by others than its owner, or when key and
/// certificate do not belong together.
///
/// `credentials`: folder of the service manager's credentials; empty: none. Other access rules hold
/// for a key in that folder (isPrivate()).
Identity loadIdentity(const std::string& keyPath, const std::string& certificatePath,
                      const std::string& credentials = {});
/// Loads a pre-shared key: a file with the base64 (RFC 4648 section 4) of 32 bytes, as 'wg genpsk'
/// writes it. Throws IdentityError when it is missing or malformed, or readable by others than its
/// owner. `credentials` as for loadIdentity().
PresharedKey loadPresharedKey(const std::string& path, const std::string& credentials = {});
/// Creates a P-256 key (file mode 0600) and a certificate of it that is valid for 100 years.
/// Returns the pin. `name` (1 to 64 bytes) is for people. Never overwrites a file: when one of them
/// exists, throws IdentityError and changes neither.
Pin generateIdentity(const std::string& keyPath, const std::string& certificatePath,
                     const std::string& name);
/// Creates the certificate of an existing key, for example after generateIdentity() was
/// interrupted. Throws IdentityError.
Pin certifyKey(const std::string& keyPath, const std::string& certificatePath,
               const std::string& name);

}  // namespace braid
