#pragma once

// How a session changes to the keys of a new handshake (docs/protocol.md section 4).
//
//     initiator                                   responder
//     propose(): has the new keys  RENEW_KEYS -->
//                                                 takes the keys of that handshake: it can open
//                                                 datagrams sealed with them from now on
//     onAnswer(): seals with them  <-- KEYS_READY
//     repeats it with the new keys RENEW_KEYS --> seals with them
//     drops the old keys later     <-- KEYS_READY drops the old keys later
//
// The initiator is the last to finish a handshake and the first to use its keys. It uses them only
// after the responder has said that it has them. So no side receives a datagram sealed with keys
// that it does not have, whatever is lost or late. Both frames are resent until they arrive.

#include <cstdint>
#include <optional>
#include <utility>

#include "tunnel/session/control_frames.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/key_ring.h"

namespace braid {

class KeyUpdate {
 public:
  /// Both arguments must outlive this object.
  KeyUpdate(KeyRing& keys, ControlFrames& controls) : keys_(keys), controls_(controls) {}

  /// When the handshake that gave the present keys was done.
  Time renewedAt() const { return keys_.renewedAt(); }
  /// A change of keys has begun, or the old keys are not dropped yet.
  bool isUnderWay() const { return keys_.isChanging(); }

  // ---- initiator

  /// A handshake made beside the session for new keys is done: proposes its keys to the responder.
  void propose(const SessionSecrets& fresh, Time now);
  void onAnswer(const KeysReadyFrame& answer, Time now);
  /// True when the responder has refused a handshake since the last call.
  bool takeRefusal() { return std::exchange(refused_, false); }

  // ---- responder

  void onWish(const RenewKeysFrame& wish);
  /// The handshake whose keys the initiator wants to use, returned once; answer() must follow.
  std::optional<uint32_t> takeWish() { return std::exchange(wish_, std::nullopt); }
  /// `fresh`: of the session which that handshake created and which was never used; nullptr: there
  /// is none, and the wish is refused.
  void answer(uint32_t handshake, const KeyUpdate* fresh, Time now);

 private:
  KeyRing& keys_;
  ControlFrames& controls_;
  std::optional<uint32_t> wish_;
  bool refused_ = false;
};

}  // namespace braid
