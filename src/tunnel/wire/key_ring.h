#pragma once

// The keys of a session over its whole life: one generation after the other, each from a handshake
// of its own. And the replay window for packet numbers.
//
//     next       from a fresh handshake: opens what the peer seals under it; seals nothing yet
//     current    seals and opens
//     previous   opens late datagrams, for a limited time
//
// A datagram's header names the generation, so the receiver need not guess. Within a generation the
// keys change by epochs (KeySchedule). Packet numbers continue through all of them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/time.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/key_schedule.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// Distinguishes packet numbers that were received before from new ones: a bitmap that slides by
/// whole words (RFC 6479). Packet numbers are below 2^62.
class ReplayWindow {
 public:
  /// Packet numbers kWindow or more below the largest one count as replayed.
  static constexpr uint64_t kWindow = 4096;

  /// Whether pn may be new. Called before the datagram is opened; changes nothing.
  bool check(PacketNumber pn) const;
  /// Notes pn once its datagram has opened. Returns false and notes nothing where check() is false.
  bool commit(PacketNumber pn);
  /// The largest committed packet number + 1; 0 before the first.
  PacketNumber next() const { return next_; }

 private:
  static constexpr uint64_t kWordBits = 64;
  /// One word more than the window fills, so that the word of the largest number never holds bits
  /// of the oldest.
  static constexpr uint64_t kWords = kWindow / kWordBits + 1;

  /// The word that holds the bit of `pn`, and that bit.
  static size_t wordOf(PacketNumber pn) { return pn.value() / kWordBits % kWords; }
  static uint64_t bitOf(PacketNumber pn) { return uint64_t{1} << (pn.value() % kWordBits); }

  PacketNumber next_{};
  std::array<uint64_t, kWords> words_{};
};

/// What the keys of one handshake contribute to the next generation. It is derived from the
/// handshake's secrets, which nobody can compute from it. It is erased with the object.
struct KeyRoot {
  explicit KeyRoot(const SessionSecrets& secrets);
  ~KeyRoot();
  KeyRoot(const KeyRoot&) = delete;
  KeyRoot& operator=(const KeyRoot&) = delete;

  /// The secrets of the generation that follows this one. They are derived from this root and from
  /// that of a fresh handshake, so only a party that knows both has them.
  SessionSecrets followedBy(const KeyRoot& fresh) const;

  AeadKind aead;
  uint32_t handshake;  ///< SessionSecrets::sessionId of the handshake
  TrafficSecret initiator{}, responder{};
};

class KeyRing {
 public:
  using Role = KeySchedule::Role;

  /// Starts with generation 0, epoch 0; otherwise as KeySchedule.
  KeyRing(const SessionSecrets& secrets, Role role, const KeyLimits& limits, Time now);

  Role role() const { return role_; }
  /// How often a fresh handshake has replaced the keys.
  unsigned generation() const { return generation_; }
  unsigned epoch() const { return current_->keys.epoch(); }
  AeadKind aead() const { return current_->keys.aead(); }
  /// The generation bits for the header of the next sealed datagram.
  uint8_t generationBits() const { return generation_ & 3; }
  uint8_t epochBits() const { return current_->keys.epochBits(); }
  /// When the current generation began.
  Time renewedAt() const { return renewedAt_; }

  // ---- called for each packet, as in KeySchedule

  [[nodiscard]] bool seal(SubflowId subflow, PacketNumber packetNumber, ByteView header,
                          std::span<const ByteView> pieces, uint8_t* out) {
    return current_->keys.seal(subflow, packetNumber, header, pieces, out);
  }
  /// The first datagram of the next generation that opens moves this side into that generation.
  [[nodiscard]] bool open(uint8_t generationBits, uint8_t epochBits, SubflowId subflow,
                          PacketNumber packetNumber, ByteView header, ByteSpan ciphertextAndTag,
                          Time now);
  bool wantsRekey(Time now) const { return current_->keys.wantsRekey(now); }
  bool rekey(Time now) { return current_->keys.rekey(now); }
  bool spent() const { return current_->keys.spent(); }
  /// Failed openings of all generations together.
  uint64_t failedOpens() const { return current_->keys.failedOpens(); }

  // ---- a fresh handshake

  /// The root of the current generation. A session that came from a fresh handshake passes it to
  /// prepare() of the running session.
  const KeyRoot& root() const { return current_->root; }
  /// Makes the next generation from the current one and this handshake, instead of one that was
  /// ready before. Its keys are ready from now on.
  void prepare(const KeyRoot& fresh, Time now);
  /// Drops the next generation.
  void dropNext() { next_.reset(); }
  /// Makes the next generation the current one, and seals under it from now on. It must be ready.
  void takeNext(Time now);
  /// Names the handshake of the next generation; nullopt: none is ready.
  std::optional<uint32_t> next() const {
    return next_ ? std::optional(next_->root.handshake) : std::nullopt;
  }
  /// Whether there are keys of that handshake, in use or ready.
  bool holds(uint32_t handshake) const;
  /// Whether another generation is ready, or the previous one is not erased yet.
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
