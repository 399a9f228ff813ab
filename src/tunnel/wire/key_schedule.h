#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/time.h"
#include "tunnel/wire/aead.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/secrets.h"

namespace braid {

using TrafficSecret = std::array<uint8_t, 32>;

/// HKDF-Expand-Label of RFC 8446 section 7.1 with SHA-256 and an empty context: fills `out` (at
/// most 255 bytes). Throws std::runtime_error when OpenSSL fails.
void hkdfExpandLabel(ByteView secret, std::string_view label, ByteSpan out);
/// HKDF-Extract of RFC 5869 section 2.2 with SHA-256. Throws std::runtime_error when OpenSSL fails.
void hkdfExtract(ByteView salt, ByteView keyMaterial, TrafficSecret& out);
/// The secrets of a handshake between gateways that share a pre-shared key (docs/protocol.md
/// section 2). Throws as hkdfExtract().
SessionSecrets mixedWith(const PresharedKey& key, const SessionSecrets& exported);

/// When keys are changed, and when they must not be used any more.
struct KeyLimits {
  uint64_t rekeyPackets = uint64_t{1} << 23;  ///< packets sealed in an epoch before wantsRekey()
  Duration rekeyAfter = 3600s;  ///< age of an epoch before wantsRekey(); 0: age does not matter
  Duration keepPrevious = 3s;   ///< time after a change for which old keys open reordered packets
  uint64_t maxSealed = 0;       ///< packets sealed in an epoch, at most; 0: the cipher's limit
  uint64_t maxFailedOpens = 0;  ///< failed opens in a session, at most; 0: the cipher's limit
};

/// The keys of one generation (KeyRing) and their epochs. Both directions are always in the same
/// epoch (RFC 9001 section 6): the side that starts a new one seals under it at once, and the other
/// side follows when the first such packet opens. A datagram header names the epoch by its low two
/// bits. Packet numbers continue through epochs.
///
///     seal, open                     for each packet
///     if (wantsRekey(now)) rekey(now)
///     onTimer(now) at deadline()     erases old keys
///     if (spent()) close the session
class KeySchedule {
 public:
  enum class Role : uint8_t { kInitiator, kResponder };

  /// Starts in epoch 0 at `now`. The secrets may be erased afterwards. Throws std::runtime_error
  /// when OpenSSL does not have the cipher.
  KeySchedule(const SessionSecrets& secrets, Role role, const KeyLimits& limits, Time now);
  ~KeySchedule();
  KeySchedule(const KeySchedule&) = delete;
  KeySchedule& operator=(const KeySchedule&) = delete;

  unsigned epoch() const { return epoch_; }
  /// The epoch bits for the header of the next sealed datagram.
  uint8_t epochBits() const { return epoch_ & 3; }

  /// Aead::seal() under the current epoch. Also false once the cipher's limit is reached (spent()).
  [[nodiscard]] bool seal(SubflowId subflow, PacketNumber packetNumber, ByteView header,
                          std::span<const ByteView> pieces, uint8_t* out);
  /// Aead::open() under the epoch that the header names: previous, current or next. The first
  /// packet of the next epoch that opens moves this side into it, but not within half of
  /// keepPrevious after the last change: an honest peer waits longer, and each epoch costs six key
  /// derivations. Packets of other epochs, and of one that comes too early, fail after the same
  /// work (RFC 9001 section 6.3).
  [[nodiscard]] bool open(uint8_t epochBits, SubflowId subflow, PacketNumber packetNumber,
                          ByteView header, ByteSpan ciphertextAndTag, Time now);

  /// Whether the epoch has lasted long enough and mayRekey().
  bool wantsRekey(Time now) const;
  /// Whether a change would lose no packet: the peer is known to be in the current epoch, and the
  /// keys of the previous one are gone. The peer is known to be there when a packet of this epoch
  /// opened; an ACK of our packets of this epoch can only arrive in such a packet.
  bool mayRekey() const { return confirmed_ && !previous_; }
  /// Starts the next epoch. Does nothing and returns false unless mayRekey().
  bool rekey(Time now);

  /// Erases the previous keys when their time is over.
  void onTimer(Time now);
  /// When the previous keys must be erased; kNever when there are none, or when the peer has not
  /// followed yet.
  Time deadline() const { return dropPreviousAt_; }
  void setRekey(uint64_t packets, Duration after);

  /// A limit of the cipher is reached, or the cipher has failed: no packet is sealed or opened any
  /// more, and the session must be closed.
  bool spent() const {
    return sealed_ >= limits_.maxSealed || failedOpens_ >= limits_.maxFailedOpens ||
           seal_.isBroken();
  }
  uint64_t sealedInEpoch() const { return sealed_; }
  uint64_t failedOpens() const { return failedOpens_; }
  /// Counts a datagram of the session that did not open under keys other than these.
  void countFailedOpen() { ++failedOpens_; }
  /// Takes over the count of `before`, whose keys these follow: the limit is that of the session.
  void takeFailedOpens(const KeySchedule& before) { failedOpens_ = before.failedOpens_; }
  AeadKind aead() const { return kind_; }

 private:
  friend struct KeyScheduleAccess;  // of a test
  Aead makeAead(Aead::Use use, const TrafficSecret& secret) const;
  Aead& keysFor(unsigned ahead);
  void takeSealingKeys();
  void prepareNext();
  void advance(Time now);
  void confirm(Time now);

  AeadKind kind_;
  KeyLimits limits_;
  TrafficSecret sendSecret_{};  // of the next epoch
  TrafficSecret openSecret_{};  // of the next epoch
  Aead seal_;
  Aead previous_, current_, next_;  // for opening; only previous_ may be empty
  unsigned epoch_ = 0;
  bool confirmed_ = false;
  Time epochStart_;
  Time dropPreviousAt_ = kNever;
  Time followFrom_ = Time::min();  ///< the peer's next epoch is refused before this time
  uint64_t sealed_ = 0;
  uint64_t failedOpens_ = 0;
};

}  // namespace braid
