// A QUIC sender over two unequal paths: all combinations of losses and delays, with and without
// ordered delivery.

#include <gtest/gtest.h>

#include <vector>

#include "simnet/quic_flow.h"
#include "tests/sim/scenario.h"

namespace braid::sim::order_quic_test {
namespace {

constexpr uint16_t kPort = 443;
constexpr double kRates = 50_Mbit + 30_Mbit;
constexpr Duration kMeasured = 6s;

struct Paths {
  double loss;     // of the faster one
  Duration delay;  // of the slower one, one way; the faster one has 10 ms
};

struct Result {
  double goodput;   // goodput as a share of the links' rates
  double spurious;  // share of packets that were declared lost and had arrived
  double lost;
};

/// Measured from the fourth second on.
Result download(Paths paths, Delivery delivery, uint64_t seed) {
  TunnelOptions options;
  options.recoveryClasses = {{17, {}, kPort, kPort, options.recovery, delivery}};
  Scenario s(seed, options);
  s.path("wifi", {.rateBitsPerSecond = 50_Mbit, .delay = 10ms, .loss = paths.loss});
  s.path("lte", {.rateBitsPerSecond = 30_Mbit, .delay = paths.delay}).start();
  auto& flow = s.world.add<QuicFlow>(s.hub, s.edge, kPort);
  s.run(4s);
  uint64_t sent = flow.sent(), received = flow.received(), spurious = flow.spurious(),
           lost = flow.lost();
  s.run(kMeasured);
  auto packets = static_cast<double>(flow.sent() - sent);
  EXPECT_EQ(flow.repeats(), 0u) << "each datagram once";
  return {static_cast<double>(flow.received() - received) * QuicFlow::kPayload * 8 /
              (toSeconds(kMeasured) * kRates),
          static_cast<double>(flow.spurious() - spurious) / packets,
          static_cast<double>(flow.lost() - lost) / packets};
}

class QuicOverTwoPaths : public testing::TestWithParam<Paths> {};

TEST_P(QuicOverTwoPaths, OrderMakesThemOnePath) {
  constexpr int kSeeds = 4;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Result inOrder = download(GetParam(), Delivery::kOrdered, seed);
    Result atOnce = download(GetParam(), Delivery::kTimely, seed);
    EXPECT_LT(inOrder.spurious, 1e-4);
    EXPECT_LT(inOrder.lost, 5e-4) << "repaired before the sender could know";
    EXPECT_GT(atOnce.spurious, inOrder.spurious)
        << "without order the same sender takes reordering for loss";
    EXPECT_GT(inOrder.goodput, 1.4 * atOnce.goodput);
    EXPECT_GT(inOrder.goodput, 0.6);
  }
}

INSTANTIATE_TEST_SUITE_P(Sweep, QuicOverTwoPaths, testing::ValuesIn([] {
                           std::vector<Paths> all;
                           for (double loss : {0.0, 0.01, 0.03})
                             for (Duration delay : {15ms, 30ms, 110ms})
                               all.push_back({loss, delay});
                           return all;
                         }()));

}  // namespace
}  // namespace braid::sim::order_quic_test
