#include "tunnel/wire/replay_window.h"

namespace braid {

bool ReplayWindow::check(uint64_t pn) const {
  if (pn >= next_) return true;
  if (next_ - pn > kWindow) return false;
  return (words_[pn / kWordBits % kWords] >> (pn % kWordBits) & 1) == 0;
}

bool ReplayWindow::commit(uint64_t pn) {
  if (!check(pn)) return false;
  if (pn >= next_) {
    uint64_t firstFresh = (next_ + kWordBits - 1) / kWordBits;
    uint64_t lastFresh = pn / kWordBits;
    if (lastFresh >= firstFresh + kWords) firstFresh = lastFresh + 1 - kWords;
    for (uint64_t word = firstFresh; word <= lastFresh; ++word) words_[word % kWords] = 0;
    next_ = pn + 1;
  }
  words_[pn / kWordBits % kWords] |= uint64_t{1} << (pn % kWordBits);
  return true;
}

}  // namespace braid
