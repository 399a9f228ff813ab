#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bit_ring.h"
#include "tunnel/wire/numbers.h"

namespace braid {

/// Which of the packet numbers in a window of kSpan are marked. Finding the next marked one takes the same few steps
/// whatever lies between: a bit for each number, and a bit for each word of those.
template <size_t kSpan>
class MarkedNumbers {
 public:
  void put(PacketNumber pn, bool marked) {
    uint64_t n = pn.value();
    if (marked) {
      bits_.set(n);
      words_.set(n / kWord);
    } else {
      bits_.clear(n);
      if (bits_.word(n) == 0) words_.clear(n / kWord);
    }
  }
  /// The first marked number from `from` on that is below `end`; `end` when there is none. They are at most kSpan
  /// apart, and what is outside of the window is not marked.
  PacketNumber next(PacketNumber from, PacketNumber end) const {
    if (from >= end) return end;
    uint64_t n = from.value();
    if (uint64_t here = bits_.word(n) >> n % kWord) return least(n, here, end);
    n += kWord - n % kWord;
    while (n < end.value()) {
      uint64_t w = n / kWord;
      if (uint64_t words = words_.word(w) >> w % kWord) {
        n += kWord * static_cast<uint64_t>(std::countr_zero(words));
        return least(n, bits_.word(n), end);
      }
      n += kWord * (kWord - w % kWord);
    }
    return end;
  }

 private:
  static constexpr uint64_t kWord = 64;
  static PacketNumber least(uint64_t n, uint64_t bits, PacketNumber end) {
    return std::min(PacketNumber(n + static_cast<uint64_t>(std::countr_zero(bits))), end);
  }

  BitRing<kSpan> bits_;
  BitRing<kSpan / kWord> words_;  ///< those words of bits_ that are not 0
};

}  // namespace braid
