#pragma once

#include <algorithm>
#include <cstdint>

#include "host/datagram_socket.h"

namespace braid {

/// Recognizes that segmentation offload damages datagrams: by a fault of a network card, its driver
/// or the kernel, the datagrams of a merged message (UDP GRO) are cut or filled wrongly behind the
/// first one. Their seals do not open then, while those of first datagrams, or of datagrams that
/// came alone, do. A noisy line and a forger damage all alike.
class RunDamage {
 public:
  using Place = ReceivedDatagram::Place;
  /// At least this many damaged datagrams are a pattern, and at least one of kRare.
  static constexpr uint32_t kPattern = 16, kRare = 32;
  /// Datagrams behind the first are damaged at least this many times as often as the others.
  static constexpr uint32_t kContrast = 8;
  /// After this many datagrams behind a first one, all counts are halved.
  static constexpr uint32_t kMemory = 1 << 14;

  /// `isDamaged`: the datagram names a session, and its seal does not open.
  void add(Place place, bool isDamaged) {
    Count& count = counts_[static_cast<size_t>(place)];
    ++count.all;
    count.damaged += isDamaged;
  }
  /// Whether datagrams of merged messages were added.
  bool hasBegun() const { return counts_[static_cast<size_t>(Place::kFirst)].all > 0; }
  /// Whether the pattern is there. Call after a batch.
  bool isKnown() {
    Count& later = of(Place::kLater);
    if (later.all >= kMemory) {
      for (Count& count : counts_) count.all /= 2, count.damaged /= 2;
    }
    if (later.damaged < kPattern || later.damaged * kRare < later.all) return false;
    return isRarer(of(Place::kFirst)) || isRarer(of(Place::kAlone));
  }

 private:
  struct Count {
    uint32_t all = 0, damaged = 0;
  };
  Count& of(Place place) { return counts_[static_cast<size_t>(place)]; }
  // The reference must be large enough to show it.
  bool isRarer(const Count& reference) {
    const Count& later = of(Place::kLater);
    return reference.all >= kPattern && uint64_t{reference.damaged} * later.all * kContrast <=
                                            uint64_t{later.damaged} * reference.all;
  }

  Count counts_[3];
};

}  // namespace braid
