#include "simnet/tcp/loss_detector.h"

#include <algorithm>

namespace braid::sim::tcp {

// A partial ACK subtracts the duplicate ACKs that were caused by the segments it covers (RFC 6582
// section 3.2, step 3).
bool LossDetector::onPlainAck(Scoreboard& board, const Plain& ack, const Situation& s) {
  if (ack.duplicate) {
    ++duplicates_;
    bool open = !s.fastRecovery && !s.timeoutRecovery;
    if (open && !ack.stale && duplicates_ == threshold(board, s)) board.markLost(board.firstId());
    return false;
  }
  if (!ack.progress) return false;
  if (!s.fastRecovery) {
    duplicates_ = 0;
    return false;
  }
  uint64_t explained = std::max<uint64_t>(ack.segments, 1) - 1;
  duplicates_ -= static_cast<uint32_t>(std::min<uint64_t>(duplicates_, explained));
  if (board.empty()) return false;
  board.markLost(board.firstId());
  return true;
}

void LossDetector::loseUpTo(Scoreboard& board, uint64_t end) {
  for (uint32_t id = board.firstId(); id != board.endId() && board.at(id).end() <= end; ++id) {
    if (!board.at(id).retransmitted) board.markLost(id);
  }
}

Time LossDetector::find(Scoreboard& board, const Situation& s) {
  if (board.empty()) return kNever;
  if (byTime_) return rack_.findLost(board, s.fastRecovery || s.timeoutRecovery, s.srtt, s.now);
  if (sack_ && !s.timeoutRecovery) counting_.findLost(board, threshold(board, s));
  return kNever;
}

void LossDetector::onTimeout(Scoreboard& board, const Situation& s) {
  duplicates_ = 0;
  if (byTime_)
    rack_.onTimeout(board, s.srtt, s.now);
  else
    counting_.allLost(board);
}

void LossDetector::onRecoveryEnd() {
  duplicates_ = 0;
  rack_.onRecoveryEnd();
}

}  // namespace braid::sim::tcp
