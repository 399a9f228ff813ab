#include "coding/block_encoder.h"

#include <algorithm>

namespace braid {

BlockEncoder::BlockEncoder(size_t symbolCapacity) : capacity_(symbolCapacity) {
  ErasureCode::prepare();
}

void BlockEncoder::begin() {
  if (parity_.empty()) {
    parity_ = SymbolStore(capacity_, 1);
    groups_.reserve(kMaxBlockSymbols / kGroup);
    groups_.emplace_back(capacity_, kGroup);
    symbols_.reserve(kMaxBlockSymbols);
  }
  symbols_.clear();
  symbolSize_ = 0;
}

bool BlockEncoder::add(std::span<const ByteView> pieces) {
  const size_t size = totalSize(pieces);
  const size_t column = symbols_.size();
  if (size == 0 || size > capacity_ || column == kMaxBlockSymbols || parity_.empty()) return false;
  if (column / kGroup == groups_.size()) groups_.emplace_back(capacity_, kGroup);
  uint8_t* to = groups_[column / kGroup][column % kGroup];
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
