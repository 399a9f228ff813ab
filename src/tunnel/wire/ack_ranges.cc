#include "tunnel/wire/ack_ranges.h"

#include <algorithm>

namespace braid {

bool AckRanges::add(PacketNumber pn) {
  size_t above = startingUpTo(pn);
  if (above > 0) {
    Range& below = at(above - 1);
    if (pn <= below.last) return false;
    if (pn == below.last + 1) {
      below.last = pn;
      if (above < count_ && at(above).first == pn + 1) {
        below.last = at(above).last;
        erase(above);
      }
      return true;
    }
  }
  if (above < count_ && at(above).first == pn + 1) {
    at(above).first = pn;
    return true;
  }
  if (count_ == kMax) {
    if (above == 0) return false;
    popLowest();
    --above;
  }
  insert(above, {pn, pn});
  return true;
}

void AckRanges::dropBelow(PacketNumber pn) {
  while (count_ > 0 && at(0).last < pn) popLowest();
  if (count_ > 0) at(0).first = std::max(at(0).first, pn);
}

bool AckRanges::contains(PacketNumber pn) const {
  size_t above = startingUpTo(pn);
  return above > 0 && pn <= at(above - 1).last;
}

void AckRanges::fill(AckFrame& frame) const {
  frame.count = std::min(count_, frame.ranges.size());
  for (size_t i = 0; i < frame.count; ++i) frame.ranges[i] = range(i);
}

size_t AckRanges::startingUpTo(PacketNumber pn) const {
  size_t n = count_;
  while (n > 0 && at(n - 1).first > pn) --n;
  return n;
}

void AckRanges::insert(size_t i, Range range) {
  for (size_t j = count_; j > i; --j) at(j) = at(j - 1);
  at(i) = range;
  ++count_;
}

void AckRanges::erase(size_t i) {
  for (size_t j = i; j + 1 < count_; ++j) at(j) = at(j + 1);
  --count_;
}

void AckRanges::popLowest() {
  head_ = index(1);
  --count_;
}

}  // namespace braid
