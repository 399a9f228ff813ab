#include "simnet/tcp/scoreboard.h"

#include <algorithm>
#include <utility>

namespace braid::sim::tcp {

void Scoreboard::append(uint64_t begin, uint32_t size, Time now) {
  SentSegment s;
  s.begin = begin;
  s.size = size;
  s.sentAt = now;
  segments_.pushBack(std::move(s));
  bytes_ += size;
  enlist(endId() - 1);
}

void Scoreboard::resend(uint32_t id, Time now) {
  SentSegment& s = mut(id);
  if (s.waiting) unlist(id);
  if (s.lost && !s.resent) --repairs_;
  if (!s.resent) resentBytes_ += s.size;
  s.resent = s.retransmitted = true;
  s.sentAt = now;
  enlist(id);
}

void Scoreboard::markLost(uint32_t id) {
  SentSegment& s = mut(id);
  if (s.sacked || (s.lost && !s.resent)) return;
  if (s.waiting) unlist(id);
  if (!s.lost) lostBytes_ += s.size, ++lostCount_;
  if (s.resent) resentBytes_ -= s.size;
  s.lost = true;
  s.resent = false;
  ++repairs_;
  if (id < repairFrom_) repairFrom_ = id;
}

uint32_t Scoreboard::nextRepair() {
  repairFrom_ = std::max(repairFrom_, first_);
  while (!at(repairFrom_).lost || at(repairFrom_).resent) ++repairFrom_;
  return repairFrom_;
}

void Scoreboard::cut(uint32_t mss) {
  Ring<SentSegment> whole = std::exchange(segments_, {});
  uint32_t first = first_;
  *this = Scoreboard();
  first_ = first;
  for (size_t i = 0; i < whole.size(); ++i) {
    const SentSegment& s = whole[i];
    for (uint32_t at = 0; at < s.size; at += mss) {
      append(s.begin + at, std::min(mss, s.size - at), s.sentAt);
      uint32_t id = endId() - 1;
      mut(id).retransmitted = true;
      if (s.sacked)
        setSacked(id);
      else
        markLost(id);
    }
  }
}

void Scoreboard::forgetSacks() {
  Ring<SentSegment> known = std::exchange(segments_, {});
  uint32_t first = first_;
  *this = Scoreboard();
  first_ = first;
  for (size_t i = 0; i < known.size(); ++i) {
    append(known[i].begin, known[i].size, known[i].sentAt);
    mut(endId() - 1).retransmitted = known[i].retransmitted;
  }
}

void Scoreboard::setSacked(uint32_t id) {
  SentSegment& s = mut(id);
  if (s.waiting) unlist(id);
  uncount(s);
  if (s.lost) lostBytes_ -= s.size;
  if (s.resent) resentBytes_ -= s.size;
  s.lost = s.resent = false;
  s.sacked = true;
  sackedBytes_ += s.size;
  ++sackedCount_;
  uint32_t end = id + 1;
  for (uint32_t& top : top_) {
    if (top < end) std::swap(top, end);
  }
}

void Scoreboard::shrink(SentSegment& s, uint32_t bytes) {
  bytes_ -= bytes;
  if (s.sacked) sackedBytes_ -= bytes;
  if (s.lost) lostBytes_ -= bytes;
  if (s.resent) resentBytes_ -= bytes;
  s.begin += bytes;
  s.size -= bytes;
}

// Removes the segment from the counters.
void Scoreboard::uncount(const SentSegment& s) {
  if (s.sacked) --sackedCount_;
  if (s.lost) --lostCount_;
  if (s.lost && !s.resent) --repairs_;
}

void Scoreboard::enlist(uint32_t id) {
  SentSegment& s = mut(id);
  s.waiting = true;
  s.later = kNone;
  s.earlier = newest_;
  (newest_ == kNone ? oldest_ : mut(newest_).later) = id;
  newest_ = id;
}

void Scoreboard::unlist(uint32_t id) {
  SentSegment& s = mut(id);
  s.waiting = false;
  (s.earlier == kNone ? oldest_ : mut(s.earlier).later) = s.later;
  (s.later == kNone ? newest_ : mut(s.later).earlier) = s.earlier;
}

// The id of the segment in which `offset` lies, or of the first one; endId() when it lies behind
// the last.
uint32_t Scoreboard::find(uint64_t offset) const {
  size_t low = 0, high = segments_.size();
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (segments_[middle].end() <= offset)
      low = middle + 1;
    else
      high = middle;
  }
  return first_ + static_cast<uint32_t>(low);
}

}  // namespace braid::sim::tcp
