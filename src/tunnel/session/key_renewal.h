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

inline void KeyUpdate::propose(const SessionSecrets& fresh, Time now) {
  keys_.prepare(KeyRoot(fresh), now);
  controls_.replace(RenewKeysFrame{fresh.sessionId});
}

// A late answer to an earlier proposal does not count for this one. The initiator repeats
// RENEW_KEYS under the new keys; the responder's answer then shows that it has changed, too.
inline void KeyUpdate::onAnswer(const KeysReadyFrame& answer, Time now) {
  if (keys_.role() != KeyRing::Role::kInitiator || keys_.next() != answer.handshake) return;
  if (answer.ready) {
    keys_.takeNext(now);
    controls_.replace(RenewKeysFrame{answer.handshake});
  } else {
    keys_.dropNext();
    refused_ = true;
  }
}

// RENEW_KEYS arrives again when its acknowledgment was lost: the answer is the same.
inline void KeyUpdate::onWish(const RenewKeysFrame& wish) {
  if (keys_.role() != KeyRing::Role::kResponder) return;
  if (keys_.holds(wish.handshake)) {
    controls_.replace(KeysReadyFrame{wish.handshake, true});
  } else {
    wish_ = wish.handshake;
  }
}

inline void KeyUpdate::answer(uint32_t handshake, const KeyUpdate* fresh, Time now) {
  if (fresh) keys_.prepare(fresh->keys_.root(), now);
  controls_.replace(KeysReadyFrame{handshake, fresh != nullptr});
}

}  // namespace braid
