#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace braid {

/// A bit for each of kBits numbers in a row, by the number modulo kBits. What concerns a run of numbers is done a
/// word of 64 at a time, so that whoever names the run cannot make much work of it.
template <size_t kBits>
class BitRing {
 public:
  static constexpr uint64_t kWordBits = 64;
  static constexpr size_t kWords = kBits / kWordBits;
  static_assert(kWords > 0 && kBits % kWordBits == 0);

  bool test(uint64_t n) const { return word(n) >> n % kWordBits & 1; }
  void set(uint64_t n) { place(n) |= bitOf(n); }
  void clear(uint64_t n) { place(n) &= ~bitOf(n); }
  void clearAll() { words_.fill(0); }
  void setAll() { words_.fill(~uint64_t{0}); }
  /// The word that holds the bit of `n`, which is its bit n % 64.
  uint64_t word(uint64_t n) const { return words_[n / kWordBits % kWords]; }
  /// How many numbers from `n` on have their bit set, as far as one word says.
  size_t runAt(uint64_t n) const { return static_cast<size_t>(std::countr_one(word(n) >> n % kWordBits)); }

  /// Calls visit(first, word, mask) for each word that the numbers from `first` on, `count` of them and at most
  /// kBits, have bits in: those of the mask. `first`: the number of the word's lowest bit. Gives the number of
  /// words.
  template <typename F>
  size_t forEachWord(uint64_t first, uint64_t count, F&& visit) {
    size_t words = 0;
    for (uint64_t end = first + count; first < end; ++words) {
      uint64_t low = first % kWordBits;
      uint64_t run = std::min(kWordBits - low, end - first);
      visit(first - low, place(first), (~uint64_t{0} >> (kWordBits - run)) << low);
      first += run;
    }
    return words;
  }
  /// Clears the bits of so many numbers, at most kBits; gives the number of words that they are in.
  size_t clear(uint64_t first, uint64_t count) {
    return forEachWord(first, count, [](uint64_t, uint64_t& word, uint64_t mask) { word &= ~mask; });
  }

 private:
  static uint64_t bitOf(uint64_t n) { return uint64_t{1} << n % kWordBits; }
  uint64_t& place(uint64_t n) { return words_[n / kWordBits % kWords]; }

  std::array<uint64_t, kWords> words_{};
};

}  // namespace braid
