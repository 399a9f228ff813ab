#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <span>

#include "base/bytes.h"

namespace braid {

/// Alignment of a symbol's bytes, and what its length is padded to: a cache line. gf-complete needs source
/// and destination congruent modulo 16.
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

/// A row of buffers for symbols of up to `capacity` bytes. The memory is not touched before it is used.
class SymbolStore {
 public:
  SymbolStore() = default;
  SymbolStore(size_t capacity, size_t count)
      : stride_(strideOf(capacity)),
        bytes_(static_cast<uint8_t*>(::operator new (stride_* count, std::align_val_t{kSymbolAlignment}))) {}

  /// Bytes of such a row.
  static size_t footprint(size_t capacity, size_t count) { return strideOf(capacity) * count; }

  bool empty() const { return !bytes_; }
  uint8_t* operator[](size_t i) const { return bytes_.get() + i * stride_; }

 private:
  struct Free {
    void operator()(uint8_t* p) const { ::operator delete (p, std::align_val_t{kSymbolAlignment}); }
  };
  // An odd number of cache lines: symbols a power of two apart would share the same few sets of the cache.
  static size_t strideOf(size_t capacity) { return paddedSymbol(capacity) | kSymbolAlignment; }

  size_t stride_ = 0;
  std::unique_ptr<uint8_t[], Free> bytes_;
};

}  // namespace braid
