#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "coding/symbol_store.h"

namespace braid {

/// The last symbols of one subflow, by packet number (CoFUSO section 4.3: the packet buffer). A packet number
/// that is ahead wipes out the one that had its place.
class SymbolRing {
 public:
  /// `packets` is rounded up to a power of two.
  SymbolRing(size_t symbolCapacity, size_t packets);
  /// Bytes of such a ring.
  static size_t footprint(size_t symbolCapacity, size_t packets);

  /// How many symbols it has places for.
  size_t packets() const { return entries_.size(); }
  /// Has so many places from now on, rounded up. Of symbols for one place it keeps the newest.
  void resize(size_t symbolCapacity, size_t packets);

  /// A symbol that arrived; the pieces fit the capacity. False when it is there already or older than the
  /// ring.
  bool add(uint64_t pn, std::span<const ByteView> pieces, Time now);
  /// How many places it needs to hold this symbol, too, without one going that came within `keep` before `now`; as
  /// many as it has where not even `most` would do for one that comes so late.
  size_t placesFor(uint64_t pn, Time now, Duration keep, size_t most) const;
  /// A symbol of this packet number has no place any more.
  bool isOld(uint64_t pn) const {
    return newest_ != kNone && newest_ >= entries_.size() && pn <= newest_ - entries_.size();
  }
  /// A symbol that decoding gave back. It does not move the ring, so that a peer which names packet numbers
  /// far ahead cannot shut out those that come. It counts as come when its neighbours did.
  bool addRestored(uint64_t pn, ByteView symbol);
  /// The symbol, when it is there.
  std::optional<ByteView> find(uint64_t pn) const;

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  struct Entry {
    uint64_t pn = kNone;
    uint32_t size = 0;
    uint32_t came = 0;  // see stamp()
  };
  /// A time in milliseconds; begins again after 49 days.
  static uint32_t stamp(Time t);

  size_t placeOf(uint64_t pn) const { return pn & (entries_.size() - 1); }

  std::vector<Entry> entries_;
  SymbolStore symbols_;
  uint64_t newest_ = kNone;  // of those that arrived
  uint32_t latest_ = 0;      // when one did
};

}  // namespace braid
