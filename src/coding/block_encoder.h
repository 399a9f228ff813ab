#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "coding/erasure_code.h"
#include "coding/symbols.h"

namespace braid {

/// Makes the parities of one block after the other (CoFUSO section 4.2.1). Symbols are copied,
/// because their data may be acknowledged and freed between two parities. Each parity is computed
/// when it is asked for, over the symbols that are in the block then; callers add all symbols
/// before the first parity.
class BlockEncoder {
 public:
  /// `symbolCapacity`: bytes of the largest symbol, at least 1. Memory is allocated at the first
  /// begin() and grows with the largest block seen.
  explicit BlockEncoder(size_t symbolCapacity);

  /// Begins a new, empty block.
  void begin();
  /// Copies the symbol made of these pieces into column symbols(). Returns false, and does nothing,
  /// when the symbol is empty, it is larger than the capacity, or the block holds kMaxBlockSymbols.
  bool add(std::span<const ByteView> pieces);
  /// Symbols in the block (K).
  size_t symbols() const { return symbols_.size(); }
  /// Bytes of the longest symbol in the block.
  size_t symbolSize() const { return symbolSize_; }
  /// Parity `index`, computed now: symbolSize() bytes, valid until the next call of any method that
  /// is not const. Empty for an index from kMaxBlockParities on.
  ByteView parity(size_t index);

 private:
  size_t capacity_;
  size_t symbolSize_ = 0;
  SymbolGroups copies_;
  SymbolStore parity_;
  std::vector<ErasureCode::Symbol> symbols_;
};

inline BlockEncoder::BlockEncoder(size_t symbolCapacity)
    : capacity_(symbolCapacity), copies_(symbolCapacity, kMaxBlockSymbols) {
  ErasureCode::prepare();
}

inline void BlockEncoder::begin() {
  if (parity_.empty()) parity_ = SymbolStore(capacity_, 1);
  symbols_.clear();
  symbolSize_ = 0;
}

inline bool BlockEncoder::add(std::span<const ByteView> pieces) {
  const size_t size = totalSize(pieces);
  const size_t column = symbols_.size();
  if (size == 0 || size > capacity_ || column == kMaxBlockSymbols || parity_.empty()) return false;
  if (column == copies_.size()) copies_.grow();
  uint8_t* to = copies_[column];
  joinSymbol(to, pieces);
  symbols_.push_back({column, {to, size}});
  symbolSize_ = std::max(symbolSize_, size);
  return true;
}

inline ByteView BlockEncoder::parity(size_t index) {
  if (parity_.empty() || index >= kMaxBlockParities) return {};
  ByteSpan out(parity_[0], symbolSize_);
  std::memset(out.data(), 0, paddedSymbol(symbolSize_));
  ErasureCode::addTo(out, index, symbols_);
  return out;
}

}  // namespace braid
