#pragma once

#include <stdexcept>
#include <string>

#include "gateway/dtls/openssl_handle.h"
#include "tunnel/handshake.h"

namespace braid {

/// An identity that cannot be loaded or made; what() names the file, the trouble and the remedy.
class IdentityError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Who a gateway is: a private P-256 key and a certificate of it. Nobody signs or checks the certificate: peers
/// know each other by the pin of the public key. The certificate's name and dates mean nothing, and it never
/// expires.
struct Identity {
  KeyHandle key;
  CertificateHandle certificate;
  Pin pin{};
};

/// SHA-256 of the certificate's SubjectPublicKeyInfo (RFC 7469 section 2.4). Throws IdentityError when the
/// certificate has none.
Pin pinOf(const X509* certificate);
/// The pin of a PEM certificate file. Throws IdentityError.
Pin readPin(const std::string& certificatePath);
/// Loads both PEM files. Throws IdentityError when one is missing or malformed, the key is not of P-256, is
/// protected by a passphrase or readable by others than its owner, or both do not belong together.
///
/// `credentials`: the folder of the service manager's credentials; empty: none. A key there has rules of its own
/// (isPrivate()).
Identity loadIdentity(const std::string& keyPath, const std::string& certificatePath,
                      const std::string& credentials = {});
/// Makes a P-256 key (file mode 0600) and a certificate of it, valid for 100 years, and gives its pin. `name`
/// (1 to 64 bytes) is for people. Never overwrites a file: when one is there, throws IdentityError and leaves
/// both as they were.
Pin generateIdentity(const std::string& keyPath, const std::string& certificatePath, const std::string& name);
/// Makes the certificate of a key that is there, as after an end in the middle of generateIdentity(). Throws IdentityError.
Pin certifyKey(const std::string& keyPath, const std::string& certificatePath, const std::string& name);

}  // namespace braid
