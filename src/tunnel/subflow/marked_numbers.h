#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tunnel/wire/numbers.h"

namespace braid {

/// Which of the packet numbers in a window are marked. Finding the next marked one takes the same few steps whatever
/// lies between: a bit for each number, and a bit for each word of those.
class MarkedNumbers {
 public:
  /// `span`: numbers of the window, a power of two from 64 on.
  explicit MarkedNumbers(size_t span)
      : bits_(span / kWord),
        words_(std::max(bits_.size() / kWord, size_t{1})),
        bitsMask_(bits_.size() - 1),
        wordsMask_(words_.size() - 1),
        runMask_(std::min(uint64_t{bits_.size()}, kWord) - 1) {
    assert(span >= kWord && std::has_single_bit(span));
  }

  size_t span() const { return bits_.size() * kWord; }
  /// Makes the window twice as long. The marks there are lie from `first` on and below `end`.
  void widen(PacketNumber first, PacketNumber end) {
    MarkedNumbers wide(2 * span());
    for (PacketNumber pn = next(first, end); pn < end; pn = next(pn + 1, end)) wide.put(pn, true);
    *this = std::move(wide);
  }

  void put(PacketNumber pn, bool marked) {
    uint64_t n = pn.value();
    uint64_t w = n / kWord;
    uint64_t& word = bits_[w & bitsMask_];
    uint64_t& words = words_[w / kWord & wordsMask_];
    uint64_t bit = uint64_t{1} << n % kWord;
    uint64_t wordBit = uint64_t{1} << (w & runMask_);
    if (marked) {
      word |= bit;
      words |= wordBit;
    } else {
      word &= ~bit;
      if (word == 0) words &= ~wordBit;
    }
  }
  /// The first marked number from `from` on that is below `end`; `end` when there is none. Both are in the window or
  /// at its end, and what is outside of the window is not marked.
  PacketNumber next(PacketNumber from, PacketNumber end) const {
    if (from >= end) return end;
    uint64_t n = from.value();
    if (uint64_t here = wordOf(n) >> n % kWord) return least(n, here, end);
    n += kWord - n % kWord;
    while (n < end.value()) {
      uint64_t w = n / kWord;
      if (uint64_t words = words_[w / kWord & wordsMask_] >> (w & runMask_)) {
        n += kWord * static_cast<uint64_t>(std::countr_zero(words));
        return least(n, wordOf(n), end);
      }
      n += kWord * (runMask_ + 1 - (w & runMask_));
    }
    return end;
  }

 private:
  static constexpr uint64_t kWord = 64;
  static PacketNumber least(uint64_t n, uint64_t bits, PacketNumber end) {
    return std::min(PacketNumber(n + static_cast<uint64_t>(std::countr_zero(bits))), end);
  }
  uint64_t wordOf(uint64_t n) const { return bits_[n / kWord & bitsMask_]; }

  std::vector<uint64_t> bits_;   ///< by number, modulo the span
  std::vector<uint64_t> words_;  ///< those words of bits_ that are not 0
  uint64_t bitsMask_, wordsMask_;
  uint64_t runMask_;  ///< of the words of bits_ that a word of words_ speaks of
};

}  // namespace braid
