// The parts of the experiments, and results that must hold for any parameters.

#include "evaluation/recovery/recovery_experiments.h"

#include <gtest/gtest.h>

#include "evaluation/models/flows.h"
#include "evaluation/models/raw_flows.h"
#include "simnet/link/link.h"

namespace braid::sim::experiment_test {
namespace {

TEST(Loss, BurstsHaveTheirLengthAndRate) {
  LinkOptions options;
  Loss{.rate = 0.02, .burst = 4}.apply(options);
  EXPECT_EQ(options.loss, 0);
  Link<int> link(options, 1);
  constexpr int kPackets = 400000;
  int lost = 0, runs = 0;
  bool before = false;
  for (int i = 0; i < kPackets; ++i) {
    bool gone = !link.push(i, 100, Time{});
    lost += gone;
    runs += gone && !before;
    before = gone;
    while (link.pop(Time{})) {
    }
  }
  EXPECT_NEAR(static_cast<double>(lost) / kPackets, 0.02, 0.002);
  EXPECT_NEAR(static_cast<double>(lost) / runs, 4, 0.3);
}

TEST(Loss, WithoutBurstsIsIndependent) {
  LinkOptions options;
  Loss{.rate = 0.02, .burst = 1}.apply(options);
  EXPECT_EQ(options.loss, 0.02);
  EXPECT_EQ(options.bursts, GilbertElliott{});
}

// Two subflows over one cable together get its rate, not twice as much.
TEST(Network, SubflowsShareTheirLinks) {
  Network network(1, tunnelOptions({}, "bbr"));
  Network::Pair pair = network.addPair();
  Cable cable = network.cable({.rateBitsPerSecond = 10e6, .delay = 5ms});
  network.join(pair, {cable});
  network.join(pair, {cable});
  network.start();
  MessageOptions message{.bytes = 1'250'000, .mss = segmentSize(*pair.server)};
  FlowResult result = runFlow(network, pair, 1000, message, 1s);
  EXPECT_TRUE(result.complete);
  EXPECT_GT(result.seconds, 1.0);  // 10 Mbit
  EXPECT_LT(result.seconds, 1.4);
  EXPECT_EQ(network.world.failure(), "");
}

TEST(Network, LinksLoseOnceTheTunnelsAreUp) {
  Network network(1, tunnelOptions({}, "newreno"));
  Network::Pair pair = network.addPair();
  Cable good = network.cable({.delay = 5ms}), bad = network.cable({.delay = 5ms});
  network.join(pair, {good});
  network.join(pair, {good, bad});
  network.lose(*bad.down, {.rate = 1, .burst = 1});
  EXPECT_EQ(bad.down->options().loss, 0);
  network.start();
  EXPECT_EQ(bad.down->options().loss, 1);
  EXPECT_EQ(bad.up->options().loss, 0);
}

// The route of a fabric's connection: its RTT is the paper's, and smaller within one rack.
TEST(Network, FabricHasItsRtt) {
  Fabric fabric(1, tunnelOptions({}, "newreno", 4), {}, {});
  Network::Pair far = fabric.connect(4, 1, 4), near = fabric.connect(1, 2, 4);
  fabric.network.start();
  auto rtt = [](const Network::Pair& pair) {
    return pair.client->status().peers[0].subflows[0].minRtt;
  };
  EXPECT_NEAR(toSeconds(rtt(far)), 280e-6, 60e-6);
  EXPECT_NEAR(toSeconds(rtt(near)), 187e-6, 60e-6);
}

TEST(MessageFlow, TakesARoundTripAndTheSerialisation) {
  Network network(1, tunnelOptions({}, "newreno"));
  Network::Pair pair = network.addPair();
  LinkOptions link{.rateBitsPerSecond = 8e6, .delay = 20ms};
  network.join(pair, "one", link, link);
  network.start();
  MessageOptions message{.bytes = 4000, .mss = 1000};
  FlowResult result = runFlow(network, pair, 1000, message, 100ms);
  EXPECT_TRUE(result.complete);
  EXPECT_FALSE(result.timeout);
  EXPECT_GT(result.seconds, 0.044);
  EXPECT_LT(result.seconds, 0.046);
}

// A flow with an end, as AMP's data mining has them.
TEST(Saturation, EndsWithTheBytesThatItHas) {
  Network network(1, tunnelOptions({}, "newreno"));
  Network::Pair pair = network.addPair();
  LinkOptions link{.rateBitsPerSecond = 8e6, .delay = 20ms};
  network.join(pair, "one", link, link);
  network.start();
  World& world = network.world;
  Time began = world.now();
  auto& flow = world.add<Saturation>(*pair.client, *pair.server, 1000, 1000, 32, 99'500);
  world.run(80ms);
  EXPECT_EQ(flow.doneAt(), kNever);
  world.run(1s);
  EXPECT_EQ(flow.received(), 100'000u);  // whole segments
  EXPECT_GT(flow.doneAt() - began, 100ms);
  EXPECT_LT(flow.doneAt() - began, 300ms);
}

Params policy(const char* name) {
  Params params;
  params.policy = name;
  return params;
}

// CoFUSO fig. 9(a): a parity restores any of the ten packets, a copy of the oldest only the first.
TEST(Targeted, CofusoRestoresAnyPacketFusoTheFirst) {
  Json cofuso = runTargeted(policy("cofuso"))["fct_by_packet"];
  Json fuso = runTargeted(policy("fuso"))["fct_by_packet"];
  Json none = runTargeted(policy("none"))["fct_by_packet"];
  size_t count = cofuso.size();  // of 29 packets on three subflows, those of the worst one
  ASSERT_GE(count, 9u);
  ASSERT_EQ(fuso.size(), count);
  ASSERT_EQ(none.size(), count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_LE(cofuso[i], 1.25) << i;
    EXPECT_EQ(fuso[i] <= 1.25, i == 0) << i;
    EXPECT_GT(none[i], 1.9) << i;
  }
}

// The same seed: the same flows, and the same losses as far as the same packets are sent.
TEST(Responses, AreTheSameForEveryPolicy) {
  Params params = policy("none");
  params.flows = 60;
  params.loss = 0;
  Json none = runResponses(params);
  params.policy = "cofuso";
  Json cofuso = runResponses(params);
  EXPECT_EQ(none["lost"], 0);
  EXPECT_NEAR(none["p50"].get<double>(), cofuso["p50"].get<double>(), 0.002);
  EXPECT_GT(cofuso["extra_load"], 0.0);
  EXPECT_EQ(none["extra_load"], 0.0);
}

}  // namespace
}  // namespace braid::sim::experiment_test
