#pragma once

#include <algorithm>
#include <cstdint>

#include "base/field.h"
#include "base/time.h"

namespace braid {

/// What a meter shows.
struct MeterReading {
  uint64_t used = 0, cap = 0;
  bool closed = false;
};
template <>
inline constexpr auto kFieldsOf<MeterReading> = field::table<MeterReading>(
    field::gauge("used_bytes", FieldUnit::kBytes, "bytes carried in the present period", &MeterReading::used),
    field::gauge("cap_bytes", FieldUnit::kBytes, "most bytes of a period", &MeterReading::cap),
    field::flag("closed", "the cap is reached: not used until the period ends", &MeterReading::closed));

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
  UplinkMeter(uint64_t cap, uint64_t used) {
    reading_.cap = cap;
    reset(used);
  }

  /// The uplink carried so many bytes, in either direction. True when they close it.
  bool add(uint64_t bytes, Time now);
  /// A new period, of which `used` is gone.
  void reset(uint64_t used);
  void setCap(uint64_t cap);
  const MeterReading& reading() const { return reading_; }
  bool closed() const { return reading_.closed; }
  uint64_t cap() const { return reading_.cap; }
  uint64_t used() const { return reading_.used; }
  /// Bytes that are kept back now: kLeastReserve and two seconds as busy as the last or the present one.
  uint64_t reserve() const { return kLeastReserve + 2 * std::max(lastSecond_, thisSecond_); }

 private:
  bool isFull() const { return reading_.used + reserve() >= reading_.cap; }

  MeterReading reading_;
  Time second_ = Time::min();  // when thisSecond_ began
  uint64_t lastSecond_ = 0, thisSecond_ = 0;
};

}  // namespace braid
