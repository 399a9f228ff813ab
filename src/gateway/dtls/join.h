#pragma once

// How a gateway joins that no peer knows yet (docs/protocol.md section 14). It makes a handshake
// with the ALPN name kJoinProtocol. Then it sends one request and gets one answer, in messages
// sealed with keys of that handshake. No session results.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "tunnel/wire/handshake_envelope.h"
#include "tunnel/wire/secrets.h"

namespace braid {

inline constexpr std::string_view kJoinProtocol = "braid-join/1";

/// How the error of a handshake begins that failed because the responder lets nobody join.
inline constexpr std::string_view kNoOpenInvitation = "the concentrator has no open invitation";

/// First byte of the body of a handshake datagram that carries a join message. The first byte of a
/// DTLS record is 20 to 25 (RFC 7983).
enum class JoinKind : uint8_t { kRequest = 1, kAnswer = 2 };
/// The longest join message in bytes.
inline constexpr size_t kMaxJoinMessage = kMaxHandshakeBody - 1 - kTagSize;

/// A value that only the two ends of one handshake know, different for each handshake. The proof of
/// an invitation is bound to it.
using JoinBinding = std::array<uint8_t, 32>;
using JoinMessage = std::vector<uint8_t>;

/// Answers the requests of gateways that want to join, for responders.
class JoinHandler {
 public:
  virtual ~JoinHandler() = default;
  /// Whether there are invitations. Without them no initiator can start to join.
  virtual bool isOpen() const = 0;
  /// Handles a request of the owner of `pin`, sealed with the keys of its handshake. Returns the
  /// answer, or nullopt when there is none yet, or never will be. The initiator repeats the same
  /// request until it gets an answer. Must not block.
  virtual std::optional<JoinMessage> onRequest(const Pin& pin, const JoinBinding& binding,
                                               ByteView request, Time now) = 0;
};

/// An initiator's request to join.
class JoinAsker {
 public:
  virtual ~JoinAsker() = default;
  /// At most kMaxJoinMessage bytes.
  virtual JoinMessage request(const JoinBinding& binding) = 0;
  virtual void onAnswer(ByteView answer) = 0;
};

/// The keys that the exporter gives for a joining handshake. Erased with the object.
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
  /// The body that carries the message. Only the first call seals its message; later calls return
  /// the same body again, whatever the message. Two messages under the same key and nonce would
  /// reveal both. Empty when OpenSSL fails.
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

/// True for the body of a handshake datagram that is not a DTLS record.
constexpr bool isJoinBody(ByteView body) {
  return !body.empty() && (body[0] == static_cast<uint8_t>(JoinKind::kRequest) ||
                           body[0] == static_cast<uint8_t>(JoinKind::kAnswer));
}

}  // namespace braid
