#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "coding/symbols.h"

namespace braid {

/// The systematic Reed-Solomon code of all blocks (CoFUSO section 4.2.1), over GF(2^8) with
/// polynomial 0x11d:
///
///     parity[i] = sum over columns j of coefficient(i, j) * symbol[j]
///
/// All blocks use one generator matrix for K = 128, M = 16, from jerasure. Its first row and first
/// column are ones, so parity 0 is the XOR of the symbols. A block of fewer symbols uses a prefix
/// of the columns, one of fewer parities a prefix of the rows. Any K of its K + M packets still
/// restore all symbols.
///
/// Buffers of symbols and parities start at a multiple of kSymbolAlignment and are
/// paddedSymbol(size) bytes long; the bytes after `size` are zeros. No call allocates, except that
/// the first one of the process sets up tables.
class ErasureCode {
 public:
  /// A symbol and its column in the block.
  struct Symbol {
    size_t column = 0;  ///< below kMaxBlockSymbols
    ByteView bytes;
  };

  /// Sets up the tables; later calls do nothing.
  static void prepare();

  /// The factor of symbol `column` (below kMaxBlockSymbols) in parity `parityIndex` (below
  /// kMaxBlockParities).
  static uint8_t coefficient(size_t parityIndex, size_t column);

  /// parity ^= coefficient * symbol. The symbol is not longer than the parity.
  static void addTo(ByteSpan parity, size_t parityIndex, size_t column, ByteView symbol);

  /// Adds several symbols to a parity, in fewer passes.
  static void addTo(ByteSpan parity, size_t parityIndex, std::span<const Symbol> symbols);

  /// Restores missing symbols in place. Before the call, buffers[i] holds `size` bytes of the
  /// parity with index parities[i], from which the present symbols have been subtracted (the same
  /// as adding them). After it, buffers[i] holds the symbol of column missing[i]. All three spans
  /// have the same length, at most kMaxBlockParities; columns and indices do not repeat.
  static void restore(std::span<const size_t> missing, std::span<const size_t> parities,
                      std::span<uint8_t* const> buffers, size_t size);
};

}  // namespace braid
