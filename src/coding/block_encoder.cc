#include "coding/block_encoder.h"

#include <algorithm>

namespace braid {

BlockEncoder::BlockEncoder(size_t symbolCapacity)
    : capacity_(symbolCapacity), copies_(symbolCapacity, kMaxBlockSymbols) {
  ErasureCode::prepare();
}

void BlockEncoder::begin() {
  if (parity_.empty()) parity_ = SymbolStore(capacity_, 1);
  symbols_.clear();
  symbolSize_ = 0;
}

bool BlockEncoder::add(std::span<const ByteView> pieces) {
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

ByteView BlockEncoder::parity(size_t index) {
  if (parity_.empty() || index >= kMaxBlockParities) return {};
  ByteSpan out(parity_[0], symbolSize_);
  std::memset(out.data(), 0, paddedSymbol(symbolSize_));
  ErasureCode::addTo(out, index, symbols_);
  return out;
}

}  // namespace braid
