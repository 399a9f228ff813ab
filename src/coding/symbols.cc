#include "coding/symbols.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace braid {

SymbolRing::SymbolRing(size_t symbolCapacity, size_t packets)
    : entries_(std::bit_ceil(packets)), symbols_(symbolCapacity, entries_.size()) {}

size_t SymbolRing::footprint(size_t symbolCapacity, size_t packets) {
  size_t places = std::bit_ceil(packets);
  return places * sizeof(Entry) + SymbolStore::footprint(symbolCapacity, places);
}

// `newest_` is copied, not derived from the entries: restored symbols, whose packet numbers the
// peer may have named far ahead, do not count as newer than what arrived.
void SymbolRing::resize(size_t symbolCapacity, size_t packets) {
  SymbolRing next(symbolCapacity, packets);
  next.newest_ = newest_;
  next.latest_ = latest_;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.pn == kNone) continue;
    Entry& place = next.entries_[next.placeOf(entry.pn)];
    if (place.pn != kNone && place.pn > entry.pn) continue;
    place = entry;
    ByteView symbol(symbols_[i], entry.size);
    joinSymbol(next.symbols_[next.placeOf(entry.pn)], {&symbol, 1});
  }
  *this = std::move(next);
}

uint32_t SymbolRing::stamp(Time t) {
  return static_cast<uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(t.time_since_epoch()).count());
}

size_t SymbolRing::placesFor(uint64_t pn, Time now, Duration keep, size_t most) const {
  if (isOld(pn)) {
    const uint64_t needed = std::bit_ceil(newest_ - pn + 1);
    return needed <= most ? static_cast<size_t>(needed) : entries_.size();
  }
  const Entry& entry = entries_[placeOf(pn)];
  const bool goes = entry.pn != kNone && entry.pn < pn &&
                    std::chrono::milliseconds(stamp(now) - entry.came) < keep;
  if (!goes) return entries_.size();
  return static_cast<size_t>(std::min<uint64_t>(most, std::bit_ceil(pn - entry.pn + 1)));
}

bool SymbolRing::add(uint64_t pn, std::span<const ByteView> pieces, Time now) {
  Entry& entry = entries_[placeOf(pn)];
  if (entry.pn == pn || isOld(pn)) return false;
  if (newest_ == kNone || pn > newest_) newest_ = pn;
  latest_ = stamp(now);
  entry = {pn, static_cast<uint32_t>(totalSize(pieces)), latest_};
  joinSymbol(symbols_[placeOf(pn)], pieces);
  return true;
}

bool SymbolRing::addRestored(uint64_t pn, ByteView symbol) {
  Entry& entry = entries_[placeOf(pn)];
  if (isOld(pn) || (entry.pn != kNone && entry.pn >= pn)) return false;
  // Strips the padding: with it, the symbol could be longer than the longest symbol of another
  // block.
  while (!symbol.empty() && symbol.back() == 0) symbol = symbol.first(symbol.size() - 1);
  uint32_t came = latest_;
  for (uint64_t neighbour : {pn - 1, pn + 1}) {
    const Entry& place = entries_[placeOf(neighbour)];
    if (place.pn == neighbour && neighbour != kNone) came = place.came;
  }
  entry = {pn, static_cast<uint32_t>(symbol.size()), came};
  joinSymbol(symbols_[placeOf(pn)], {&symbol, 1});
  return true;
}

std::optional<ByteView> SymbolRing::find(uint64_t pn) const {
  const Entry& entry = entries_[placeOf(pn)];
  if (entry.pn != pn) return std::nullopt;
  return ByteView(symbols_[placeOf(pn)], entry.size);
}

}  // namespace braid
