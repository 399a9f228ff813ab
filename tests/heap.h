#pragma once

#include <atomic>
#include <cstdint>

/// The heap of a program that heap.cc is linked to: it counts, and fails when it is told to.
namespace braid::test {

/// How often memory was asked for.
extern std::atomic<uint64_t> allocations;
/// Bytes that are in use now, as the heap counts them: it rounds up.
extern std::atomic<int64_t> heldBytes;
/// The allocation of that number from now on throws std::bad_alloc; 0: none does.
extern std::atomic<int64_t> failingAllocation;

}  // namespace braid::test
