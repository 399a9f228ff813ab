#include "tunnel/wire/replay_window.h"

namespace braid {

bool ReplayWindow::check(PacketNumber pn) const {
  if (pn >= next_) return true;
  if (next_ - pn > kWindow) return false;
  return (words_[wordOf(pn)] & bitOf(pn)) == 0;
}

bool ReplayWindow::commit(PacketNumber pn) {
  if (!check(pn)) return false;
  if (pn >= next_) {
    uint64_t firstFresh = (next_.value() + kWordBits - 1) / kWordBits;
    uint64_t lastFresh = pn.value() / kWordBits;
    if (lastFresh >= firstFresh + kWords) firstFresh = lastFresh + 1 - kWords;
    for (uint64_t word = firstFresh; word <= lastFresh; ++word) words_[word % kWords] = 0;
    next_ = pn + 1;
  }
  words_[wordOf(pn)] |= bitOf(pn);
  return true;
}

}  // namespace braid
