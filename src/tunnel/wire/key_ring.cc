#include "tunnel/wire/key_ring.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

namespace braid {

bool ReplayWindow::check(PacketNumber pn) const {
  if (pn >= next_) return true;
  if (next_ - pn > kWindow) return false;
  return (words_[wordOf(pn)] & bitOf(pn)) == 0;
}

bool ReplayWindow::commit(PacketNumber pn) {
  if (!check(pn)) return false;
  if (pn >= next_) {
    uint64_t firstFresh = (next_.value() + kWordBits - 1) / kWordBits;
    uint64_t lastFresh = pn.value() / kWordBits;
    if (lastFresh >= firstFresh + kWords) firstFresh = lastFresh + 1 - kWords;
    for (uint64_t word = firstFresh; word <= lastFresh; ++word) words_[word % kWords] = 0;
    next_ = pn + 1;
  }
  words_[wordOf(pn)] |= bitOf(pn);
  return true;
}

KeyRoot::KeyRoot(const SessionSecrets& secrets) : aead(secrets.aead), handshake(secrets.sessionId) {
  hkdfExpandLabel(secrets.initiatorSecret, "braid root", initiator);
  hkdfExpandLabel(secrets.responderSecret, "braid root", responder);
}

KeyRoot::~KeyRoot() {
  OPENSSL_cleanse(initiator.data(), initiator.size());
  OPENSSL_cleanse(responder.data(), responder.size());
}

SessionSecrets KeyRoot::followedBy(const KeyRoot& fresh) const {
  SessionSecrets secrets;
  secrets.aead = fresh.aead;
  hkdfExtract(initiator, fresh.initiator, secrets.initiatorSecret);
  hkdfExtract(responder, fresh.responder, secrets.responderSecret);
  secrets.sessionId = fresh.handshake;
  return secrets;
}

KeyRing::KeyRing(const SessionSecrets& secrets, Role role, const KeyLimits& limits, Time now)
    : role_(role),
      limits_(limits),
      current_(std::make_unique<Generation>(secrets, role, limits, now)),
      renewedAt_(now) {}

// nullptr: there is no such generation.
KeyRing::Generation* KeyRing::named(uint8_t generationBits) const {
  unsigned ahead = (generationBits - generation_) & 3;
  return ahead == 0   ? current_.get()
         : ahead == 1 ? next_.get()
         : ahead == 3 ? previous_.get()
                      : nullptr;
}

// A datagram of a generation that does not exist is refused without doing the work. That reveals
// nothing, because headers show in the clear which generation is in use.
bool KeyRing::open(uint8_t generationBits, uint8_t epochBits, SubflowId subflow,
                   PacketNumber packetNumber, ByteView header, ByteSpan ciphertextAndTag,
                   Time now) {
  if (spent()) return false;
  onTimer(now);
  unsigned ahead = (generationBits - generation_) & 3;
  Generation* used = named(generationBits);
  if (!used || !used->keys.open(epochBits, subflow, packetNumber, header, ciphertextAndTag, now)) {
    if (used != current_.get()) current_->keys.countFailedOpen();
    return false;
  }
  if (ahead == 1) takeNext(now);
  if (ahead <= 1 && !confirmed_) confirm(now);
  return true;
}

// The peer has changed to this generation, too. Datagrams that it sent before may still be on their
// way, so the time for which the old keys are kept starts now.
void KeyRing::confirm(Time now) {
  confirmed_ = true;
  if (previous_) dropPreviousAt_ = now + limits_.keepPrevious;
}

void KeyRing::prepare(const KeyRoot& fresh, Time now) {
  next_ = std::make_unique<Generation>(root().followedBy(fresh), role_, limits_, now);
}

void KeyRing::takeNext(Time now) {
  next_->keys.takeFailedOpens(current_->keys);
  previous_ = std::exchange(current_, std::move(next_));
  ++generation_;
  renewedAt_ = now;
  confirmed_ = false;
  dropPreviousAt_ = kNever;
}

bool KeyRing::holds(uint32_t handshake) const {
  auto isOf = [&](const std::unique_ptr<Generation>& g) {
    return g && g->root.handshake == handshake;
  };
  return isOf(previous_) || isOf(current_) || isOf(next_);
}

void KeyRing::onTimer(Time now) {
  current_->keys.onTimer(now);
  if (!previous_) return;
  previous_->keys.onTimer(now);
  if (now < dropPreviousAt_) return;
  previous_.reset();
  dropPreviousAt_ = kNever;
}

Time KeyRing::deadline() const {
  Time next = std::min(dropPreviousAt_, current_->keys.deadline());
  return previous_ ? std::min(next, previous_->keys.deadline()) : next;
}

void KeyRing::setRekey(uint64_t packets, Duration after) {
  limits_.rekeyPackets = packets;
  limits_.rekeyAfter = after;
  current_->keys.setRekey(packets, after);
  if (next_) next_->keys.setRekey(packets, after);
}

}  // namespace braid
