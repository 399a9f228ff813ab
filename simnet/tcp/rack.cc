#include "simnet/tcp/rack.h"

#include <algorithm>
#include <chrono>

namespace braid::sim::tcp {

void Rack::onDelivered(const SentSegment& s, Time now, std::optional<Time> echoed) {
  if (s.end() > fack_)
    fack_ = s.end();
  else if (s.end() < fack_ && !s.retransmitted)
    reordering_ = true;
  Duration rtt = now - s.sentAt;
  if (s.retransmitted) {  // possibly the first transmission arrived, not this one
    if (echoed && *echoed < std::chrono::floor<std::chrono::microseconds>(s.sentAt)) return;
    if (rtt < minRtt_) return;
  }
  minRtt_ = std::min(minRtt_, rtt);
  rtt_ = rtt;
  if (s.sentAt < sentAt_ || (s.sentAt == sentAt_ && s.end() <= end_)) return;
  sentAt_ = s.sentAt;
  end_ = s.end();
}

void Rack::onDsack(uint64_t una, uint64_t next) {
  if (dsackRound_ && una < *dsackRound_) return;
  dsackRound_ = next;
  ++multiple_;
  persist_ = kPersist;
}

void Rack::onRecoveryEnd() {
  if (persist_ > 0 && --persist_ == 0) multiple_ = 1;
}

Duration Rack::window(const Scoreboard& board, bool recovering, Duration srtt) const {
  if (!reordering_ && (recovering || board.sackedSegments() >= kDupThresh)) return Duration{};
  if (minRtt_ == Duration::max()) return Duration{};
  return std::min(multiple_ * minRtt_ / 4, srtt);
}

Time Rack::findLost(Scoreboard& board, bool recovering, Duration srtt, Time now) const {
  Duration patience = rtt_ + window(board, recovering, srtt);
  for (uint32_t id = board.oldest(); id != Scoreboard::kNone; id = board.oldest()) {
    const SentSegment& s = board.at(id);
    if (s.sentAt > sentAt_ || (s.sentAt == sentAt_ && s.end() >= end_)) return kNever;
    if (s.sentAt + patience > now) return s.sentAt + patience;
    board.markLost(id);
  }
  return kNever;
}

void Rack::onTimeout(Scoreboard& board, Duration srtt, Time now) const {
  board.markLost(board.firstId());
  Duration patience = rtt_ + window(board, true, srtt);
  for (uint32_t id = board.oldest(); id != Scoreboard::kNone; id = board.oldest()) {
    if (board.at(id).sentAt + patience > now) return;
    board.markLost(id);
  }
}

}  // namespace braid::sim::tcp
