// The ack shim between real cores: losses outside the tunnel, on the last hop to the receiver or
// the first from the sender, must not cost a timeout of 200 ms. The hosts have no SACK and no
// timestamps; what those change is tested with real kernels (tests/e2e/shim_test.py).

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace braid::sim::shim_test {
namespace {

// The total RTT is 10 ms, 2 ms of it beyond the gateway.
const LinkOptions kPath{.rateBitsPerSecond = 100_Mbit, .delay = 4ms};
const LinkOptions kLan{.delay = 1ms};
constexpr Duration kRtt = 10ms;
constexpr uint64_t kTen = 10 * 1360;  // ten segments

struct ShimCase {
  bool down;
  bool v6;
  bool bridged = false;  ///< the gateways are bridges (TAP)
};

/// A tunnel over one path and a transfer through it. The parameter sets the direction, IP version
/// and kind of the gateways.
class ShimLab : public ::testing::TestWithParam<ShimCase> {
 protected:
  void start(TunnelOptions options = {}, LinkOptions path = kPath) {
    if (GetParam().bridged) options.mode = TunnelOptions::Mode::kTap;
    lab_ = std::make_unique<Scenario>(1, options);
    lab_->edge.bridged = lab_->hub.bridged = GetParam().bridged;
    lab_->path("dsl", path);
    sender().setLan(kLan);
    receiver().setLan(kLan);
    lab_->start().run(1s);
  }
  Node& sender() { return GetParam().down ? lab_->hub : lab_->edge; }
  Node& receiver() { return GetParam().down ? lab_->edge : lab_->hub; }
  TcpFlow& transfer(uint64_t bytes) {
    TcpOptions options;
    options.v6 = GetParam().v6;
    options.mss = 1360;
    began_ = lab_->world.now();
    return GetParam().down ? lab_->download(bytes, options) : lab_->upload(bytes, options);
  }
  /// The hop between `at` and its host loses each of these data segments (numbered from 0) once.
  void lose(Node& at, std::vector<size_t> segments) {
    auto seen = std::make_shared<std::vector<uint32_t>>();
    bool wanted = &at == &receiver();
    at.lanLoses = [=, segments = std::move(segments)](bool toHost, ByteView packet) {
      std::optional<InnerPacket> ip = parseInnerPacket(packet);
      if (toHost != wanted || !ip || !ip->tcp || ip->tcp->payloadLength == 0) return false;
      if (std::find(seen->begin(), seen->end(), ip->tcp->seq) != seen->end()) return false;
      seen->push_back(ip->tcp->seq);
      return std::find(segments.begin(), segments.end(), seen->size() - 1) != segments.end();
    };
  }
  static ActuatorCounts sum(const Node& node) {
    ActuatorCounts all;
    for (const ActuatorCounts& a : node.status().shim.counters.actuators) addCounters(all, a);
    return all;
  }
  ActuatorCounts counts(const Node& node, Actuator a) { return node.status().shim.counters[a]; }
  /// From its SYN on.
  Duration duration(const TcpFlow& flow) { return flow.finishedAt() - began_; }

  std::unique_ptr<Scenario> lab_;
  Time began_;
};

std::string nameOf(const ::testing::TestParamInfo<ShimCase>& info) {
  return std::string(info.param.bridged ? "Bridged" : "") + (info.param.down ? "Down" : "Up") +
         (info.param.v6 ? "6" : "4");
}
INSTANTIATE_TEST_SUITE_P(Ways, ShimLab,
                         ::testing::Values(ShimCase{true, false}, ShimCase{false, false},
                                           ShimCase{true, true}, ShimCase{false, true},
                                           ShimCase{true, false, true},
                                           ShimCase{false, false, true},
                                           ShimCase{true, true, true}),
                         nameOf);

TEST_P(ShimLab, WithoutTheShimALostTailCostsATimeout) {
  TunnelOptions options;
  options.ackShim = false;
  start(options);
  lose(receiver(), {9});
  TcpFlow& flow = transfer(kTen);
  ASSERT_TRUE(lab_->finish(flow, 5s));
  EXPECT_EQ(flow.timeouts(), 1u);
  EXPECT_GE(duration(flow), 200ms);
  EXPECT_FALSE(receiver().status().shim.on);
}

TEST_P(ShimLab, TheLastSegmentGoesAgainFromTheFarGateway) {
  start();
  lose(receiver(), {9});
  TcpFlow& flow = transfer(kTen);
  ASSERT_TRUE(lab_->finish(flow, 5s));
  EXPECT_LE(duration(flow), 4 * kRtt) << lab_->report();
  EXPECT_EQ(flow.retransmits(), 0u);
  EXPECT_EQ(flow.timeouts(), 0u);
  lab_->run(1s);
  EXPECT_EQ(flow.timeouts(), 0u);
  EXPECT_EQ(counts(receiver(), Actuator::kFarReplay).fired, 1u);
  EXPECT_EQ(counts(receiver(), Actuator::kFarReplay).useful, 1u);
  EXPECT_EQ(sum(sender()).fired, 0u) << "the near gateway has nothing to say";
  EXPECT_EQ(receiver().status().shim.cachedPackets, 0u);
}

TEST_P(ShimLab, SoDoesTheOnlySegment) {
  start();
  lose(receiver(), {0});
  TcpFlow& flow = transfer(500);
  ASSERT_TRUE(lab_->finish(flow, 5s));
  EXPECT_LE(duration(flow), 4 * kRtt);
  EXPECT_EQ(flow.timeouts(), 0u);
}

TEST_P(ShimLab, ATailOfThreeTakesALegsRoundTripEach) {
  start();
  lose(receiver(), {7, 8, 9});
  TcpFlow& flow = transfer(kTen);
  ASSERT_TRUE(lab_->finish(flow, 5s));
  EXPECT_LE(duration(flow), 5 * kRtt);
  EXPECT_EQ(flow.timeouts(), 0u);
  EXPECT_EQ(counts(receiver(), Actuator::kFarReplay).spurious, 0u);
}

TEST_P(ShimLab, AReplayThatIsLostAsWellIsRepeated) {
  start();
  int losses = 0;
  receiver().lanLoses = [&](bool toHost, ByteView packet) {
    std::optional<InnerPacket> ip = parseInnerPacket(packet);
    return toHost && ip && ip->tcp && ip->tcp->payloadLength > 0 && losses++ < 3;
  };
  TcpFlow& flow = transfer(500);
  ASSERT_TRUE(lab_->finish(flow, 5s));
  EXPECT_LE(duration(flow), 9 * kRtt);
  EXPECT_EQ(flow.timeouts(), 0u);
}

// The last segment but one is lost on its way to the gateway. Only one segment follows, too few for
// three duplicate ACKs of the receiver.
TEST_P(ShimLab, AHoleOnTheWayInIsToldWhenTheAckComesToIt) {
  start();
  ASSERT_TRUE(lab_->finish(transfer(kTen), 5s));  // the path's rate is known then
  lose(sender(), {8});
  TcpFlow& flow = transfer(kTen);
  ASSERT_TRUE(lab_->finish(flow, 5s));
  EXPECT_EQ(flow.retransmits(), 1u);
  EXPECT_EQ(flow.timeouts(), 0u);
  EXPECT_LE(duration(flow), 4 * kRtt);
  lab_->run(1s);
  EXPECT_EQ(counts(sender(), Actuator::kHole).fired, 1u);
  EXPECT_EQ(counts(sender(), Actuator::kHole).useful, 1u);
  EXPECT_EQ(sum(receiver()).fired, 0u);
}

// The tunnel path loses data. Even with a beta of one to two round trips the shim waits for the
// tunnel's own repairs, and for the end of an outage.
TEST_P(ShimLab, SilentWhileTheTunnelRepairs) {
  TunnelOptions options;
  options.recovery = "none";
  options.shim.alpha = 1;
  start(options);
  auto lossy = [](double loss) { return [=](LinkOptions& o) { o.loss = loss; }; };
  auto change = [&](double loss) {
    Path& path = lab_->world.path("dsl");
    GetParam().down ? path.changeDown(lossy(loss), lab_->world.now())
                    : path.changeUp(lossy(loss), lab_->world.now());
  };
  change(0.1);
  for (int i = 0; i < 50; ++i) {
    TcpFlow& flow = transfer(kTen);
    ASSERT_TRUE(lab_->finish(flow, 5s));
    lab_->run(100ms);
    if (flow.timeouts() == 0) {
      ASSERT_EQ(flow.retransmits(), 0u) << flow.describe();
    }
  }
  TcpFlow& last = transfer(kTen);
  lab_->run(12ms);
  change(1);
  lab_->run(150ms);
  change(0);
  ASSERT_TRUE(lab_->finish(last, 5s));
  EXPECT_GT(sender().status().peers[0].retransmitted, 20u);
  EXPECT_GT(sender().status().shim.counters.silent, 10u);
  EXPECT_EQ(sum(sender()).fired, 0u) << lab_->report();
  // For SYNs from the receiver, this path loses the answers; see below.
  EXPECT_EQ(sum(receiver()).spurious, counts(receiver(), Actuator::kSynReplay).spurious);
}

// When the tunnel repairs lost ACKs, the near gateway cannot know that. The parameter alpha covers
// this case.
TEST_P(ShimLab, AndWithTheUsualAlphaWhenBothWaysLose) {
  TunnelOptions options;
  options.recovery = "none";
  start(options);
  lab_->change("dsl", [](LinkOptions& o) { o.loss = 0.1; });
  for (int i = 0; i < 100; ++i) {
    TcpFlow& flow = transfer(kTen);
    ASSERT_TRUE(lab_->finish(flow, 5s));
  }
  EXPECT_EQ(sum(sender()).fired, 0u) << lab_->report();
}

TEST_P(ShimLab, NothingIsSentAgainOnALossFreePathWithJitter) {
  LinkOptions path = kPath;
  path.jitter = 1ms;
  start({}, path);
  LinkOptions lan = kLan;
  lan.jitter = 200us;
  sender().setLan(lan);
  receiver().setLan(lan);
  for (int i = 0; i < 100; ++i) {
    TcpFlow& flow = transfer(kTen);
    ASSERT_TRUE(lab_->finish(flow, 5s));
    ASSERT_EQ(flow.retransmits() + flow.repeats(), 0u) << flow.describe();
  }
  EXPECT_EQ(sum(sender()).fired, 0u);
  EXPECT_EQ(sum(receiver()).fired, 0u);
}

// The bursts together have far more than gamma bytes, and the last segment of each is lost. The
// pauses are longer than a round trip and much shorter than the inactivity time.
TEST_P(ShimLab, APersistentConnectionIsHelpedWithEachBurst) {
  start();
  TcpFlow& flow = transfer(kTen);
  ASSERT_TRUE(lab_->finish(flow, 5s));
  for (int i = 0; i < 40; ++i) {
    lab_->run(100ms);
    lose(receiver(), {9});
    Time began = lab_->world.now();
    flow.write(kTen);
    ASSERT_TRUE(lab_->finish(flow, 5s));
    ASSERT_LE(flow.finishedAt() - began, 9 * kRtt) << i << lab_->report();
  }
  lab_->run(100ms);  // the last ACK
  EXPECT_EQ(flow.timeouts(), 0u);
  EXPECT_EQ(counts(receiver(), Actuator::kFarReplay).useful, 40u);
  EXPECT_EQ(sum(receiver()).spurious + sum(sender()).fired, 0u);
}

TEST_P(ShimLab, NorOnAPersistentConnection) {
  LinkOptions path = kPath;
  path.jitter = 1ms;
  start({}, path);
  LinkOptions lan = kLan;
  lan.jitter = 200us;
  sender().setLan(lan);
  receiver().setLan(lan);
  TcpFlow& flow = transfer(kTen);
  ASSERT_TRUE(lab_->finish(flow, 5s));
  for (int i = 0; i < 200; ++i) {
    lab_->run(i % 2 ? 15ms : 60ms);
    flow.write(kTen);
    ASSERT_TRUE(lab_->finish(flow, 5s));
    ASSERT_EQ(flow.retransmits() + flow.repeats(), 0u) << flow.describe();
  }
  EXPECT_EQ(sum(sender()).fired, 0u);
  EXPECT_EQ(sum(receiver()).fired, 0u);
}

// CoDel drops inside the tunnel, where the sender cannot notice it. The shim tells the sender at
// once.
TEST_P(ShimLab, WhatTheTunnelItselfDropsIsTold) {
  TunnelOptions options;
  options.codelTarget = 1ms;
  options.codelInterval = 20ms;
  options.ecnProxy = false;
  LinkOptions slow = kPath;
  slow.rateBitsPerSecond = 2_Mbit;
  start(options, slow);
  for (int i = 0; i < 20; ++i) {
    TcpFlow& flow = transfer(3 * kTen);
    ASSERT_TRUE(lab_->finish(flow, 10s));
  }
  EXPECT_GT(sender().drops(Drop::kAqm), 0u);
  EXPECT_GT(sum(sender()).fired, 0u);
  EXPECT_GT(counts(sender(), Actuator::kHole).useful, 0u);
}

TEST_P(ShimLab, ItIsSwitchedOffAndOnAgainWhileFlowsRun) {
  start();
  lose(receiver(), {9});
  TcpFlow& flow = transfer(kTen);
  lab_->run(22ms);
  TunnelOptions options = receiver().options;
  options.ackShim = false;
  receiver().tunnel().setTunables(options);
  EXPECT_FALSE(receiver().status().shim.on);
  options.ackShim = true;
  receiver().tunnel().setTunables(options);
  EXPECT_TRUE(receiver().status().shim.on);
  EXPECT_EQ(receiver().status().shim.flows, 0u);
  ASSERT_TRUE(lab_->finish(flow, 5s));
  lose(receiver(), {9});
  TcpFlow& next = transfer(kTen);
  ASSERT_TRUE(lab_->finish(next, 5s));
  EXPECT_EQ(next.timeouts(), 0u);
}

TEST_P(ShimLab, ThousandsOfTailLossesLeaveNothingBehind) {
  start();
  receiver().setLan({.delay = 1ms, .loss = 0.05});
  for (int i = 0; i < 300; ++i) {
    TcpFlow& flow = transfer(kTen);
    ASSERT_TRUE(lab_->finish(flow, 30s));
  }
  lab_->run(10s);
  EXPECT_GT(counts(receiver(), Actuator::kFarReplay).useful, 20u);
  for (Node* node : {&lab_->edge, &lab_->hub}) {
    EXPECT_EQ(node->pool().inUse(), 0u) << node->name();
    EXPECT_EQ(node->status().shim.counters.noBuffer, 0u);
  }
}

}  // namespace
}  // namespace braid::sim::shim_test
