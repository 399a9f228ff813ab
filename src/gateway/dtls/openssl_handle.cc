#include "gateway/dtls/openssl_handle.h"

#include <openssl/err.h>

namespace braid {

std::string takeOpensslError() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string text = reason ? reason : "unknown error";
  ERR_clear_error();
  return text;
}

}  // namespace braid
