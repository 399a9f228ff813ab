#include "tunnel/wire/return_call.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "tunnel/wire/key_schedule.h"

namespace braid {

namespace {
constexpr uint8_t kCallType = 0x23;
}  // namespace

bool operator==(const ReturnCall& a, const ReturnCall& b) {
  return a.session == b.session && CRYPTO_memcmp(a.token.data(), b.token.data(), a.token.size()) == 0;
}

// Out of the responder's secret, as the responder is who calls. Nothing of that secret follows from the token.
ReturnCall returnCallOf(const SessionSecrets& secrets) {
  ReturnCall call{secrets.sessionId, {}};
  hkdfExpandLabel(secrets.responderSecret, "braid return", call.token);
  return call;
}

void writeReturnCall(const ReturnCall& call, Packet& out) {
  Writer w(ByteSpan(out.append(kReturnCallSize), kReturnCallSize));
  w.u8(kCallType);
  w.u32(call.session);
  w.bytes(call.token);
}

std::optional<ReturnCall> readReturnCall(ByteView datagram) {
  if (!isReturnCall(datagram) || datagram.size() != kReturnCallSize) return std::nullopt;
  ReturnCall call{load32(&datagram[1]), {}};
  std::ranges::copy(datagram.last(call.token.size()), call.token.begin());
  return call;
}

}  // namespace braid
