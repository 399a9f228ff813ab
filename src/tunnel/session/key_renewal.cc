#include "tunnel/session/key_renewal.h"

namespace braid {

void KeyUpdate::propose(const SessionSecrets& fresh, Time now) {
  keys_.prepare(KeyRoot(fresh), now);
  controls_.replace(RenewKeysFrame{fresh.sessionId});
}

// A late answer to an earlier proposal does not count for this one. The initiator repeats
// RENEW_KEYS under the new keys; the responder's answer then shows that it has changed, too.
void KeyUpdate::onAnswer(const KeysReadyFrame& answer, Time now) {
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
void KeyUpdate::onWish(const RenewKeysFrame& wish) {
  if (keys_.role() != KeyRing::Role::kResponder) return;
  if (keys_.holds(wish.handshake)) {
    controls_.replace(KeysReadyFrame{wish.handshake, true});
  } else {
    wish_ = wish.handshake;
  }
}

void KeyUpdate::answer(uint32_t handshake, const KeyUpdate* fresh, Time now) {
  if (fresh) keys_.prepare(fresh->keys_.root(), now);
  controls_.replace(KeysReadyFrame{handshake, fresh != nullptr});
}

}  // namespace braid
