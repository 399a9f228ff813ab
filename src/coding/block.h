#pragma once

// What sender and receiver call a coding block (CoFUSO section 4): K symbols, each the data that one datagram
// carried, and up to M parities over them.

#include <array>
#include <cstddef>
#include <cstdint>

namespace braid {

/// Most symbols of a block, and most parities. Ours: K_max and M_max are settings below them.
inline constexpr size_t kMaxBlockSymbols = 128;
inline constexpr size_t kMaxBlockParities = 16;

/// The symbol of a datagram: all its DATA frames, headers included, one after the other. In a block the
/// shorter ones count as padded with zeros, which read as PADDING frames.
struct SymbolRange {
  uint8_t subflow = 0;
  uint64_t first = 0;  ///< packet number of the first
  uint32_t count = 0;  ///< 1..kMaxBlockSymbols consecutive packet numbers
  bool operator==(const SymbolRange&) const = default;
};

/// Which symbols a block holds, in the order of the code's columns.
struct BlockDescription {
  uint16_t block = 0;       ///< counts up with each block of the session, modulo 2^16
  uint8_t parities = 0;     ///< M, 1..kMaxBlockParities
  uint16_t symbolSize = 0;  ///< bytes of the longest symbol, and of each parity
  size_t rangeCount = 0;
  std::array<SymbolRange, kMaxBlockSymbols> ranges;  ///< disjoint

  /// K
  size_t symbols() const {
    size_t sum = 0;
    for (size_t i = 0; i < rangeCount; ++i) sum += ranges[i].count;
    return sum;
  }
};

}  // namespace braid
