#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/containers.h"
#include "base/time.h"

namespace braid::sim::tcp {

/// A range [begin, end) of bytes of the stream. Offsets count from 0 and do not wrap.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// A segment that was sent and is not covered by the cumulative ACK.
struct SentSegment {
  uint64_t begin = 0;
  uint32_t size = 0;
  uint32_t later = 0, earlier = 0;  // neighbours in order of their last transmission, by id
  Time sentAt;                      ///< time of its last transmission
  bool sacked = false;
  bool lost = false;           ///< marked as lost
  bool resent = false;         ///< was resent, and that transmission is not marked as lost
  bool retransmitted = false;  ///< was ever resent
  bool waiting = false;        // is in the list by transmission time (`later`, `earlier`)
  uint64_t end() const { return begin + size; }
};

/// The segments in flight: which were sent, SACKed, lost and resent (RFC 6675 section 3). Segments
/// have ids, which count up from 0 in order of their bytes. Each call takes O(1) for each segment
/// that it changes, and O(log n) to search for a SACK block.
class Scoreboard {
 public:
  bool empty() const { return segments_.empty(); }
  size_t size() const { return segments_.size(); }
  /// The id of the first segment; endId() is the last id + 1.
  uint32_t firstId() const { return first_; }
  uint32_t endId() const { return first_ + static_cast<uint32_t>(segments_.size()); }
  const SentSegment& at(uint32_t id) const { return segments_[id - first_]; }

  /// Number of SACKed segments.
  uint64_t sackedSegments() const { return sackedCount_; }
  /// RFC 6675's pipe: the bytes that are presumably in the network.
  uint64_t pipe() const { return bytes_ - sackedBytes_ - lostBytes_ + resentBytes_; }
  /// Bytes sent and not covered by the cumulative ACK.
  uint64_t flight() const { return bytes_; }
  bool hasLost() const { return lostCount_ > 0; }
  /// True when a lost segment waits to be resent.
  bool hasRepair() const { return repairs_ > 0; }

  /// Adds new data, behind all data sent before.
  void append(uint64_t begin, uint32_t size, Time now);
  /// The segment was resent.
  void resend(uint32_t id, Time now);
  /// Everything below `offset` has arrived. Calls delivered(segment) for each segment that was not
  /// known to have arrived, and gone(segment) for each segment that is removed.
  template <typename Delivered, typename Gone>
  void acknowledge(uint64_t offset, Delivered&& delivered, Gone&& gone);
  /// The receiver holds these ranges, at most 4 of them, ascending. Calls delivered(segment) for
  /// each segment that was not known to have arrived.
  template <typename Delivered>
  void sack(const Range* blocks, size_t count, Delivered&& delivered);
  void markLost(uint32_t id);
  /// True when the receiver has SACKed the first segment but does not acknowledge it: it dropped
  /// the segment, or never had it.
  bool reneged() const { return !empty() && segments_.front().sacked; }
  /// Clears all marks of segments that have arrived or are lost (RFC 2018 section 8).
  void forgetSacks();
  /// The lowest segment that is lost and not resent. hasRepair() must be true.
  uint32_t nextRepair();
  /// All segments below the returned id have at least `count` SACKed segments above them (RFC
  /// 6675's IsLost()). `count`: 1..kCounted.
  static constexpr size_t kCounted = 3;
  uint32_t belowSacked(size_t count) const { return std::max(top_[count - 1], first_ + 1) - 1; }
  /// Id of the highest SACKed segment + 1; firstId() if there is none.
  uint32_t sackedEnd() const { return std::max(top_[0], first_); }

  /// The list of the segments that may still be found lost, by the time of their last transmission:
  /// oldest() is the first one, later() the next. kNone: the end.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t oldest() const { return oldest_; }
  uint32_t later(uint32_t id) const { return at(id).later; }

  /// Splits segments larger than `mss` into smaller ones and marks these as lost: the path could
  /// not carry the original.
  void cut(uint32_t mss);

 private:
  SentSegment& mut(uint32_t id) { return segments_[id - first_]; }
  void enlist(uint32_t id);
  void unlist(uint32_t id);
  void shrink(SentSegment& s, uint32_t bytes);
  void uncount(const SentSegment& s);
  uint32_t find(uint64_t offset) const;
  void setSacked(uint32_t id);

  Ring<SentSegment> segments_;
  uint32_t first_ = 0;
  uint64_t bytes_ = 0, sackedBytes_ = 0, lostBytes_ = 0, resentBytes_ = 0;
  uint64_t sackedCount_ = 0, lostCount_ = 0, repairs_ = 0;
  uint32_t repairFrom_ = 0;  // no segment below it waits to be resent
  uint32_t oldest_ = kNone, newest_ = kNone;
  // ids + 1 of the highest SACKed segments, descending; 0: none
  std::array<uint32_t, kCounted> top_{};
  std::array<Range, 4> known_{};  // the blocks of the last call of sack()
  size_t knownCount_ = 0;
};

template <typename Delivered, typename Gone>
void Scoreboard::acknowledge(uint64_t offset, Delivered&& delivered, Gone&& gone) {
  while (!segments_.empty() && segments_.front().begin < offset) {
    SentSegment& s = segments_.front();
    if (s.end() > offset) {
      shrink(s, static_cast<uint32_t>(offset - s.begin));
      break;
    }
    if (!s.sacked) delivered(std::as_const(s));
    gone(std::as_const(s));
    if (s.waiting) unlist(first_);
    uncount(s);
    shrink(s, s.size);
    segments_.popFront();
    ++first_;
  }
  if (segments_.empty()) knownCount_ = 0;
}

template <typename Delivered>
void Scoreboard::sack(const Range* blocks, size_t count, Delivered&& delivered) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t from = blocks[i].begin;
    for (bool skipped = true; skipped;) {
      skipped = false;
      for (size_t k = 0; k < knownCount_; ++k) {
        if (known_[k].begin > from || known_[k].end <= from) continue;
        from = known_[k].end;
        skipped = true;
      }
    }
    if (from >= blocks[i].end || segments_.empty()) continue;
    for (uint32_t id = find(from); id != endId() && at(id).end() <= blocks[i].end; ++id) {
      if (at(id).begin < blocks[i].begin || at(id).sacked) continue;
      delivered(at(id));
      setSacked(id);
    }
  }
  std::copy_n(blocks, count, known_.begin());
  knownCount_ = count;
}

}  // namespace braid::sim::tcp
