#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "coding/block.h"
#include "coding/erasure_code.h"
#include "coding/symbol_groups.h"
#include "coding/symbol_store.h"

namespace braid {

/// Makes the parities of one block after the other (CoFUSO section 4.2.1). Symbols are copied: their data may
/// be acknowledged and gone between two parities. Each parity is computed when its turn comes, over the
/// symbols that are in the block then; callers add all symbols before the first parity.
class BlockEncoder {
 public:
  /// `symbolCapacity`: bytes of the largest symbol, at least 1. Memory is taken at the first begin() and
  /// grows with the largest block seen.
  explicit BlockEncoder(size_t symbolCapacity);

  /// A new, empty block.
  void begin();
  /// Copies the symbol made of these pieces; its column is symbols(). False, and nothing done, when it is
  /// empty, larger than the capacity, or the block holds kMaxBlockSymbols.
  bool add(std::span<const ByteView> pieces);
  /// K so far.
  size_t symbols() const { return symbols_.size(); }
  /// Bytes of the longest symbol so far.
  size_t symbolSize() const { return symbolSize_; }
  /// Parity `index`, computed now: symbolSize() bytes, valid until the next call of any method that is not
  /// const. Empty for an index from kMaxBlockParities on.
  ByteView parity(size_t index);

 private:
  size_t capacity_;
  size_t symbolSize_ = 0;
  SymbolGroups copies_;
  SymbolStore parity_;
  std::vector<ErasureCode::Symbol> symbols_;
};

}  // namespace braid
