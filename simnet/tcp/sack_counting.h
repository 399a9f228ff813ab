#pragma once

#include <algorithm>

#include "simnet/tcp/scoreboard.h"

namespace braid::sim::tcp {

/// Loss detection by counting (RFC 6675's IsLost(), or FACK): a segment is lost when enough
/// segments above it have arrived. Does not detect the loss of a retransmission.
class SackCounting {
 public:
  static constexpr uint32_t kDupThresh = 3;

  /// `fack`: counts the distance to the highest SACKed segment instead (Mathis and Mahdavi, SIGCOMM
  /// 1996).
  explicit SackCounting(bool fack) : fack_(fack) {}

  /// The number of segments above that makes a segment lost: by Early Retransmit (RFC 5827 section
  /// 3.2) where it applies, else DupThresh. `outstanding`: segments in flight; `moreData`: new data
  /// may be sent.
  static uint32_t threshold(bool early, size_t outstanding, bool moreData) {
    if (!early || moreData || outstanding > kDupThresh) return kDupThresh;
    return std::max<uint32_t>(static_cast<uint32_t>(outstanding), 2) - 1;
  }
  /// Marks lost segments by this threshold, 1..kDupThresh.
  void findLost(Scoreboard& board, uint32_t threshold) {
    uint32_t end = board.belowSacked(threshold);
    if (fack_) end = std::max(board.sackedEnd(), board.firstId() + threshold) - threshold;
    for (uint32_t id = std::max(upTo_, board.firstId()); id < end; ++id) board.markLost(id);
    upTo_ = std::max(upTo_, end);
  }
  /// The lowest segment below the highest SACKed one that is neither SACKed nor resent in this
  /// recovery; Scoreboard::kNone if there is none.
  uint32_t nextDoubtful(const Scoreboard& board) {
    for (doubtful_ = std::max(doubtful_, board.firstId()); doubtful_ < board.sackedEnd();
         ++doubtful_) {
      const SentSegment& s = board.at(doubtful_);
      if (!s.sacked && !s.resent) return doubtful_;
    }
    return Scoreboard::kNone;
  }
  /// A fast recovery begins.
  void onRecovery() { doubtful_ = 0; }
  /// Marks everything that did not arrive as lost.
  void allLost(Scoreboard& board) {
    for (uint32_t id = board.firstId(); id != board.endId(); ++id) board.markLost(id);
    upTo_ = board.endId();
  }

 private:
  bool fack_;
  uint32_t upTo_ = 0;      // all segments below it were examined
  uint32_t doubtful_ = 0;  // no segment below it is a candidate for nextDoubtful()
};

}  // namespace braid::sim::tcp
