#pragma once

// The call to return (docs/protocol.md section 10): a gateway that has restarted, and has lost the keys of its
// sessions, tells an initiator that one of them is over. It takes the place of QUIC's stateless reset (RFC 9000 section
// 10.3).

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/packet.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// Known to the two ends of one session only, and to nobody before the responder has sent it.
using ReturnToken = std::array<uint8_t, 16>;

struct ReturnCall {
  uint32_t session = 0;
  ReturnToken token{};

  /// Takes the same time wherever they differ.
  friend bool operator==(const ReturnCall& a, const ReturnCall& b);
};

/// Type byte, session id, token.
inline constexpr size_t kReturnCallSize = 1 + 4 + sizeof(ReturnToken);

/// The call that would end the session of these secrets.
ReturnCall returnCallOf(const SessionSecrets& secrets);

/// True when the first byte is a call's; what follows may be anything.
constexpr bool isReturnCall(ByteView b) {
  return !b.empty() && b[0] == 0x23;
}
/// Appends the datagram to an empty packet.
void writeReturnCall(const ReturnCall& call, Packet& out);
/// nullopt: another type or size.
std::optional<ReturnCall> readReturnCall(ByteView datagram);

}  // namespace braid
