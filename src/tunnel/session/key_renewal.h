#pragma once

// How a session comes to the keys of a fresh handshake (docs/protocol.md section 4).
//
//     initiator                                  responder
//     propose(): keys are ready     RENEW_KEYS -->
//                                                takes the handshake: keys are ready, opens what is sealed by them
//     onAnswer(): seals by them  <-- KEYS_READY
//     once more, under them         RENEW_KEYS -->  seals by them
//     old keys go after a while  <-- KEYS_READY     old keys go after a while
//
// The initiator is the last to finish a handshake and the first to use its keys, and only when the responder has said
// that it has them: whatever is lost or comes late, no side gets a datagram under keys that it lacks. Both frames are
// sent until they arrive.

#include <cstdint>
#include <optional>
#include <utility>

#include "tunnel/session/control_frames.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/key_ring.h"

namespace braid {

class KeyRenewal {
 public:
  /// Both must outlive it.
  KeyRenewal(KeyRing& keys, ControlFrames& controls) : keys_(keys), controls_(controls) {}

  /// When the present keys came from a handshake.
  Time renewedAt() const { return keys_.renewedAt(); }
  /// Fresh keys are asked for, or the old ones have not gone yet.
  bool isUnderWay() const { return keys_.isChanging(); }

  // ---- initiator

  /// A handshake beside the session is done.
  void propose(const SessionSecrets& fresh, Time now);
  void onAnswer(const KeysReadyFrame& answer, Time now);
  /// Since the last call the responder has refused a handshake.
  bool takeRefusal() { return std::exchange(refused_, false); }

  // ---- responder

  void onWish(const RenewKeysFrame& wish);
  /// The handshake that the initiator wants to use, once: answer() follows.
  std::optional<uint32_t> takeWish() { return std::exchange(wish_, std::nullopt); }
  /// `fresh`: a session that this handshake made and that nobody has used; nullptr: there is none.
  void answer(uint32_t handshake, const KeyRenewal* fresh, Time now);

 private:
  KeyRing& keys_;
  ControlFrames& controls_;
  std::optional<uint32_t> wish_;
  bool refused_ = false;
};

}  // namespace braid
