#pragma once

#include <atomic>
#include <cstdint>

/// The heap of a program that is linked with heap.cc: counts allocations, and fails on request.
namespace braid::test {

/// Number of allocations.
extern std::atomic<uint64_t> allocations;
/// Bytes in use, as counted by the heap, which rounds sizes up.
extern std::atomic<int64_t> heldBytes;
/// Makes the allocation with this number, counted from now, throw std::bad_alloc; 0: none.
extern std::atomic<int64_t> failingAllocation;

}  // namespace braid::test
