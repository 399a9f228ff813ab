#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "simnet/tcp/scoreboard.h"

namespace braid::sim::tcp {

/// Records which bytes of a stream have arrived, and makes the SACK blocks of ACKs (RFC 2018
/// section 4, RFC 2883).
class Reassembly {
 public:
  static constexpr size_t kMaxBlocks = 4;

  /// A segment has arrived. O(log n) to find its place among the ranges behind gaps, O(n) to open a
  /// new one.
  void add(Range bytes);
  /// All bytes below this offset have arrived.
  uint64_t next() const { return next_; }
  /// True when data behind a gap has arrived.
  bool hasGap() const { return !ahead_.empty(); }
  /// True when all these bytes have arrived.
  bool has(Range bytes) const;
  /// The parts of `bytes` that have not arrived, from the first to the last missing byte; empty
  /// when none is.
  Range missing(Range bytes) const;

  /// Writes the blocks of the next ACK, at most `room`, and returns their number. First a D-SACK if
  /// the last segment given to add() had arrived before (reported once), then the range with the
  /// newest segment, then the ranges that changed most recently.
  size_t blocks(size_t room, std::array<Range, kMaxBlocks>& out);

 private:
  std::vector<Range>::const_iterator behind(uint64_t offset) const;

  uint64_t next_ = 0;
  std::vector<Range> ahead_;  // ascending, with gaps between them
  std::array<uint64_t, kMaxBlocks>
      recent_{};  // a byte of each range that changed lately, newest first
  size_t recentCount_ = 0;
  std::optional<Range> twice_;
};

}  // namespace braid::sim::tcp
