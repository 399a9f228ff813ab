#pragma once

// The sent-map of one subflow: what each packet number carried and what became of it.

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.h"
#include "scheduler/recovery/loss_estimate.h"
#include "tunnel/queue/data_unit.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// Which packet numbers in a window are marked. Finding the next marked number takes the same few
/// steps whatever lies between: there is a bit for each number, and a bit for each word of those.
class PacketNumberBitmap {
 public:
  /// `span`: packet numbers in the window, a power of two, at least 64.
  explicit PacketNumberBitmap(size_t span)
      : bits_(span / kWord),
        words_(std::max(bits_.size() / kWord, size_t{1})),
        bitsMask_(bits_.size() - 1),
        wordsMask_(words_.size() - 1),
        runMask_(std::min(uint64_t{bits_.size()}, kWord) - 1) {
    assert(span >= kWord && std::has_single_bit(span));
  }

  size_t span() const { return bits_.size() * kWord; }
  /// Doubles the window. All marks must be at or above `first` and below `end`.
  void widen(PacketNumber first, PacketNumber end) {
    PacketNumberBitmap wide(2 * span());
    for (PacketNumber pn = next(first, end); pn < end; pn = next(pn + 1, end)) wide.put(pn, true);
    *this = std::move(wide);
  }

  void put(PacketNumber pn, bool marked) {
    uint64_t n = pn.value();
    uint64_t w = n / kWord;
    uint64_t& word = bits_[w & bitsMask_];
    uint64_t& words = words_[w / kWord & wordsMask_];
    uint64_t bit = uint64_t{1} << n % kWord;
    uint64_t wordBit = uint64_t{1} << (w & runMask_);
    if (marked) {
      word |= bit;
      words |= wordBit;
    } else {
      word &= ~bit;
      if (word == 0) words &= ~wordBit;
    }
  }
  /// The first marked number at or above `from` and below `end`; `end` when there is none. Both
  /// must be in the window or at its end, and nothing outside the window may be marked.
  PacketNumber next(PacketNumber from, PacketNumber end) const {
    if (from >= end) return end;
    uint64_t n = from.value();
    if (uint64_t here = wordOf(n) >> n % kWord) return least(n, here, end);
    n += kWord - n % kWord;
    while (n < end.value()) {
      uint64_t w = n / kWord;
      if (uint64_t words = words_[w / kWord & wordsMask_] >> (w & runMask_)) {
        n += kWord * static_cast<uint64_t>(std::countr_zero(words));
        return least(n, wordOf(n), end);
      }
      n += kWord * (runMask_ + 1 - (w & runMask_));
    }
    return end;
  }

 private:
  static constexpr uint64_t kWord = 64;
  static PacketNumber least(uint64_t n, uint64_t bits, PacketNumber end) {
    return std::min(PacketNumber(n + static_cast<uint64_t>(std::countr_zero(bits))), end);
  }
  uint64_t wordOf(uint64_t n) const { return bits_[n / kWord & bitsMask_]; }

  std::vector<uint64_t> bits_;   ///< a bit for each number, modulo the span
  std::vector<uint64_t> words_;  ///< a bit for each word of bits_: whether it is not 0
  uint64_t bitsMask_, wordsMask_;
  uint64_t runMask_;  ///< word w of bits_ has bit number (w & runMask_) in its word of words_
};

/// Most inner packets that one datagram carries.
inline constexpr size_t kMaxDataPerDatagram = 6;

struct SentPacket {
  enum class State : uint8_t {
    kUntracked,  ///< not ack-eliciting
    kInFlight,
    kAcked,
    kLost,
    kSkipped,  ///< there is no such packet: the number was skipped on purpose
  };
  enum class Role : uint8_t {
    kOrdinary,
    kCopy,    ///< a duplicate of data that was sent before; not protected itself
    kParity,  ///< a parity of a coding block, or the tail of one; holds no data
  };
  Time sentAt;
  uint32_t bytes = 0;
  State state = State::kUntracked;  ///< changed by SentPackets::setState() alone
  bool moved = false;       ///< its data was sent again elsewhere because the path fell silent
  bool mtuProbe = false;    ///< its loss is not a sign of congestion (RFC 8899 section 3)
  bool hasControl = false;  ///< carries control frames that are sent again when lost
  bool appLimited = false;
  Role role = Role::kOrdinary;
  bool countedLost = false;            ///< in the loss estimate
  LossCause cause = LossCause::kPath;  ///< if so
  bool ect = false;                    ///< left as ECT(0)
  bool ofOldRoute = false;             ///< was in flight when the route changed
  uint8_t dataCount = 0;
  /// Delivery-rate state when the packet was sent (draft-cheng-iccrg-delivery-rate-estimation
  /// section 3.2).
  uint64_t delivered = 0;
  Time deliveredAt;
  Time firstSentAt;
  std::array<UnitRef, kMaxDataPerDatagram> data;
};

/// A ring of the sent packets, indexed by packet number from first() to next(), that grows to at
/// most kMaxSpan entries. Beside it, marks tell which packets are in flight, and for which an ACK
/// would be news. So neither an ACK nor a search visits any others, although the peer chooses what
/// it acknowledges and in which order.
class SentPackets {
 public:
  /// Largest distance between the oldest remembered packet and the next one to be sent. It bounds
  /// memory and what may be in flight.
  static constexpr size_t kMaxSpan = 16384;

  SentPackets() : ring_(kFirstSpan), inFlight_(kFirstMarks), awaited_(kFirstMarks) {}

  /// Smallest number that is remembered; next() when none is.
  PacketNumber first() const { return first_; }
  /// Number of the next packet to be sent.
  PacketNumber next() const { return next_; }
  bool empty() const { return first_ == next_; }
  /// Whether no number is free until the oldest packet is forgotten.
  bool full() const { return next_ - first_ >= kMaxSpan; }
  bool contains(PacketNumber pn) const { return pn >= first_ && pn < next_; }
  SentPacket& at(PacketNumber pn) {
    assert(contains(pn));
    return ring_[place(pn)];
  }
  const SentPacket& at(PacketNumber pn) const { return const_cast<SentPackets*>(this)->at(pn); }

  /// Sets the state of packet `pn`, and its marks.
  void setState(PacketNumber pn, SentPacket::State state) {
    at(pn).state = state;
    bool inFlight = state == SentPacket::State::kInFlight;
    inFlight_.put(pn, inFlight);
    awaited_.put(pn, inFlight || state == SentPacket::State::kLost);
  }
  /// The oldest packet in flight with number `pn` or above; next() when there is none.
  PacketNumber nextInFlight(PacketNumber pn) const {
    return inFlight_.next(std::max(pn, first_), next_);
  }
  /// The oldest packet from `pn` to `last` that was in flight and that no ACK has named; last + 1
  /// when there is none.
  PacketNumber nextAwaited(PacketNumber pn, PacketNumber last) const {
    return awaited_.next(std::max(pn, first_), last + 1);
  }
  /// An ACK has named packet `pn`.
  void onNamed(PacketNumber pn) { awaited_.put(pn, false); }

  /// Uses up packet number next() and returns its entry; full() must be false.
  SentPacket& push() {
    assert(!full());
    if (next_ - first_ == ring_.size()) grow();
    SentPacket& p = ring_[place(next_++)];
    p = SentPacket{};
    return p;
  }
  void popFront() {
    inFlight_.put(first_, false);
    awaited_.put(first_, false);
    ++first_;
  }
  /// Whether a number between these two was skipped.
  bool anySkipped(PacketNumber after, PacketNumber before) const {
    for (PacketNumber pn = std::max(after + 1, first_); pn < std::min(before, next_); ++pn) {
      if (at(pn).state == SentPacket::State::kSkipped) return true;
    }
    return false;
  }

 private:
  /// Initial sizes for a subflow, which may stay idle: entries of the ring, and the marks of one
  /// word.
  static constexpr size_t kFirstSpan = 16, kFirstMarks = 64;

  size_t place(PacketNumber pn) const { return pn.value() & (ring_.size() - 1); }
  void grow() {
    std::vector<SentPacket> larger(ring_.size() * 2);
    for (PacketNumber pn = first_; pn < next_; ++pn)
      larger[pn.value() & (larger.size() - 1)] = at(pn);
    ring_.swap(larger);
    for (PacketNumberBitmap* marks : {&inFlight_, &awaited_}) {
      if (marks->span() < ring_.size()) marks->widen(first_, next_);
    }
  }

  std::vector<SentPacket> ring_;
  PacketNumberBitmap inFlight_, awaited_;  // their span is at least the size of the ring
  PacketNumber first_{};
  PacketNumber next_{};
};

/// Packet numbers of one subflow that are skipped on purpose. They expose a peer that acknowledges
/// packets which have not reached it, so as to be sent more than the path carries (RFC 9000 section
/// 21.4). The numbers that were used do not show which one is skipped next.
class PacketNumberFilter {
 public:
  /// Least and greatest distance from one skipped number to the next; all distances between are
  /// equally likely. With kLeast, loss detection meets only one skipped number at a time. Skips are
  /// rare because a receiver has to treat each as a hole.
  static constexpr uint64_t kLeast = 8;
  static constexpr uint64_t kMost = 8192;
  /// How many skipped numbers are remembered, the newest ones: more than there usually are among
  /// the numbers that a sender remembers.
  static constexpr size_t kKept = 16;

  /// `random` must outlive this object.
  explicit PacketNumberFilter(SecretRandom& random)
      : random_(random), due_(PacketNumber(distance())) {}

  /// Whether `next`, the number of the next packet to be sent, must be skipped.
  bool isDue(PacketNumber next) const { return next >= due_; }
  /// Packet number `pn` was skipped.
  void onSkipped(PacketNumber pn) {
    kept_[count_++ % kKept] = pn;
    due_ = pn + distance();
  }
  /// Whether the ACK names a skipped number.
  bool isIn(const AckFrame& ack) const {
    size_t range = 0;
    for (size_t back = 1; back <= std::min(count_, kKept); ++back) {  // descending, like the ranges
      PacketNumber pn = kept_[(count_ - back) % kKept];
      while (range < ack.count && ack.ranges[range].first > pn) ++range;
      if (range == ack.count) return false;
      if (pn <= ack.ranges[range].last) return true;
    }
    return false;
  }

 private:
  uint64_t distance() { return kLeast + random_.below(kMost - kLeast + 1); }

  SecretRandom& random_;
  PacketNumber due_;
  std::array<PacketNumber, kKept> kept_{};
  size_t count_ = 0;
};

}  // namespace braid
