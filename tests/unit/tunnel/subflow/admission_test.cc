#include "tunnel/subflow/admission.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/queue/flow.h"

namespace braid::admission_test {
namespace {

/// A controller with limits that the test sets.
struct FixedController final : Controller {
  struct Limits {
    uint64_t window = 12'000;
    uint64_t lossWindow = 0;  ///< window after the next loss; 0: unchanged
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

/// The send admission of a usable subflow with datagrams of 1200 bytes, a window of ten datagrams
/// and a rate of 1 MB/s.
struct SendAdmissionTest : testing::Test {
  static constexpr size_t kDatagram = 1200;
  static constexpr size_t kHeaders = 28;
  static constexpr Duration kRtt = 40ms;

  Time now = Time{} + 1s;
  DataTracker dataTracker{3s};
  InFlightTracker flight{dataTracker, now};
  MtuDiscovery mtu{1472, 0};
  RttEstimator rtt;
  FixedController::Limits limits;
  SendAdmission admission{std::make_unique<FixedController>(limits), flight, mtu, rtt};
  std::shared_ptr<Pacer> ceiling;

  void SetUp() override {
    rtt.onSample(kRtt, {}, now);
    admission.setUsable(true, now);
    admission.onLoss({});  // the pacer takes the rate over
    ASSERT_EQ(mtu.current(), kDatagram);
  }
  void send(size_t bytes = kDatagram, bool tracked = true) {
    flight.push(bytes, tracked, now);
    admission.onSent(bytes, kHeaders, tracked, now);
  }
  void fillWindow() {
    while (admission.opensAt() != kNever) {
      now = std::max(now, admission.opensAt());
      send();
    }
  }
  /// Ten datagrams of 1000 bytes at once, then the pacing rate in bytes per second, including
  /// headers.
  void setCeiling(double rate) {
    ceiling = std::make_shared<Pacer>(1000);
    ceiling->setRate(rate);
    admission.setCeiling(ceiling);
  }
};

// ---- what the subflow is for

TEST_F(SendAdmissionTest, IsShutUntilTheSubflowIsUsable) {
  SendAdmission fresh(std::make_unique<FixedController>(limits), flight, mtu, rtt);
  EXPECT_FALSE(fresh.takesData() || fresh.isOpen(now) || fresh.isOpenAhead(now));
  EXPECT_TRUE(admission.takesData() && admission.isOpen(now) && admission.isOpenAhead(now));
}

TEST_F(SendAdmissionTest, OverflowTakesWhatIsTooMuchForOthersOnly) {
  admission.setRole(PathRole::kOverflow, now);
  EXPECT_FALSE(admission.takesData());
  EXPECT_TRUE(admission.takesData(true));
  EXPECT_EQ(admission.opensAt(), kNever);
  EXPECT_LE(admission.opensAt(true), now);
  EXPECT_FALSE(admission.isOpenAhead(now));
}

TEST_F(SendAdmissionTest, ToItsControllerAPathThatRestsIsNotThere) {
  EXPECT_TRUE(limits.usable);
  admission.setRole(PathRole::kNone, now);
  EXPECT_FALSE(limits.usable);
  EXPECT_FALSE(admission.takesData(true));
  admission.setUsable(false, now);
  admission.setRole(PathRole::kAll, now);
  EXPECT_FALSE(limits.usable);
  admission.setUsable(true, now);
  EXPECT_TRUE(limits.usable);
}

TEST_F(SendAdmissionTest, ASuppressedPathTakesNothing) {
  limits.suppressedAt = now;
  EXPECT_FALSE(admission.takesData() || admission.takesData(true));
  EXPECT_EQ(admission.opensAheadAt(), kNever);
}

// ---- window

TEST_F(SendAdmissionTest, TheWindowBoundsWhatIsInFlight) {
  fillWindow();
  EXPECT_EQ(flight.bytes(), limits.window);
  flight.onAcked(0_pn);
  EXPECT_NE(admission.opensAt(), kNever);
}

TEST_F(SendAdmissionTest, WhatMayGoAtOnceIsAskedWhenNothingIsInFlight) {
  limits.window = 80 * kDatagram;
  limits.burst = 30'000;
  size_t atOnce = 0;
  for (; admission.isOpen(now); ++atOnce) send();
  EXPECT_EQ(atOnce, 24u) << "then 1500 bytes, a full datagram, do not fit";
  limits.burst = 40'000;
  now += 1s;
  for (atOnce = 0; admission.isOpen(now); ++atOnce) send();
  EXPECT_EQ(atOnce, 24u) << "the burst that the path bears is that of the first packet";
}

TEST_F(SendAdmissionTest, AFullSentMapShutsIt) {
  limits.window = UINT64_MAX / 2;
  while (!flight.packets().full()) flight.push(1, true, now);
  EXPECT_EQ(admission.opensAt(), kNever);
  EXPECT_EQ(admission.opensAheadAt(), kNever);
}

// Found by experiment: repairs could exceed the window by 64 KiB. In an incast of 70 senders half
// of all packets were lost.
TEST_F(SendAdmissionTest, AheadOfTheWindowIsAtMostAQuarterOfIt) {
  fillWindow();
  EXPECT_FALSE(admission.isOpenFor(false, now + 1s)) << "what is lost waits for the window";
  size_t ahead = 0;
  for (; admission.isOpenFor(true, now); ++ahead, now += 10ms) send();
  EXPECT_EQ(ahead, 2u) << "of 12000 bytes";
  EXPECT_LE(flight.bytes(), limits.window + limits.window / SendAdmission::kAheadPart);
}

// Without this a loss in an initial window of ten packets waits until half of them are
// acknowledged.
TEST_F(SendAdmissionTest, ALossThatReducesTheWindowLetsOneRepairGo) {
  fillWindow();
  now += 1s;
  admission.onLoss({});
  EXPECT_EQ(admission.opensForRepairAt(false), kNever) << "the window is as it was";
  limits.lossWindow = limits.window / 2;
  admission.onLoss({});
  EXPECT_LE(admission.opensForRepairAt(false), now);
  EXPECT_EQ(admission.opensAt(), kNever) << "new data waits";
  admission.onSent(kDatagram, kHeaders, false, now);
  EXPECT_LE(admission.opensForRepairAt(false), now) << "an ACK is no repair";
  send();
  EXPECT_EQ(admission.opensForRepairAt(false), kNever) << "one";
  setCeiling(50'000);
  for (int i = 0; i < 10; ++i) send(972, false);
  limits.lossWindow = limits.window / 2;
  admission.onLoss({});
  EXPECT_EQ(admission.opensForRepairAt(false), now + 20ms) << "at the pace of all others";
}

TEST_F(SendAdmissionTest, TheWaitForAFullWindowEndsWithTheOldestPacket) {
  Time first = now;
  fillWindow();
  now = std::max(now, first + 15ms);
  EXPECT_EQ(admission.view(now, false).wait, first + kRtt - now);
  now += 5ms;
  EXPECT_EQ(admission.view(now, false).wait, first + kRtt - now);
  now = first + 10 * kRtt;
  EXPECT_EQ(admission.view(now, false).wait, 0ns) << "any moment";
}

// ---- pacer

TEST_F(SendAdmissionTest, ThePacerSpacesWhatLeaves) {
  limits.window = 1'000'000;
  while (admission.isOpen(now)) send();
  Time opens = admission.opensAt();
  EXPECT_GT(opens, now);
  send();
  EXPECT_EQ(admission.opensAt() - opens, 1200us) << "1200 bytes at 1 MB/s";
}

TEST_F(SendAdmissionTest, SmallFlowsAreAheadByAFewDatagrams) {
  limits.window = 1'000'000;
  while (admission.isOpen(now)) send();
  Time opens = admission.opensAt();
  size_t ahead = 0;
  for (; admission.isOpenAhead(now); ++ahead) send();
  EXPECT_EQ(ahead, SendAdmission::kAheadDatagrams);
  EXPECT_EQ(admission.opensAt() - opens, ahead * 1200us) << "paid back before bulk goes on";
  EXPECT_EQ(admission.opensAheadAt(), opens)
      << "when bulk would have gone on, the next small flow goes";
}

TEST_F(SendAdmissionTest, NobodyIsAheadOnAPathForOverflow) {
  fillWindow();
  ASSERT_FALSE(admission.view(now, false).open);
  ASSERT_TRUE(admission.view(now, false).ahead);
  admission.setRole(PathRole::kOverflow, now);
  EXPECT_TRUE(admission.view(now, true).usable);
  EXPECT_FALSE(admission.view(now, true).ahead);
}

TEST_F(SendAdmissionTest, SmallWindowsAllowLessAhead) {
  limits.window = 2944;
  size_t sent = 0;
  for (; admission.isOpenAhead(now); ++sent) send();
  EXPECT_EQ(sent, 3u) << "of 2944 * 5/4 bytes";
}

TEST_F(SendAdmissionTest, TheRateIsWhatWindowAndPacerLetThrough) {
  EXPECT_DOUBLE_EQ(admission.view(now, false).rate, 12'000 / 0.040);
  limits.window = 1'000'000;
  EXPECT_DOUBLE_EQ(admission.view(now, false).rate, 1e6);
  setCeiling(50'000);
  EXPECT_DOUBLE_EQ(admission.view(now, false).rate, 50'000);
  EXPECT_DOUBLE_EQ(admission.rate(), 50'000);
}

// ---- ceiling

TEST_F(SendAdmissionTest, ACeilingHoldsForAllThatLeaves) {
  limits.window = 1'000'000;
  setCeiling(100'000);
  for (int i = 0; i < 4; ++i) send(972, false);
  int count = 4;
  for (; admission.isOpenAhead(now) && count < 100; ++count) send(972);
  EXPECT_EQ(count, 10);
  EXPECT_EQ(admission.opensAt(), now + 10ms);
  EXPECT_EQ(admission.opensAheadAt(), now + 10ms) << "nobody is ahead of it";
  send(972);  // a probe is sent beyond the limit, and is paid back
  EXPECT_EQ(admission.opensAt(), now + 20ms);
}

TEST_F(SendAdmissionTest, NobodyIsAheadOfACeiling) {
  setCeiling(50'000);
  for (int i = 0; i < 10; ++i) send(972, false);
  EXPECT_FALSE(admission.isOpenAhead(now));
  PathView v = admission.view(now, false);
  EXPECT_FALSE(v.open || v.ahead);
  EXPECT_EQ(v.wait, 20ms);
  now += 20ms;
  EXPECT_TRUE(admission.view(now, false).open);
  EXPECT_EQ(admission.view(now, false).wait, 0ms);
}

TEST_F(SendAdmissionTest, SubflowsOfAnUplinkShareItsCeiling) {
  setCeiling(50'000);
  SendAdmission other(std::make_unique<FixedController>(limits), flight, mtu, rtt);
  other.setUsable(true, now);
  other.setCeiling(ceiling);
  for (int i = 0; i < 10; ++i) send(972, false);
  EXPECT_EQ(other.opensAt(), now + 20ms);
}

// ---- what it tells the controller

TEST_F(SendAdmissionTest, APathThatStartsAnewForgetsAfterTheLastAck) {
  limits.told.clear();
  AckSample ack;
  ack.marks = 1;
  admission.onAck(ack, now, true);
  EXPECT_EQ(limits.told, (std::vector<std::string>{"ack", "marks", "reset"}));
}

TEST_F(SendAdmissionTest, APacerFollowsItsController) {
  limits.window = 1'000'000;
  limits.rate = 2e6;
  admission.onAck({}, now, false);
  while (admission.isOpen(now)) send();
  Time opens = admission.opensAt();
  send();
  EXPECT_EQ(admission.opensAt() - opens, 600us);
}

}  // namespace
}  // namespace braid::admission_test
