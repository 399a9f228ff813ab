#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace braid {

/// Counts what an uplink carries towards its cap and closes it in time.
///
/// What is under way when an uplink closes still arrives, and the peer goes on sending until it has heard of the
/// closing or fallen silent. For that a reserve is kept back, so that the cap is not exceeded. The uplink stays
/// closed until reset() or setCap() makes room again. Ours.
class UplinkMeter {
 public:
  /// What a peer may send while it probes a path until it forgets the session: a datagram a second for 180 s
  /// (docs/protocol.md section 10).
  static constexpr uint64_t kLeastReserve = 512 << 10;

  /// Bytes of a period, and of them those used so far.
  UplinkMeter(uint64_t cap, uint64_t used) : cap_(cap) { reset(used); }

  /// The uplink carried so many bytes, in either direction. True when they close it.
  bool add(uint64_t bytes, Time now);
  /// A new period, of which `used` is gone.
  void reset(uint64_t used);
  void setCap(uint64_t cap);
  bool closed() const { return closed_; }
  uint64_t cap() const { return cap_; }
  uint64_t used() const { return used_; }
  /// Bytes that are kept back now: kLeastReserve and two seconds as busy as the last or the present one.
  uint64_t reserve() const { return kLeastReserve + 2 * std::max(lastSecond_, thisSecond_); }

 private:
  bool isFull() const { return used_ + reserve() >= cap_; }

  uint64_t cap_;
  uint64_t used_ = 0;
  bool closed_ = false;
  Time second_ = Time::min();  // when thisSecond_ began
  uint64_t lastSecond_ = 0, thisSecond_ = 0;
};

}  // namespace braid
