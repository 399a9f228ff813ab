#pragma once

#include <cstddef>
#include <cstdint>

/// The entry point of a fuzzer: takes any bytes, and aborts when a check fails. The same bytes
/// always give the same run.
extern "C" void fuzzInput(const uint8_t* data, size_t size);

namespace braid::fuzz {

/// Limit of CPU time for an input under sanitizers: a constant plus a time per byte. Chosen
/// generously, so that only a cost that grows faster than the input exceeds it.
inline constexpr double kSecondsPerInput = 0.5;
inline constexpr double kSecondsPerByte = 500e-6;

/// CPU time of the last input.
double lastSeconds();

}  // namespace braid::fuzz
