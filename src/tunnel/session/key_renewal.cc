#include "tunnel/session/key_renewal.h"

namespace braid {

void KeyRenewal::propose(const SessionSecrets& fresh, Time now) {
  keys_.prepare(KeyRoot(fresh), now);
  controls_.replace(RenewKeysFrame{fresh.sessionId});
}

// An answer to an earlier wish that comes late is none to this one. The wish is repeated under the new keys, so that
// the answer shows that the peer has changed, too.
void KeyRenewal::onAnswer(const KeysReadyFrame& answer, Time now) {
  if (keys_.role() != KeyRing::Role::kInitiator || keys_.next() != answer.handshake) return;
  if (answer.ready) {
    keys_.takeNext(now);
    controls_.replace(RenewKeysFrame{answer.handshake});
  } else {
    keys_.dropNext();
    refused_ = true;
  }
}

// A wish comes again when its acknowledgment was lost: the answer is the same.
void KeyRenewal::onWish(const RenewKeysFrame& wish) {
  if (keys_.role() != KeyRing::Role::kResponder) return;
  if (keys_.holds(wish.handshake)) {
    controls_.replace(KeysReadyFrame{wish.handshake, true});
  } else {
    wish_ = wish.handshake;
  }
}

void KeyRenewal::answer(uint32_t handshake, const KeyRenewal* fresh, Time now) {
  if (fresh) keys_.prepare(fresh->keys_.root(), now);
  controls_.replace(KeysReadyFrame{handshake, fresh != nullptr});
}

}  // namespace braid
