#include "coding/symbol_ring.h"

#include <bit>

namespace braid {

SymbolRing::SymbolRing(size_t symbolCapacity, size_t packets)
    : entries_(std::bit_ceil(packets)), symbols_(symbolCapacity, entries_.size()) {}

bool SymbolRing::add(uint64_t pn, std::span<const ByteView> pieces) {
  Entry& entry = entries_[placeOf(pn)];
  if (entry.pn == pn || isOld(pn)) return false;
  if (newest_ == kNone || pn > newest_) newest_ = pn;
  entry = {pn, totalSize(pieces)};
  joinSymbol(symbols_[placeOf(pn)], pieces);
  return true;
}

bool SymbolRing::addRestored(uint64_t pn, ByteView symbol) {
  Entry& entry = entries_[placeOf(pn)];
  if (isOld(pn) || (entry.pn != kNone && entry.pn >= pn)) return false;
  // Without the padding, which may reach beyond what another block gives as its longest symbol.
  while (!symbol.empty() && symbol.back() == 0) symbol = symbol.first(symbol.size() - 1);
  entry = {pn, symbol.size()};
  joinSymbol(symbols_[placeOf(pn)], {&symbol, 1});
  return true;
}

std::optional<ByteView> SymbolRing::find(uint64_t pn) const {
  const Entry& entry = entries_[placeOf(pn)];
  if (entry.pn != pn) return std::nullopt;
  return ByteView(symbols_[placeOf(pn)], entry.size);
}

}  // namespace braid
