#pragma once

// Between the units of the command line and ns-3's.

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
/// Mbit/s of so many bytes.
inline double megabits(uint64_t bytes, double seconds) {
  return static_cast<double>(bytes) * 8e-6 / seconds;
}

}  // namespace braid::crosscheck
