#pragma once

// Coding blocks, as sender and receiver see them (CoFUSO section 4). A block is K symbols, each the
// data that one datagram carried, and up to M parities over them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace braid {

/// Upper limits for the symbols and for the parities of a block. K_max and M_max are settings
/// within these limits.
inline constexpr size_t kMaxBlockSymbols = 128;
inline constexpr size_t kMaxBlockParities = 16;

/// Symbols of consecutive datagrams of one subflow. The symbol of a datagram is all its DATA and
/// STREAM frames, headers included, one after the other. In a block the shorter symbols count as
/// padded with zeros, which read as PADDING frames.
struct SymbolRange {
  uint8_t subflow = 0;
  uint64_t first = 0;  ///< packet number of the first symbol
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

/// Alignment of a symbol's bytes, and the unit to which its length is padded: a cache line.
/// gf-complete needs source and destination addresses that are congruent modulo 16.
inline constexpr size_t kSymbolAlignment = 64;

/// `size` rounded up to whole cache lines.
constexpr size_t paddedSymbol(size_t size) {
  return (size + kSymbolAlignment - 1) / kSymbolAlignment * kSymbolAlignment;
}

/// Bytes of all pieces together.
inline size_t totalSize(std::span<const ByteView> pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), size_t{0},
                         [](size_t sum, ByteView piece) { return sum + piece.size(); });
}

/// Zeros from `size` to the next cache line.
inline void padSymbol(uint8_t* symbol, size_t size) {
  std::memset(symbol + size, 0, paddedSymbol(size) - size);
}

/// Writes the pieces one after the other, padded with zeros. The caller has checked that they fit.
inline void joinSymbol(uint8_t* to, std::span<const ByteView> pieces) {
  size_t size = 0;
  for (ByteView piece : pieces) {
    if (!piece.empty()) std::memcpy(to + size, piece.data(), piece.size());
    size += piece.size();
  }
  padSymbol(to, size);
}

/// An array of buffers for symbols of up to `capacity` bytes. The memory is not touched before it
/// is used.
class SymbolStore {
 public:
  SymbolStore() = default;
  SymbolStore(size_t capacity, size_t count)
      : stride_(strideOf(capacity)),
        bytes_(static_cast<uint8_t*>(
            ::operator new (stride_* count, std::align_val_t{kSymbolAlignment}))) {}

  /// Bytes that such an array takes.
  static size_t footprint(size_t capacity, size_t count) { return strideOf(capacity) * count; }

  bool empty() const { return !bytes_; }
  uint8_t* operator[](size_t i) const { return bytes_.get() + i * stride_; }

 private:
  struct Free {
    void operator()(uint8_t* p) const { ::operator delete (p, std::align_val_t{kSymbolAlignment}); }
  };
  // An odd number of cache lines. Symbols that are a power of two apart would share the same few
  // sets of the cache.
  static size_t strideOf(size_t capacity) { return paddedSymbol(capacity) | kSymbolAlignment; }

  size_t stride_ = 0;
  std::unique_ptr<uint8_t[], Free> bytes_;
};

/// Buffers for symbols, as in a SymbolStore, but their number grows by a few at a time, up to a
/// bound. Existing buffers keep their addresses.
class SymbolGroups {
 public:
  /// `capacity`: bytes of the largest symbol. `most`: largest number of buffers.
  SymbolGroups(size_t capacity, size_t most) : capacity_(capacity), most_(most) {}

  /// How many buffers there are.
  size_t size() const { return std::min(most_, groups_.size() * kGroup); }
  uint8_t* operator[](size_t i) const { return groups_[i / kGroup][i % kGroup]; }
  /// Bytes that all of them take.
  size_t footprint() const { return SymbolStore::footprint(capacity_, size()); }
  /// Bytes that the next grow() adds; 0: the largest number of buffers is reached.
  size_t growth() const { return SymbolStore::footprint(capacity_, more()); }
  /// Adds some buffers; growth() must not be 0.
  void grow() { groups_.emplace_back(capacity_, more()); }
  /// Frees all of them.
  void clear() { groups_ = std::vector<SymbolStore>(); }

 private:
  /// Buffers of a group: about 8 KB for datagrams of 2 KB.
  static constexpr size_t kGroup = 4;

  size_t more() const { return std::min(kGroup, most_ - size()); }

  size_t capacity_;
  size_t most_;
  // All of kGroup buffers, except the last one when `most_` is not a multiple of kGroup.
  std::vector<SymbolStore> groups_;
};

/// The last symbols of one subflow, by packet number (CoFUSO section 4.3: the packet buffer). A
/// symbol with a newer packet number overwrites the older symbol in its place.
class SymbolRing {
 public:
  /// `packets` is rounded up to a power of two.
  SymbolRing(size_t symbolCapacity, size_t packets);
  /// Bytes that such a ring takes.
  static size_t footprint(size_t symbolCapacity, size_t packets);

  /// How many symbols it has places for.
  size_t packets() const { return entries_.size(); }
  /// Changes the number of places to `packets`, rounded up to a power of two. When several symbols
  /// have the same place, the newest is kept.
  void resize(size_t symbolCapacity, size_t packets);

  /// Adds a symbol that arrived; the pieces fit the capacity. False when it is there already or too
  /// old for the ring.
  bool add(uint64_t pn, std::span<const ByteView> pieces, Time now);
  /// How many places the ring needs to hold this symbol without overwriting one that came within
  /// `keep` before `now`; at most `most`. If the symbol is so old that not even `most` places would
  /// hold it: the current number.
  size_t placesFor(uint64_t pn, Time now, Duration keep, size_t most) const;
  /// This packet number is too old to have a place in the ring.
  bool isOld(uint64_t pn) const {
    return newest_ != kNone && newest_ >= entries_.size() && pn <= newest_ - entries_.size();
  }
  /// Adds a symbol that decoding restored. It does not move the ring. Otherwise a peer that names
  /// packet numbers far ahead could shut out the symbols that arrive. It counts as having come when
  /// its neighbours came.
  bool addRestored(uint64_t pn, ByteView symbol);
  /// The symbol; nullopt when it is not there.
  std::optional<ByteView> find(uint64_t pn) const;

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  struct Entry {
    uint64_t pn = kNone;
    uint32_t size = 0;
    uint32_t came = 0;  // see stamp()
  };
  /// A time in milliseconds; wraps around after 49 days.
  static uint32_t stamp(Time t);

  size_t placeOf(uint64_t pn) const { return pn & (entries_.size() - 1); }

  std::vector<Entry> entries_;
  SymbolStore symbols_;
  uint64_t newest_ = kNone;  // highest packet number that arrived
  uint32_t latest_ = 0;      // when the last symbol arrived, see stamp()
};

}  // namespace braid
