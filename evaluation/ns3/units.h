#pragma once

// Conversions between the units of the command line and of ns-3.

#include <ns3/nstime.h>
#include <cmath>
#include <cstdint>

namespace braid::crosscheck {

inline ns3::Time microseconds(double number) {
  return ns3::NanoSeconds(static_cast<int64_t>(std::llround(number * 1e3)));
}
inline ns3::Time milliseconds(double number) {
  return microseconds(number * 1e3);
}
/// The rate in Mbit/s of `bytes` in `seconds`.
inline double megabits(uint64_t bytes, double seconds) {
  return static_cast<double>(bytes) * 8e-6 / seconds;
}

}  // namespace braid::crosscheck
