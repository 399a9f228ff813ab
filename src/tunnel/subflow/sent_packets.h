#pragma once

// The sent-map of one subflow: what each packet number carried and what became of it.

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "tunnel/subflow/marked_numbers.h"
#include "tunnel/wire/numbers.h"

namespace braid {

struct Datum;

/// Inner packets that one datagram may carry.
inline constexpr size_t kMaxDataPerDatagram = 6;

struct SentPacket {
  enum class State : uint8_t {
    kUntracked,  ///< nothing in it asks for an ACK
    kInFlight,
    kAcked,
    kLost,
    kSkipped,  ///< there is no such packet: the number was left out
  };
  enum class Role : uint8_t {
    kOrdinary,
    kCopy,    ///< its data went elsewhere before: not protected itself
    kParity,  ///< of a coding block, or the tail of one: holds no data
  };
  Time sentAt;
  uint32_t bytes = 0;
  State state = State::kUntracked;  ///< changed by SentPackets::setState() alone
  bool moved = false;               ///< its data was sent again elsewhere because the path fell silent
  bool mtuProbe = false;            ///< its loss is no congestion (RFC 8899 section 3)
  bool hasControl = false;          ///< carries control frames that are sent again when lost
  bool appLimited = false;
  Role role = Role::kOrdinary;
  bool countedLost = false;  ///< in the loss estimate
  bool ect = false;          ///< left as ECT(0)
  bool ofOldRoute = false;   ///< was in flight when the route became another one
  uint8_t dataCount = 0;
  /// Delivery-rate state when it left (draft-cheng-iccrg-delivery-rate-estimation section 3.2).
  uint64_t delivered = 0;
  Time deliveredAt;
  Time firstSentAt;
  std::array<const Datum*, kMaxDataPerDatagram> data;
};

/// A ring indexed by packet number, from first() to next(), that grows to kMaxSpan entries. Marks beside it tell
/// which packets are in flight and of which an ACK would be news, so that neither an ACK nor a search visits any
/// other: the peer chooses what it acknowledges and in which order.
class SentPackets {
 public:
  /// Distance between the oldest remembered packet and the next: bounds memory and what may be in flight.
  static constexpr size_t kMaxSpan = 16384;

  SentPackets() : ring_(kFirstSpan), inFlight_(kFirstMarks), awaited_(kFirstMarks) {}

  /// Smallest number that is remembered; next() when none is.
  PacketNumber first() const { return first_; }
  /// Number of the packet that leaves next.
  PacketNumber next() const { return next_; }
  bool empty() const { return first_ == next_; }
  /// No number can be taken until the oldest packet is forgotten.
  bool full() const { return next_ - first_ >= kMaxSpan; }
  bool contains(PacketNumber pn) const { return pn >= first_ && pn < next_; }
  SentPacket& at(PacketNumber pn) {
    assert(contains(pn));
    return ring_[place(pn)];
  }
  const SentPacket& at(PacketNumber pn) const { return const_cast<SentPackets*>(this)->at(pn); }

  /// The packet enters that state.
  void setState(PacketNumber pn, SentPacket::State state) {
    at(pn).state = state;
    bool inFlight = state == SentPacket::State::kInFlight;
    inFlight_.put(pn, inFlight);
    awaited_.put(pn, inFlight || state == SentPacket::State::kLost);
  }
  /// The oldest packet in flight from number `pn` on; next() when there is none.
  PacketNumber nextInFlight(PacketNumber pn) const { return inFlight_.next(std::max(pn, first_), next_); }
  /// The oldest one of `pn` to `last` that was in flight and that no ACK has named; last + 1 when there is none.
  PacketNumber nextAwaited(PacketNumber pn, PacketNumber last) const {
    return awaited_.next(std::max(pn, first_), last + 1);
  }
  /// An ACK has named it.
  void onNamed(PacketNumber pn) { awaited_.put(pn, false); }

  /// The entry of packet number next(), which thereby is used up; full() must be false.
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
  /// Whether one of the numbers between these two was left out.
  bool anySkipped(PacketNumber after, PacketNumber before) const {
    for (PacketNumber pn = std::max(after + 1, first_); pn < std::min(before, next_); ++pn) {
      if (at(pn).state == SentPacket::State::kSkipped) return true;
    }
    return false;
  }

 private:
  /// What a subflow begins with that may stay idle: entries, and the marks of a word. Ours.
  static constexpr size_t kFirstSpan = 16, kFirstMarks = 64;

  size_t place(PacketNumber pn) const { return pn.value() & (ring_.size() - 1); }
  void grow() {
    std::vector<SentPacket> larger(ring_.size() * 2);
    for (PacketNumber pn = first_; pn < next_; ++pn) larger[pn.value() & (larger.size() - 1)] = at(pn);
    ring_.swap(larger);
    for (MarkedNumbers* marks : {&inFlight_, &awaited_}) {
      if (marks->span() < ring_.size()) marks->widen(first_, next_);
    }
  }

  std::vector<SentPacket> ring_;
  MarkedNumbers inFlight_, awaited_;  // of a span as large as the ring or larger
  PacketNumber first_{};
  PacketNumber next_{};
};

}  // namespace braid
