#include "tunnel/subflow/gate.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/lane/flow.h"

namespace braid::gate_test {
namespace {

/// Lets as much through as a test says.
struct FixedController final : Controller {
  struct Limits {
    uint64_t window = 12'000;
    uint64_t lossWindow = 0;  ///< after the next loss; 0: the window stays
    double rate = 1e6;
    double burst = 0;
    Time suppressedAt = kNever;
    bool usable = false;
    std::vector<std::string> told;
  };
  explicit FixedController(Limits& l) : limits(l) {}
  void onSent(uint64_t, uint64_t, Time) override {}
  void onAck(const AckSample&) override { limits.told.emplace_back("ack"); }
  void onLoss(const LossSample&) override {
    limits.told.emplace_back("loss");
    if (limits.lossWindow) limits.window = std::exchange(limits.lossWindow, 0);
  }
  void onMarks(uint64_t, Time, Time) override { limits.told.emplace_back("marks"); }
  void onSpuriousLoss(Time, Time) override {}
  void setUsable(bool usable, Time) override { limits.usable = usable; }
  Time suppressedAt() const override { return limits.suppressedAt; }
  void reset(Time) override { limits.told.emplace_back("reset"); }
  uint64_t window() const override { return limits.window; }
  double pacingRate() const override { return limits.rate; }
  double burst() const override { return limits.burst; }
  Limits& limits;
};

/// The gate of a usable subflow whose datagrams are 1200 bytes: a window of ten, and 1 MB/s.
struct GateTest : testing::Test {
  static constexpr size_t kDatagram = 1200;
  static constexpr size_t kHeaders = 28;
  static constexpr Duration kRtt = 40ms;

  Time now = Time{} + 1s;
  DataLedger ledger{3s};
  Flight flight{ledger, now};
  MtuDiscovery mtu{1472, 0};
  RttEstimator rtt;
  FixedController::Limits limits;
  Gate gate{std::make_unique<FixedController>(limits), flight, mtu, rtt};
  std::shared_ptr<Pacer> ceiling;

  void SetUp() override {
    rtt.onSample(kRtt, {}, now);
    gate.setUsable(true, now);
    gate.onLoss({});  // the pacer takes the rate over
    ASSERT_EQ(mtu.current(), kDatagram);
  }
  void send(size_t bytes = kDatagram, bool tracked = true) {
    flight.push(bytes, tracked, now);
    gate.onSent(bytes, kHeaders, tracked, now);
  }
  void fillWindow() {
    while (gate.opensAt() != kNever) {
      now = std::max(now, gate.opensAt());
      send();
    }
  }
  /// Ten datagrams of 1000 bytes at once, then that many bytes a second; headers count.
  void setCeiling(double rate) {
    ceiling = std::make_shared<Pacer>(1000);
    ceiling->setRate(rate);
    gate.setCeiling(ceiling);
  }
};

// ---- what the subflow is for

TEST_F(GateTest, IsShutUntilTheSubflowIsUsable) {
  Gate fresh(std::make_unique<FixedController>(limits), flight, mtu, rtt);
  EXPECT_FALSE(fresh.takesData() || fresh.isOpen(now) || fresh.isOpenAhead(now));
  EXPECT_TRUE(gate.takesData() && gate.isOpen(now) && gate.isOpenAhead(now));
}

TEST_F(GateTest, OverflowTakesWhatIsTooMuchForOthersOnly) {
  gate.setDuty(PathDuty::kOverflow, now);
  EXPECT_FALSE(gate.takesData());
  EXPECT_TRUE(gate.takesData(true));
  EXPECT_EQ(gate.opensAt(), kNever);
  EXPECT_LE(gate.opensAt(true), now);
  EXPECT_FALSE(gate.isOpenAhead(now));
}

TEST_F(GateTest, ToItsControllerAPathThatRestsIsNotThere) {
  EXPECT_TRUE(limits.usable);
  gate.setDuty(PathDuty::kNone, now);
  EXPECT_FALSE(limits.usable);
  EXPECT_FALSE(gate.takesData(true));
  gate.setUsable(false, now);
  gate.setDuty(PathDuty::kAll, now);
  EXPECT_FALSE(limits.usable);
  gate.setUsable(true, now);
  EXPECT_TRUE(limits.usable);
}

TEST_F(GateTest, ASuppressedPathTakesNothing) {
  limits.suppressedAt = now;
  EXPECT_FALSE(gate.takesData() || gate.takesData(true));
  EXPECT_EQ(gate.opensAheadAt(), kNever);
}

// ---- window

TEST_F(GateTest, TheWindowBoundsWhatIsInFlight) {
  fillWindow();
  EXPECT_EQ(flight.bytes(), limits.window);
  flight.onAcked(0_pn);
  EXPECT_NE(gate.opensAt(), kNever);
}

TEST_F(GateTest, WhatMayGoAtOnceIsAskedWhenNothingIsInFlight) {
  limits.window = 80 * kDatagram;
  limits.burst = 30'000;
  size_t atOnce = 0;
  for (; gate.isOpen(now); ++atOnce) send();
  EXPECT_EQ(atOnce, 24u) << "then 1500 bytes, a full datagram, do not fit";
  limits.burst = 40'000;
  now += 1s;
  for (atOnce = 0; gate.isOpen(now); ++atOnce) send();
  EXPECT_EQ(atOnce, 24u) << "the burst that the path bears is that of the first packet";
}

TEST_F(GateTest, AFullSentMapShutsIt) {
  limits.window = UINT64_MAX / 2;
  while (!flight.packets().full()) flight.push(1, true, now);
  EXPECT_EQ(gate.opensAt(), kNever);
  EXPECT_EQ(gate.opensAheadAt(), kNever);
}

// Found by trial: repairs had 64 KiB of their own beyond the window. In an incast of 70 senders half of all packets
// were lost.
TEST_F(GateTest, AheadOfTheWindowIsAtMostAQuarterOfIt) {
  fillWindow();
  EXPECT_FALSE(gate.isOpenFor(false, now + 1s)) << "what is lost waits for the window";
  size_t ahead = 0;
  for (; gate.isOpenFor(true, now); ++ahead, now += 10ms) send();
  EXPECT_EQ(ahead, 2u) << "of 12000 bytes";
  EXPECT_LE(flight.bytes(), limits.window + limits.window / Gate::kAheadPart);
}

// Without it a loss in a first flight of ten waits until half of that is acknowledged.
TEST_F(GateTest, ALossThatReducesTheWindowLetsOneRepairGo) {
  fillWindow();
  now += 1s;
  gate.onLoss({});
  EXPECT_EQ(gate.opensForRepairAt(false), kNever) << "the window is as it was";
  limits.lossWindow = limits.window / 2;
  gate.onLoss({});
  EXPECT_LE(gate.opensForRepairAt(false), now);
  EXPECT_EQ(gate.opensAt(), kNever) << "new data waits";
  gate.onSent(kDatagram, kHeaders, false, now);
  EXPECT_LE(gate.opensForRepairAt(false), now) << "an ACK is no repair";
  send();
  EXPECT_EQ(gate.opensForRepairAt(false), kNever) << "one";
  setCeiling(50'000);
  for (int i = 0; i < 10; ++i) send(972, false);
  limits.lossWindow = limits.window / 2;
  gate.onLoss({});
  EXPECT_EQ(gate.opensForRepairAt(false), now + 20ms) << "at the pace of all others";
}

TEST_F(GateTest, TheWaitForAFullWindowEndsWithTheOldestPacket) {
  Time first = now;
  fillWindow();
  now = std::max(now, first + 15ms);
  EXPECT_EQ(gate.view(now, false).wait, first + kRtt - now);
  now += 5ms;
  EXPECT_EQ(gate.view(now, false).wait, first + kRtt - now);
  now = first + 10 * kRtt;
  EXPECT_EQ(gate.view(now, false).wait, 0ns) << "any moment";
}

// ---- pacer

TEST_F(GateTest, ThePacerSpacesWhatLeaves) {
  limits.window = 1'000'000;
  while (gate.isOpen(now)) send();
  Time opens = gate.opensAt();
  EXPECT_GT(opens, now);
  send();
  EXPECT_EQ(gate.opensAt() - opens, 1200us) << "1200 bytes at 1 MB/s";
}

TEST_F(GateTest, SmallFlowsAreAheadByAFewDatagrams) {
  limits.window = 1'000'000;
  while (gate.isOpen(now)) send();
  Time opens = gate.opensAt();
  size_t ahead = 0;
  for (; gate.isOpenAhead(now); ++ahead) send();
  EXPECT_EQ(ahead, Gate::kAheadDatagrams);
  EXPECT_EQ(gate.opensAt() - opens, ahead * 1200us) << "paid back before bulk goes on";
  EXPECT_EQ(gate.opensAheadAt(), opens) << "when bulk would have gone on, the next small flow goes";
}

TEST_F(GateTest, NobodyIsAheadOnAPathForOverflow) {
  fillWindow();
  ASSERT_FALSE(gate.view(now, false).open);
  ASSERT_TRUE(gate.view(now, false).ahead);
  gate.setDuty(PathDuty::kOverflow, now);
  EXPECT_TRUE(gate.view(now, true).usable);
  EXPECT_FALSE(gate.view(now, true).ahead);
}

TEST_F(GateTest, SmallWindowsAllowLessAhead) {
  limits.window = 2944;
  size_t sent = 0;
  for (; gate.isOpenAhead(now); ++sent) send();
  EXPECT_EQ(sent, 3u) << "of 2944 * 5/4 bytes";
}

TEST_F(GateTest, TheRateIsWhatWindowAndPacerLetThrough) {
  EXPECT_DOUBLE_EQ(gate.view(now, false).rate, 12'000 / 0.040);
  limits.window = 1'000'000;
  EXPECT_DOUBLE_EQ(gate.view(now, false).rate, 1e6);
  setCeiling(50'000);
  EXPECT_DOUBLE_EQ(gate.view(now, false).rate, 50'000);
  EXPECT_DOUBLE_EQ(gate.rate(), 50'000);
}

// ---- ceiling

TEST_F(GateTest, ACeilingHoldsForAllThatLeaves) {
  limits.window = 1'000'000;
  setCeiling(100'000);
  for (int i = 0; i < 4; ++i) send(972, false);
  int count = 4;
  for (; gate.isOpenAhead(now) && count < 100; ++count) send(972);
  EXPECT_EQ(count, 10);
  EXPECT_EQ(gate.opensAt(), now + 10ms);
  EXPECT_EQ(gate.opensAheadAt(), now + 10ms) << "nobody is ahead of it";
  send(972);  // a probe is, and is paid back
  EXPECT_EQ(gate.opensAt(), now + 20ms);
}

TEST_F(GateTest, NobodyIsAheadOfACeiling) {
  setCeiling(50'000);
  for (int i = 0; i < 10; ++i) send(972, false);
  EXPECT_FALSE(gate.isOpenAhead(now));
  PathView v = gate.view(now, false);
  EXPECT_FALSE(v.open || v.ahead);
  EXPECT_EQ(v.wait, 20ms);
  now += 20ms;
  EXPECT_TRUE(gate.view(now, false).open);
  EXPECT_EQ(gate.view(now, false).wait, 0ms);
}

TEST_F(GateTest, SubflowsOfAnUplinkShareItsCeiling) {
  setCeiling(50'000);
  Gate other(std::make_unique<FixedController>(limits), flight, mtu, rtt);
  other.setUsable(true, now);
  other.setCeiling(ceiling);
  for (int i = 0; i < 10; ++i) send(972, false);
  EXPECT_EQ(other.opensAt(), now + 20ms);
}

// ---- what it tells the controller

TEST_F(GateTest, APathThatStartsAnewForgetsAfterTheLastAck) {
  limits.told.clear();
  AckSample ack;
  ack.marks = 1;
  gate.onAck(ack, now, true);
  EXPECT_EQ(limits.told, (std::vector<std::string>{"ack", "marks", "reset"}));
}

TEST_F(GateTest, APacerFollowsItsController) {
  limits.window = 1'000'000;
  limits.rate = 2e6;
  gate.onAck({}, now, false);
  while (gate.isOpen(now)) send();
  Time opens = gate.opensAt();
  send();
  EXPECT_EQ(gate.opensAt() - opens, 600us);
}

}  // namespace
}  // namespace braid::gate_test
