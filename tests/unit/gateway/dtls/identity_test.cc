#include "gateway/dtls/identity.h"

#include <gmock/gmock.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/unit/gateway/dtls/dtls_fixture.h"

namespace braid::identity_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class IdentityTest : public testing::Test {
 protected:
  IdentityTest() { pin = generateIdentity(key, certificate, "edge"); }

  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static mode_t mode(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  std::string loadError(const std::string& keyPath, const std::string& certificatePath,
                        const std::string& credentials = "") {
    try {
      loadIdentity(keyPath, certificatePath, credentials);
    } catch (const IdentityError& e) {
      return e.what();
    }
    return "";
  }

  TemporaryFolder folder;
  std::string key = folder.file("edge.key"), certificate = folder.file("edge.crt");
  Pin pin{};
};

TEST_F(IdentityTest, loadsWhatItMade) {
  Identity identity = loadIdentity(key, certificate);
  EXPECT_EQ(identity.pin, pin);
  EXPECT_EQ(readPin(certificate), pin);
  EXPECT_EQ(pinOf(identity.certificate.get()), pin);
  EXPECT_NE(pin, Pin{});
}

TEST_F(IdentityTest, theKeyIsPrivateAndP256) {
  EXPECT_EQ(mode(key), 0600u);
  Identity identity = loadIdentity(key, certificate);
  EXPECT_EQ(EVP_PKEY_get_bits(identity.key.get()), 256);
}

TEST_F(IdentityTest, theCertificateIsForAHundredYears) {
  Identity identity = loadIdentity(key, certificate);
  int days = 0, seconds = 0;
  ASSERT_EQ(ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(identity.certificate.get()),
                           X509_get0_notAfter(identity.certificate.get())),
            1);
  EXPECT_NEAR(days, 36525, 2);
  char name[64];
  X509_NAME_get_text_by_NID(X509_get_subject_name(identity.certificate.get()), NID_commonName, name,
                            sizeof name);
  EXPECT_STREQ(name, "edge");
  EXPECT_EQ(X509_verify(identity.certificate.get(), identity.key.get()), 1);
}

TEST_F(IdentityTest, twoAreDifferent) {
  EXPECT_NE(generateIdentity(folder.file("b.key"), folder.file("b.crt"), "edge"), pin);
}

TEST_F(IdentityTest, neverOverwrites) {
  std::string before = content(key), certificateBefore = content(certificate);
  EXPECT_THROW(generateIdentity(key, folder.file("new.crt"), "x"), IdentityError);
  EXPECT_FALSE(std::filesystem::exists(folder.file("new.crt")));
  EXPECT_THROW(generateIdentity(folder.file("new.key"), certificate, "x"), IdentityError);
  EXPECT_FALSE(std::filesystem::exists(folder.file("new.key")));  // no key without its certificate
  EXPECT_EQ(content(key), before);
  EXPECT_EQ(content(certificate), certificateBefore);
}

TEST_F(IdentityTest, leavesNothingBesideTheTwoFiles) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.file(".")))
    EXPECT_FALSE(entry.path().string().ends_with(".new")) << entry.path();
}

TEST_F(IdentityTest, aKeyWithoutACertificateGetsOne) {
  std::filesystem::remove(certificate);
  EXPECT_EQ(certifyKey(key, certificate, "edge"), pin);
  EXPECT_EQ(loadIdentity(key, certificate).pin, pin);
  EXPECT_THROW(certifyKey(key, certificate, "edge"), IdentityError) << "there is one";
  EXPECT_THROW(certifyKey(folder.file("no.key"), folder.file("no.crt"), "edge"), IdentityError);
}

TEST_F(IdentityTest, doesNotFollowALinkToMakeAKey) {
  std::filesystem::create_symlink(folder.file("target"), folder.file("link"));
  EXPECT_THROW(generateIdentity(folder.file("link"), folder.file("l.crt"), "x"), IdentityError);
  EXPECT_FALSE(std::filesystem::exists(folder.file("target")));
}

TEST_F(IdentityTest, nameBounds) {
  EXPECT_THROW(generateIdentity(folder.file("a"), folder.file("b"), ""), IdentityError);
  EXPECT_THROW(generateIdentity(folder.file("a"), folder.file("b"), std::string(65, 'x')),
               IdentityError);
  EXPECT_NO_THROW(generateIdentity(folder.file("a"), folder.file("b"), std::string(64, 'x')));
}

TEST_F(IdentityTest, refusesAKeyThatOthersMayRead) {
  for (mode_t bad : {0640, 0604, 0660, 0644}) {
    ASSERT_EQ(chmod(key.c_str(), bad), 0);
    EXPECT_THAT(loadError(key, certificate), AllOf(HasSubstr(key), HasSubstr("chmod 600 " + key)));
  }
  for (mode_t good : {0600, 0400}) {
    ASSERT_EQ(chmod(key.c_str(), good), 0);
    EXPECT_EQ(loadError(key, certificate), "");
  }
}

TEST_F(IdentityTest, aPresharedKeyIsPrivateAndWellFormed) {
  const std::string path = folder.file("van.psk");
  const std::string text = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
  auto error = [&](const std::string& content, mode_t mode) -> std::string {
    std::ofstream(path) << content;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    try {
      PresharedKey key = loadPresharedKey(path);
      for (uint8_t i = 0; i < 32; ++i) EXPECT_EQ(key.bytes[i], i);
    } catch (const IdentityError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(error(text, 0644), AllOf(HasSubstr("the pre-shared key can be used by others"),
                                       HasSubstr("chmod 600 " + path)));
  for (const std::string& good : {text, text + "\n", text + "\r\n"})
    EXPECT_EQ(error(good, 0600), "") << good;
  for (const std::string& bad : {std::string(), std::string("\n"), text.substr(4), text + text})
    EXPECT_THAT(error(bad, 0600),
                AllOf(HasSubstr("is not the base64 of 32 bytes"), HasSubstr("> " + path)))
        << bad;
  std::filesystem::remove(path);
  EXPECT_THROW(loadPresharedKey(path), IdentityError);
  EXPECT_THROW(loadPresharedKey(folder.file(".")), IdentityError);
}

// Some file systems keep no access control lists.
bool setAcl(const std::string& path, uint32_t user, uint16_t group) {
  struct Entry {
    uint16_t tag, permissions;
    uint32_t id;
  };
  constexpr uint32_t kNone = 0xffffffff;
  struct {
    uint32_t version = 2;
    Entry entries[5];
  } list{.entries = {{0x01, 4, kNone},
                     {0x02, 4, user},
                     {0x04, group, kNone},
                     {0x10, 4, kNone},
                     {0x20, 0, kNone}}};
  return setxattr(path.c_str(), "system.posix_acl_access", &list, sizeof list, 0) == 0;
}

// systemd from 254 on: owner root, mode 0440, and an access control list with the service's user.
class CredentialTest : public IdentityTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "files of root's group need root";
    ASSERT_EQ(chmod(key.c_str(), 0440), 0);
  }
  std::string error() { return loadError(key, certificate, credentials); }
  const std::string kPrivate = "the private key can be used by others than its owner";
  std::string credentials = std::filesystem::path(key).parent_path();
};

TEST_F(CredentialTest, MayLookReadableByRootsGroup) {
  EXPECT_THAT(loadError(key, certificate), HasSubstr(kPrivate)) << "it is no credential";
  EXPECT_EQ(error(), "");
  ASSERT_EQ(chown(key.c_str(), 0, 12345), 0);
  EXPECT_THAT(error(), HasSubstr(kPrivate)) << "a group may read it";
  ASSERT_EQ(chown(key.c_str(), 12345, 0), 0);
  EXPECT_THAT(error(), HasSubstr(kPrivate)) << "somebody else's";
}

TEST_F(CredentialTest, AListThatNamesUsAloneIsPrivate) {
  if (!setAcl(key, geteuid(), 0)) GTEST_SKIP() << "no access control lists here";
  ASSERT_EQ(mode(key), 0440u);
  EXPECT_EQ(error(), "");
  ASSERT_TRUE(setAcl(key, 12345, 0));
  EXPECT_THAT(error(), HasSubstr(kPrivate)) << "another user may read it";
  ASSERT_TRUE(setAcl(key, geteuid(), 4));
  EXPECT_THAT(error(), HasSubstr(kPrivate)) << "a group may read it";
}

TEST_F(CredentialTest, NothingElseIsRelaxed) {
  for (mode_t bad : {0444, 0460, 0450, 0441}) {
    ASSERT_EQ(chmod(key.c_str(), bad), 0);
    EXPECT_THAT(error(), HasSubstr(kPrivate)) << bad;
  }
  ASSERT_EQ(chmod(key.c_str(), 0440), 0);
  for (mode_t bad : {0751, 0704, 0770}) {
    ASSERT_EQ(chmod(credentials.c_str(), bad), 0);
    EXPECT_THAT(error(), HasSubstr(kPrivate)) << "folder " << bad;
  }
  ASSERT_EQ(chmod(credentials.c_str(), 0750), 0);
  EXPECT_EQ(error(), "");
  TemporaryFolder other;
  std::filesystem::create_symlink(key, other.file("edge.key"));
  EXPECT_THAT(loadError(other.file("edge.key"), certificate,
                        std::filesystem::path(other.file("x")).parent_path()),
              HasSubstr(kPrivate))
      << "a link out of the folder";
}

TEST_F(IdentityTest, refusesACertificateOfAnotherKey) {
  generateIdentity(folder.file("b.key"), folder.file("b.crt"), "other");
  EXPECT_THAT(loadError(key, folder.file("b.crt")), AllOf(HasSubstr(key), HasSubstr("b.crt")));
}

TEST_F(IdentityTest, missingAndMalformedFilesAreNamed) {
  EXPECT_THAT(loadError(folder.file("none"), certificate),
              AllOf(HasSubstr("none"), HasSubstr("No such file")));
  EXPECT_THAT(loadError(key, folder.file("none")),
              AllOf(HasSubstr("none"), HasSubstr("No such file")));
  EXPECT_THAT(loadError(folder.file("."), certificate), HasSubstr("is not a file"));
  write(folder.file("bad.crt"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  EXPECT_THAT(loadError(key, folder.file("bad.crt")), HasSubstr("no PEM certificate"));
  write(folder.file("empty"), "");
  chmod(folder.file("empty").c_str(), 0600);
  EXPECT_THAT(loadError(folder.file("empty"), certificate), HasSubstr("no PEM private key"));
  write(folder.file("long"), std::string(100000, 'x'));
  EXPECT_THAT(loadError(key, folder.file("long")), HasSubstr("too long"));
}

TEST_F(IdentityTest, onlyEllipticCurveKeys) {
  KeyHandle rsa(EVP_RSA_gen(2048));
  BIO* file = BIO_new_file(folder.file("rsa.key").c_str(), "w");
  PEM_write_bio_PrivateKey(file, rsa.get(), nullptr, nullptr, 0, nullptr, nullptr);
  BIO_free(file);
  chmod(folder.file("rsa.key").c_str(), 0600);
  EXPECT_THAT(loadError(folder.file("rsa.key"), certificate), HasSubstr("elliptic-curve"));
}

// Found by the review of docs/protocol.md: a P-384 key was accepted, but no handshake succeeded
// with it.
TEST_F(IdentityTest, onlyTheCurveThatPeersTake) {
  RecordProperty("rule", "handshake.key");
  for (const char* curve : {"P-384", "P-521", "secp256k1"}) {
    SCOPED_TRACE(curve);
    std::string file = folder.file(std::string(curve) + ".key");
    KeyHandle other(EVP_EC_gen(curve));
    ASSERT_TRUE(other);
    BIO* bio = BIO_new_file(file.c_str(), "w");
    PEM_write_bio_PrivateKey(bio, other.get(), nullptr, nullptr, 0, nullptr, nullptr);
    BIO_free(bio);
    chmod(file.c_str(), 0600);
    EXPECT_THAT(loadError(file, certificate),
                AllOf(HasSubstr(file), HasSubstr("only P-256"), HasSubstr("keygen")));
  }
}

TEST_F(IdentityTest, aPassphraseIsRefusedWithoutAsking) {
  Identity identity = loadIdentity(key, certificate);
  BIO* file = BIO_new_file(folder.file("locked.key").c_str(), "w");
  char secret[] = "secret";
  PEM_write_bio_PKCS8PrivateKey(file, identity.key.get(), EVP_aes_128_cbc(), secret, 6, nullptr,
                                nullptr);
  BIO_free(file);
  chmod(folder.file("locked.key").c_str(), 0600);
  EXPECT_THAT(loadError(folder.file("locked.key"), certificate), HasSubstr("passphrase"));
}

}  // namespace
}  // namespace braid::identity_test
