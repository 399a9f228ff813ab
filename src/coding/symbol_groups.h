#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "coding/symbol_store.h"

namespace braid {

/// Buffers for symbols, as in a SymbolStore, that become more by a few at a time, up to a bound. Those that are there
/// keep their places.
class SymbolGroups {
 public:
  /// `capacity`: bytes of the largest symbol. `most`: buffers there may be.
  SymbolGroups(size_t capacity, size_t most) : capacity_(capacity), most_(most) {}

  /// How many buffers there are.
  size_t size() const { return std::min(most_, groups_.size() * kGroup); }
  uint8_t* operator[](size_t i) const { return groups_[i / kGroup][i % kGroup]; }
  /// Bytes that all of them take.
  size_t footprint() const { return SymbolStore::footprint(capacity_, size()); }
  /// Bytes that the next grow() adds; 0: there are as many as there may be.
  size_t growth() const { return SymbolStore::footprint(capacity_, more()); }
  /// Adds some buffers; growth() must not be 0.
  void grow() { groups_.emplace_back(capacity_, more()); }
  /// Frees all of them.
  void clear() { groups_ = std::vector<SymbolStore>(); }

 private:
  /// Buffers of a group: about 8 KB for datagrams of 2 KB. Ours.
  static constexpr size_t kGroup = 4;

  size_t more() const { return std::min(kGroup, most_ - size()); }

  size_t capacity_;
  size_t most_;
  std::vector<SymbolStore> groups_;  // all full, but the last one when `most_` is no multiple of kGroup
};

}  // namespace braid
