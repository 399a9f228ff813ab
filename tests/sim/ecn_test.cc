// Networks that change the ECN field must not harm the traffic.

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace braid::sim::ecn_test {
namespace {

// At 20 Mbit/s and 20 ms, 50 KB are in flight. The queue holds three times as much and marks above
// a third of that.
const LinkOptions kMarking{
    .rateBitsPerSecond = 20_Mbit, .delay = 10ms, .queueBytes = 150000, .ecnThresholdBytes = 17000};

LinkOptions faulty(EcnFault fault) {
  LinkOptions o = kMarking;
  o.ecnFault = fault;
  return o;
}

TunnelOptions controlledBy(const char* controller) {
  TunnelOptions o;
  o.controller = controller;
  return o;
}

class EcnPaths : public testing::TestWithParam<const char*> {
 protected:
  /// Runs uploads over one path and returns their duration.
  static double uploadTime(Scenario& s) {
    Time begin = s.world.now();
    TcpFlow& file = s.upload(6_MB, {.ecn = true});  // the AQM marks, so there are no timeouts
    EXPECT_TRUE(s.finish(file, 60s));
    return toSeconds(s.world.now() - begin);
  }
};
INSTANTIATE_TEST_SUITE_P(Controller, EcnPaths,
                         testing::Values("dctcp", "amp", "newreno", "bbr", "wan"));

TEST_P(EcnPaths, AMarkingPathIsCapableAndTheControllerHeedsItsMarks) {
  Scenario s(1, controlledBy(GetParam()));
  s.path("dsl", kMarking).start();
  uploadTime(s);
  const SubflowStatus* subflow = s.subflow(s.edge, "dsl");
  EXPECT_EQ(subflow->ecn, "capable");
  EXPECT_GT(subflow->ceMarks, 0u);
  // bbr and wan fill the queue at the start, regardless of marks.
  std::string_view controller = GetParam();
  if (controller != "bbr" && controller != "wan") {
    EXPECT_EQ(s.world.path("dsl").upStats(s.world.now()).dropQueue.packets, 0u) << s.report();
  }
}

TEST_P(EcnPaths, ABleachingPathIsUsedWithoutEcn) {
  Scenario s(2, controlledBy(GetParam()));
  s.path("dsl", faulty(EcnFault::kBleach)).start();
  uploadTime(s);
  const SubflowStatus* subflow = s.subflow(s.edge, "dsl");
  EXPECT_EQ(subflow->ecn, "failed");
  EXPECT_EQ(subflow->ceMarks, 0u);
  // One ECN test of ten packets per second, plus what is sent in a round trip until the answer
  // arrives.
  LinkStats stats = s.world.path("dsl").upStats(s.world.now());
  EXPECT_LE(stats.bleached, 11 * (1 + static_cast<uint64_t>(toSeconds(s.world.now() - Time{}))));
}

TEST_P(EcnPaths, AManglingPathSlowsNobody) {
  LinkOptions clean = kMarking;
  clean.ecnThresholdBytes = 0;
  Scenario reference(3, controlledBy(GetParam()));
  reference.path("dsl", clean).start();
  double fair = uploadTime(reference);
  clean.ecnFault = EcnFault::kMangle;
  Scenario s(3, controlledBy(GetParam()));
  s.path("dsl", clean).start();
  EXPECT_LE(uploadTime(s), 1.05 * fair);
  EXPECT_EQ(s.subflow(s.edge, "dsl")->ecn, "failed");
  EXPECT_GT(s.subflow(s.edge, "dsl")->ceMarks, 0u) << "the peer saw the forged marks";
}

TEST_P(EcnPaths, APathThatDropsMarkedPacketsIsUsedWithoutEcn) {
  LinkOptions clean = kMarking;
  clean.ecnThresholdBytes = 0;
  Scenario reference(4, controlledBy(GetParam()));
  reference.path("dsl", clean).start();
  double fair = uploadTime(reference);
  clean.ecnFault = EcnFault::kDrop;
  Scenario s(4, controlledBy(GetParam()));
  s.path("dsl", clean).start();
  EXPECT_LE(uploadTime(s), 1.25 * fair + 0.5);
  EXPECT_EQ(s.subflow(s.edge, "dsl")->ecn, "failed");
}

TEST_P(EcnPaths, APathThatBeginsToDropMarkedPacketsGoesOn) {
  Scenario s(5, controlledBy(GetParam()));
  s.path("dsl", kMarking).start();
  TcpFlow& file = s.upload(6_MB);
  s.run(1s);
  ASSERT_EQ(s.subflow(s.edge, "dsl")->ecn, "capable");
  s.change("dsl", [](LinkOptions& o) { o.ecnFault = EcnFault::kDrop; });
  EXPECT_TRUE(s.world.runUntil([&] { return s.subflow(s.edge, "dsl")->ecn == "failed"; }, 2s))
      << s.report();
  ASSERT_TRUE(s.finish(file, 20s));
}

TEST(EcnFaults, APathThatIsMendedIsCapableAgain) {
  Scenario s(6);
  s.path("dsl", faulty(EcnFault::kBleach)).start();
  UdpFlow& call = s.call({.interval = 20ms, .count = 400});
  s.run(2s);
  ASSERT_EQ(s.subflow(s.edge, "dsl")->ecn, "failed");
  s.change("dsl", [](LinkOptions& o) { o.ecnFault = EcnFault::kNone; });
  s.run(1100ms);
  EXPECT_EQ(s.subflow(s.edge, "dsl")->ecn, "capable");
  s.run(5s);
  EXPECT_EQ(call.received(), 400u);
}

TEST(EcnFaults, ANewRouteIsTestedAnew) {
  Scenario s(7);
  s.path("dsl", faulty(EcnFault::kMangle)).start();
  Ping& pings = s.ping(20ms, 200);
  s.run(2s);
  ASSERT_EQ(s.subflow(s.hub, "dsl")->ecn, "failed");
  s.change("dsl", [](LinkOptions& o) { o.ecnFault = EcnFault::kNone; });
  s.world.path("dsl").rebind(true);
  s.run(500ms);
  const SubflowStatus* moved = s.subflow(s.hub, "dsl");
  ASSERT_TRUE(moved) << s.report();
  EXPECT_EQ(moved->ecn, "capable");
  s.run(3s);
  EXPECT_GE(pings.answered(), 190u);
}

TEST(EcnFaults, OnlyTheFaultyPathGoesWithout) {
  Scenario s(8);
  s.path("dsl", kMarking).path("lte", faulty(EcnFault::kDrop)).start();
  TcpFlow& file = s.upload(10_MB);
  ASSERT_TRUE(s.finish(file, 30s));
  EXPECT_EQ(s.subflow(s.edge, "dsl")->ecn, "capable");
  EXPECT_EQ(s.subflow(s.edge, "lte")->ecn, "failed");
  EXPECT_GT(s.sentOn("lte"), 2_MB) << s.report();
}

TEST(EcnFaults, AnOutageIsNoFault) {
  Scenario s(9);
  s.path("dsl", kMarking).start();
  TcpFlow& file = s.upload(6_MB);
  s.run(1s).cut("dsl").run(700ms).mend("dsl");
  ASSERT_TRUE(s.finish(file, 30s));
  EXPECT_EQ(s.subflow(s.edge, "dsl")->ecn, "capable") << s.report();
}

TEST(EcnFaults, QueueingDelayIsReported) {
  Scenario s(10, controlledBy("newreno"));
  LinkOptions o = kMarking;
  o.ecnThresholdBytes = 0;
  s.path("dsl", o).start();
  s.upload(20_MB);
  s.run(5s);
  // newreno fills the queue of 60 ms, and halves when it is full.
  const SubflowStatus* subflow = s.subflow(s.edge, "dsl");
  EXPECT_GE(subflow->queueDelay, 10ms);
  EXPECT_LE(subflow->queueDelay, 65ms);
  EXPECT_EQ(subflow->queueDelay, subflow->srtt - subflow->minRtt);
}

}  // namespace
}  // namespace braid::sim::ecn_test
