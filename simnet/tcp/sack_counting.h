#pragma once

#include <algorithm>

#include "simnet/tcp/scoreboard.h"

namespace braid::sim::tcp {

/// Loss detection by counting (RFC 6675's IsLost(), or FACK): a segment is lost when enough segments above it
/// have arrived. What was sent again is not found to be lost again.
class SackCounting {
 public:
  static constexpr uint32_t kDupThresh = 3;

  /// `fack`: distance to the highest SACKed segment counts instead (Mathis and Mahdavi, SIGCOMM 1996).
  explicit SackCounting(bool fack) : fack_(fack) {}

  /// Early Retransmit (RFC 5827 section 3.2) where it applies, else DupThresh. `outstanding`: segments;
  /// `moreData`: new data may be sent.
  static uint32_t threshold(bool early, size_t outstanding, bool moreData) {
    if (!early || moreData || outstanding > kDupThresh) return kDupThresh;
    return std::max<uint32_t>(static_cast<uint32_t>(outstanding), 2) - 1;
  }
  /// Marks what is lost with this threshold, 1..kDupThresh.
  void findLost(Scoreboard& board, uint32_t threshold) {
    uint32_t end = board.belowSacked(threshold);
    if (fack_) end = std::max(board.sackedEnd(), board.firstId() + threshold) - threshold;
    for (uint32_t id = std::max(upTo_, board.firstId()); id < end; ++id) board.markLost(id);
    upTo_ = std::max(upTo_, end);
  }
  /// The lowest segment below the highest SACKed one that is neither SACKed nor sent again in this recovery;
  /// Scoreboard::kNone without one.
  uint32_t nextDoubtful(const Scoreboard& board) {
    for (doubtful_ = std::max(doubtful_, board.firstId()); doubtful_ < board.sackedEnd(); ++doubtful_) {
      const SentSegment& s = board.at(doubtful_);
      if (!s.sacked && !s.resent) return doubtful_;
    }
    return Scoreboard::kNone;
  }
  /// A fast recovery begins.
  void onRecovery() { doubtful_ = 0; }
  /// Everything that did not arrive is lost.
  void allLost(Scoreboard& board) {
    for (uint32_t id = board.firstId(); id != board.endId(); ++id) board.markLost(id);
    upTo_ = board.endId();
  }

 private:
  bool fack_;
  uint32_t upTo_ = 0;      // below it all was looked at
  uint32_t doubtful_ = 0;  // below it nothing is doubtful
};

}  // namespace braid::sim::tcp
