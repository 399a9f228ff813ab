#pragma once

#include <cstddef>
#include <cstdint>

/// The fuzzer: takes any bytes, and aborts when something is not as it must be. The same bytes do the same each time.
extern "C" void fuzzInput(const uint8_t* data, size_t size);

namespace braid::fuzz {

/// CPU time that an input may take under sanitizers, as a whole and for each byte. Ours; generous, so that only what
/// grows faster than the input breaks it.
inline constexpr double kSecondsPerInput = 0.5;
inline constexpr double kSecondsPerByte = 500e-6;

/// CPU time of the last input.
double lastSeconds();

}  // namespace braid::fuzz
