#include "simnet/tcp/reassembly.h"

#include <algorithm>

namespace braid::sim::tcp {

// The first range with an end at or behind `offset`.
std::vector<Range>::const_iterator Reassembly::behind(uint64_t offset) const {
  return std::ranges::lower_bound(ahead_, offset, {}, &Range::end);
}

bool Reassembly::has(Range bytes) const {
  return missing(bytes).size() == 0;
}

Range Reassembly::missing(Range bytes) const {
  bytes.begin = std::max(bytes.begin, next_);
  if (bytes.begin >= bytes.end) return {bytes.end, bytes.end};
  auto first = behind(bytes.begin + 1);
  if (first != ahead_.end() && first->begin <= bytes.begin)
    bytes.begin = std::min(first->end, bytes.end);
  auto last = behind(bytes.end);
  if (last != ahead_.end() && last->begin < bytes.end)
    bytes.end = std::max(last->begin, bytes.begin);
  return bytes;
}

void Reassembly::add(Range bytes) {
  twice_.reset();
  if (has(bytes)) {
    twice_ = bytes;
    return;
  }
  auto first = ahead_.begin() + (behind(bytes.begin) - ahead_.cbegin());
  auto last = first;
  Range whole = bytes;
  for (; last != ahead_.end() && last->begin <= bytes.end; ++last) {
    whole = {std::min(whole.begin, last->begin), std::max(whole.end, last->end)};
  }
  if (whole.begin <= next_) {
    next_ = whole.end;
    ahead_.erase(ahead_.begin(), last);
    return;
  }
  if (first == last)
    ahead_.insert(first, whole);
  else
    *first = whole, ahead_.erase(first + 1, last);
  auto known = std::remove_if(recent_.begin(), recent_.begin() + recentCount_, [&](uint64_t byte) {
    return byte >= whole.begin && byte < whole.end;
  });
  recentCount_ = std::min<size_t>(known - recent_.begin() + 1, kMaxBlocks);
  std::shift_right(recent_.begin(), recent_.end(), 1);
  recent_[0] = bytes.begin;
}

size_t Reassembly::blocks(size_t room, std::array<Range, kMaxBlocks>& out) {
  size_t count = 0;
  std::optional<Range> within;
  if (twice_) {
    out[count++] = *twice_;
    auto holder = behind(twice_->end);
    if (holder != ahead_.end() && holder->begin <= twice_->begin)
      within = *holder;  // RFC 2883 section 4.2
    if (within) out[count++] = *within;
    twice_.reset();
  }
  for (size_t i = 0; i < recentCount_ && count < room; ++i) {
    auto range = behind(recent_[i] + 1);
    if (range == ahead_.end() || range->begin > recent_[i]) continue;
    if (!within || *range != *within) out[count++] = *range;
  }
  return count;
}

}  // namespace braid::sim::tcp
