// Allocations that fail while two gateways start and make a session: std::bad_alloc comes out, wherever it began, and
// everything is given back. (A daemon then ends in good order: docs/operations.md.) Sanitizers look for what is kept.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/sim/scenario.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // false alarm on replaced operators
#endif

namespace {

std::atomic<int64_t> left{0};  // until the one that fails; 0: none does
std::atomic<uint64_t> asked{0};

void* take(size_t size, size_t alignment) {
  ++asked;
  if (left > 0 && --left == 0) throw std::bad_alloc();
  if (void* p = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)) return p;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t size) {
  return take(size, alignof(std::max_align_t));
}
void* operator new(size_t size, std::align_val_t alignment) {
  return take(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace braid::sim::scarce_test {
namespace {

// From nothing to a session that has carried some packets. True: it came up.
bool live() {
  World world(3);
  TunnelOptions options;
  options.recovery = "cofuso";
  Node& edge = world.addNode("edge", options);
  Node& hub = world.addNode("hub", options);
  edge.poolLimit = hub.poolLimit = 1024;
  world.pair(edge, hub);
  world.join(edge, hub, "dsl", kDsl, kDsl);
  world.join(edge, hub, "lte", kLte, kLte);
  world.start();
  TcpOptions small;
  small.bytes = 60'000;
  TcpFlow& file = world.add<TcpFlow>(hub, edge, uint16_t{1000}, small);
  return world.runUntil([&] { return file.done(); }, 5s) && file.wrongBytes() == 0;
}

TEST(Scarce, EveryAllocationOfASessionMayFail) {
  constexpr int64_t kPlaces = 400;
  ASSERT_TRUE(live());
  const uint64_t before = asked;
  ASSERT_TRUE(live());
  const auto all = static_cast<int64_t>(asked - before);
  ASSERT_GT(all, 100);
  int64_t thrown = 0, tried = 0;
  for (int64_t n = 1; n <= all; n += std::max<int64_t>(1, all / kPlaces), ++tried) {
    left = n;
    try {
      // What fails where a packet buffer is made is a counted drop, and all comes to a good end.
      EXPECT_TRUE(live()) << "allocation " << n;
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
    left = 0;
  }
  EXPECT_GT(thrown, tried / 2);
}

}  // namespace
}  // namespace braid::sim::scarce_test
