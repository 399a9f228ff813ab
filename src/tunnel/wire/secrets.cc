#include "tunnel/wire/secrets.h"

#include <openssl/crypto.h>

namespace braid {

void SessionSecrets::erase() {
  OPENSSL_cleanse(initiatorSecret.data(), initiatorSecret.size());
  OPENSSL_cleanse(responderSecret.data(), responderSecret.size());
}

}  // namespace braid
