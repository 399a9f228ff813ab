#pragma once

// The keys of a session over its whole life: one generation after the other, each of a handshake of its own.
//
//     next       of a fresh handshake: opens what the peer seals under it; seals nothing
//     current    seals and opens
//     previous   opens what is late, for a while
//
// A datagram's header names the generation, so that there is nothing to guess. Within a generation the keys change by
// epochs (KeySchedule). Packet numbers go on through all of them.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/time.h"
#include "tunnel/wire/key_schedule.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// What the keys of one handshake leave behind for the generation after them: made from its secrets, which nobody can
/// compute from it. It is erased with the object.
struct KeyRoot {
  explicit KeyRoot(const SessionSecrets& secrets);
  ~KeyRoot();
  KeyRoot(const KeyRoot&) = delete;
  KeyRoot& operator=(const KeyRoot&) = delete;

  /// The secrets of the generation that follows this one, with what a fresh handshake gave: only who knows both has
  /// them.
  SessionSecrets followedBy(const KeyRoot& fresh) const;

  AeadKind aead;
  uint32_t handshake;  ///< SessionSecrets::sessionId of the handshake
  TrafficSecret initiator{}, responder{};
};

class KeyRing {
 public:
  using Role = KeySchedule::Role;

  /// As KeySchedule: generation 0, epoch 0.
  KeyRing(const SessionSecrets& secrets, Role role, const KeyLimits& limits, Time now);

  Role role() const { return role_; }
  /// How often a fresh handshake has replaced the keys.
  unsigned generation() const { return generation_; }
  unsigned epoch() const { return current_->keys.epoch(); }
  AeadKind aead() const { return current_->keys.aead(); }
  /// What the header of the next sealed datagram must say.
  uint8_t generationBits() const { return generation_ & 3; }
  uint8_t epochBits() const { return current_->keys.epochBits(); }
  /// When the generation began.
  Time renewedAt() const { return renewedAt_; }

  // ---- on the packet path, as KeySchedule

  [[nodiscard]] bool seal(SubflowId subflow, PacketNumber packetNumber, ByteView header,
                          std::span<const ByteView> pieces, uint8_t* out) {
    return current_->keys.seal(subflow, packetNumber, header, pieces, out);
  }
  std::shared_ptr<Aead> sealingKeys() { return current_->keys.sealingKeys(); }
  /// The first datagram of the next generation moves this side into it.
  [[nodiscard]] bool open(uint8_t generationBits, uint8_t epochBits, SubflowId subflow,
                          PacketNumber packetNumber, ByteView header, ByteSpan ciphertextAndTag, Time now,
                          const CipherWork* done = nullptr);
  /// Empty also where there is no such generation.
  std::shared_ptr<Aead> openingKeys(uint8_t generationBits, uint8_t epochBits) const;
  bool wantsRekey(Time now) const { return current_->keys.wantsRekey(now); }
  bool rekey(Time now) { return current_->keys.rekey(now); }
  bool spent() const { return current_->keys.spent(); }
  /// Of all generations together.
  uint64_t failedOpens() const { return current_->keys.failedOpens(); }

  // ---- a fresh handshake

  /// What the present generation adds to another session's keys.
  const KeyRoot& root() const { return current_->root; }
  /// Keys of this handshake and of the present generation are ready from now on, in the place of others that were.
  void prepare(const KeyRoot& fresh, Time now);
  /// They are not wanted any more.
  void dropNext() { next_.reset(); }
  /// Seals under them from now on. They must be there.
  void takeNext(Time now);
  /// The handshake of the keys that are ready.
  std::optional<uint32_t> next() const { return next_ ? std::optional(next_->root.handshake) : std::nullopt; }
  /// Whether there are keys of that handshake, in use or ready.
  bool holds(uint32_t handshake) const;
  /// Another generation is ready, or the one before not gone.
  bool isChanging() const { return next_ || previous_; }

  // ---- time

  /// Erases old keys when their time is over.
  void onTimer(Time now);
  Time deadline() const;
  void setRekey(uint64_t packets, Duration after);

 private:
  struct Generation {
    Generation(const SessionSecrets& secrets, Role role, const KeyLimits& limits, Time now)
        : keys(secrets, role, limits, now), root(secrets) {}
    KeySchedule keys;
    KeyRoot root;
  };
  Generation* named(uint8_t generationBits) const;
  void confirm(Time now);

  Role role_;
  KeyLimits limits_;
  std::unique_ptr<Generation> previous_, current_, next_;
  unsigned generation_ = 0;
  Time renewedAt_;
  bool confirmed_ = true;  ///< the peer is known to be in the present generation
  Time dropPreviousAt_ = kNever;
};

}  // namespace braid
