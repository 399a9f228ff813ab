#pragma once

// How a gateway that no peer knows yet joins (docs/protocol.md section 14): it makes a handshake under the ALPN name
// kJoinProtocol, and then asks once and is answered once, in messages sealed with keys of that handshake. No session
// comes of it.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "tunnel/wire/handshake_seal.h"
#include "tunnel/wire/secrets.h"

namespace braid {

inline constexpr std::string_view kJoinProtocol = "braid-join/1";

/// First byte of the body of a handshake datagram that carries a message of a join. Those of DTLS are 20 to 25
/// (RFC 7983).
enum class JoinKind : uint8_t { kRequest = 1, kAnswer = 2 };
/// The longest message.
inline constexpr size_t kMaxJoinMessage = kMaxHandshakeBody - 1 - kTagSize;

/// Known to the two ends of one handshake, and another for each: what a proof is bound to.
using JoinBinding = std::array<uint8_t, 32>;
using JoinMessage = std::vector<uint8_t>;

/// Whom a responder asks about those who want to join.
class JoinDesk {
 public:
  virtual ~JoinDesk() = default;
  /// Whether there are invitations: without them nobody begins to join.
  virtual bool isOpen() const = 0;
  /// The owner of the pin asks, with the keys of a handshake of its own. The answer, or nullopt: there is none yet, or
  /// none at all. The initiator asks again in the same words until it is answered. Must not wait.
  virtual std::optional<JoinMessage> onRequest(const Pin& pin, const JoinBinding& binding, ByteView request,
                                               Time now) = 0;
};

/// What an initiator has to ask.
class JoinAsker {
 public:
  virtual ~JoinAsker() = default;
  /// At most kMaxJoinMessage bytes.
  virtual JoinMessage request(const JoinBinding& binding) = 0;
  virtual void onAnswer(ByteView answer) = 0;
};

/// What the exporter of a joining handshake gives. Erased with the object.
struct JoinSecrets {
  AeadKind aead = AeadKind::kAes128Gcm;
  std::array<uint8_t, 32> initiatorSecret{};
  std::array<uint8_t, 32> responderSecret{};
  JoinBinding binding{};
  ~JoinSecrets();
};

/// Seals one message of one side, and opens the other side's.
class JoinChannel {
 public:
  enum class Side : uint8_t { kInitiator, kResponder };

  /// Throws std::runtime_error when OpenSSL lacks something.
  JoinChannel(const JoinSecrets& secrets, Side side);

  const JoinBinding& binding() const { return binding_; }
  /// The body that carries the message. The first message is sealed; later calls give the same body again, whatever
  /// the message: a second one under the same key and nonce would betray both. Empty when OpenSSL fails.
  const std::vector<uint8_t>& seal(ByteView message);
  /// True when seal() was called.
  bool hasSpoken() const { return !sealed_.empty(); }
  const std::vector<uint8_t>& sealed() const { return sealed_; }
  /// The other side's message; nullopt: the body carries none.
  std::optional<JoinMessage> open(ByteView body);

 private:
  JoinKind ownKind_, otherKind_;
  Aead seal_, open_;
  JoinBinding binding_;
  std::vector<uint8_t> sealed_;
};

/// True for the body of a handshake datagram that is none of DTLS.
constexpr bool isJoinBody(ByteView body) {
  return !body.empty() && (body[0] == static_cast<uint8_t>(JoinKind::kRequest) ||
                           body[0] == static_cast<uint8_t>(JoinKind::kAnswer));
}

}  // namespace braid
