#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ackshim/leg_rtt.h"

namespace braid {

/// The round trips between this gateway and hosts, from the flows of before: what is known of a host when a
/// new connection to it has not measured anything. A host takes the place of another one now and
/// then; nothing is searched.
class HostLegs {
 public:
  /// `hash`: of the host's address, keyed.
  void note(uint64_t hash, Duration rtt) {
    Place& place = places_[hash % kPlaces];
    if (place.hash != hash) place = {hash, {}};
    place.rtt.onSample(rtt);
  }
  /// nullptr when nothing is known.
  const LegRtt* find(uint64_t hash) const {
    const Place& place = places_[hash % kPlaces];
    return place.hash == hash && place.rtt.hasSample() ? &place.rtt : nullptr;
  }

 private:
  static constexpr size_t kPlaces = 1024;
  struct Place {
    uint64_t hash = 0;
    LegRtt rtt;
  };
  std::array<Place, kPlaces> places_{};
};

}  // namespace braid
