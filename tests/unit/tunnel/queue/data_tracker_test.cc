#include "tunnel/queue/data_tracker.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/queue/some_flows.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::data_tracker_test {
namespace {

constexpr Duration kRepairTime = 3s;

struct DataTrackerTest : testing::Test {
  PacketPool pool{1500, 2000};
  SomeFlows flows;
  Flow& flow = flows.make();
  Flow& calls = flows.make(false);
  DataTracker dataTracker{kRepairTime};
  Time now = Time{} + 1s;

  UnitRef make(Flow& of) {
    return dataTracker.create(of, pool.copy(std::array<uint8_t, 3>{1, 2, 3}), now);
  }
  /// Sends a packet on subflow 0.
  UnitRef send(bool reliable = true) {
    UnitRef d = make(reliable ? flow : calls);
    dataTracker.onSent(d, 0_subflow, 0_pn);
    return d;
  }
  uint64_t drops(Drop cause) { return dataTracker.drops()[static_cast<size_t>(cause)]; }
};

TEST_F(DataTrackerTest, DeliveryFreesTheBufferAtOnceAndTheEntryWhenForgotten) {
  UnitRef d = send();
  EXPECT_EQ(flow.sent.unacked(), 1u);
  EXPECT_EQ(pool.inUse(), 1u);
  dataTracker.onDelivered(d, true);
  EXPECT_EQ(flow.sent.unacked(), 0u);
  EXPECT_EQ(pool.inUse(), 0u);
  EXPECT_EQ(dataTracker.records(), 1u);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, ALostPacketIsRepairedOldestFirst) {
  UnitRef a = send();
  UnitRef b = send();
  dataTracker.onLost(a, now);
  dataTracker.onLost(b, now);
  EXPECT_EQ(dataTracker.nextRepair(now), a);
  dataTracker.onSent(a, 1_subflow, 0_pn);
  EXPECT_EQ(a->subflow, 1_subflow);
  EXPECT_EQ(dataTracker.nextRepair(now), b);
  dataTracker.onSent(b, 1_subflow, 0_pn);
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
  for (UnitRef d : {a, b}) {
    dataTracker.onDelivered(d, true);
    dataTracker.release(d);
    dataTracker.release(d);
  }
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, TheRepairQueueTellsWhenItChanges) {
  UnitRef a = send();
  UnitRef b = send();
  EXPECT_EQ(dataTracker.repairChanges(), 0u);
  dataTracker.onLost(a, now);
  EXPECT_EQ(dataTracker.repairChanges(), 1u);
  dataTracker.onSent(a, 1_subflow, 0_pn);
  EXPECT_EQ(dataTracker.repairChanges(), 2u);
  dataTracker.onLost(b, now);
  dataTracker.onRecovered(b);
  EXPECT_EQ(dataTracker.repairChanges(), 4u);
  dataTracker.onDelivered(a, true);
  EXPECT_EQ(dataTracker.repairChanges(), 4u) << "it was not in the queue";
  for (UnitRef d : {a, a, b}) dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, WhatAnotherCopyDeliveredIsNotRepaired) {
  UnitRef d = send();
  dataTracker.onMoved(d, now);
  EXPECT_EQ(d->carriers, 0);
  dataTracker.onSent(dataTracker.nextRepair(now), 1_subflow, 0_pn);
  EXPECT_EQ(d->carriers, 1);
  dataTracker.onDelivered(d, false);
  dataTracker.onLost(d, now);
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
  EXPECT_EQ(pool.inUse(), 0u);
  dataTracker.release(d);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, OneCopyLostIsNoReasonWhileAnotherIsInFlight) {
  UnitRef d = send();
  dataTracker.onSent(d, 1_subflow, 0_pn);
  dataTracker.onLost(d, now);
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
  dataTracker.onLost(d, now);
  EXPECT_EQ(dataTracker.nextRepair(now), d);
  dataTracker.giveUpRepairs(Drop::kPeerDown);
  dataTracker.release(d);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, AMovedPacketMovesOnWhenTheNextSubflowFallsSilentToo) {
  UnitRef d = send();
  dataTracker.onMoved(d, now);
  EXPECT_TRUE(d->moved);
  dataTracker.onSent(dataTracker.nextRepair(now), 1_subflow, 0_pn);
  EXPECT_FALSE(d->moved);
  dataTracker.onMoved(d, now);
  ASSERT_EQ(dataTracker.nextRepair(now), d);
  dataTracker.onSent(d, 2_subflow, 0_pn);
  dataTracker.onLost(d, now);
  EXPECT_EQ(dataTracker.nextRepair(now), d);
  dataTracker.onDelivered(d, false);
  for (int i = 0; i < 3; ++i) dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, ALateAcknowledgmentCancelsTheRepair) {
  UnitRef d = send();
  dataTracker.onLost(d, now);
  dataTracker.onDelivered(d, false);
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
  EXPECT_EQ(flow.sent.unacked(), 0u);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, RepairEndsAtTheRepairTimeAndTheReceiverIsTold) {
  UnitRef d = send();
  Dsn dsn = d->dsn;
  dataTracker.onLost(d, now);
  EXPECT_EQ(dataTracker.nextRepair(now + kRepairTime), d);
  EXPECT_EQ(dataTracker.nextRepair(now + kRepairTime + 1ns), nullptr);
  EXPECT_EQ(drops(Drop::kExpired), 1u);
  EXPECT_EQ(flow.sent.unacked(), 0u);
  std::optional<SkipFrame> skip = dataTracker.takeSkip();
  ASSERT_TRUE(skip);
  EXPECT_EQ(skip->flow, flow.slot());
  EXPECT_EQ(skip->first, dsn);
  EXPECT_EQ(skip->count, 1u);
  EXPECT_FALSE(dataTracker.takeSkip());
  dataTracker.release(d);
}

TEST_F(DataTrackerTest, WhatWaitsForRepairTellsWhenItExpires) {
  EXPECT_EQ(dataTracker.repairExpiresAt(), kNever);
  UnitRef d = send();
  EXPECT_EQ(dataTracker.repairExpiresAt(), kNever) << "it is on its way";
  dataTracker.onLost(d, now);
  Time expires = dataTracker.repairExpiresAt();
  EXPECT_EQ(dataTracker.nextRepair(expires - 1ns), d);
  EXPECT_EQ(dataTracker.nextRepair(expires), nullptr);
  EXPECT_EQ(drops(Drop::kExpired), 1u);
  EXPECT_EQ(dataTracker.repairExpiresAt(), kNever);
  dataTracker.release(d);
}

TEST_F(DataTrackerTest, NeighboursGivenUpAreOneSkip) {
  std::vector<UnitRef> all;
  for (int i = 0; i < 10; ++i) all.push_back(send());
  for (UnitRef d : all) dataTracker.onLost(d, now);
  dataTracker.giveUpRepairs(Drop::kPeerDown);
  std::optional<SkipFrame> skip = dataTracker.takeSkip();
  ASSERT_TRUE(skip);
  EXPECT_EQ(skip->first, 0_dsn);
  EXPECT_EQ(skip->count, 10u);
  EXPECT_FALSE(dataTracker.takeSkip());
  for (UnitRef d : all) dataTracker.release(d);
  EXPECT_EQ(pool.inUse(), 0u);
}

TEST_F(DataTrackerTest, ALostDatagramIsSentAgainOnlyWhileItIsTimely) {
  UnitRef d = send(false);
  dataTracker.onLost(d, now + DataTracker::kTimely);
  EXPECT_EQ(dataTracker.nextRepair(now + DataTracker::kTimely), d);
  EXPECT_EQ(drops(Drop::kLostDatagram), 0u);
  EXPECT_EQ(dataTracker.nextRepair(now + DataTracker::kTimely + 1ns), nullptr);
  EXPECT_EQ(drops(Drop::kLostDatagram), 1u);
  UnitRef late = send(false);
  dataTracker.onLost(late, now + DataTracker::kTimely + 1ns);
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
  EXPECT_EQ(drops(Drop::kLostDatagram), 2u);
  EXPECT_FALSE(dataTracker.takeSkip());
  dataTracker.release(d);
  dataTracker.release(late);
}

TEST_F(DataTrackerTest, ADatagramMovesOnlyWhileItIsTimely) {
  UnitRef late = send(false);
  dataTracker.onMoved(late, now + DataTracker::kTimely + 1ns);
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
  EXPECT_EQ(drops(Drop::kLostDatagram), 1u);
  UnitRef d = send(false);
  dataTracker.onMoved(d, now + DataTracker::kTimely);
  EXPECT_EQ(dataTracker.nextRepair(now + DataTracker::kTimely), d);
  EXPECT_EQ(dataTracker.nextRepair(now + DataTracker::kTimely + 1ns), nullptr);
  EXPECT_EQ(drops(Drop::kLostDatagram), 2u);
  dataTracker.release(late);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

// Random fates of up to three copies of each packet: every entry and buffer is freed, and each
// packet ends exactly once.
TEST_F(DataTrackerTest, NothingLeaksWhateverHappens) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    struct Copy {
      UnitRef unit;
      bool inFlight;
    };
    std::vector<Copy> copies;
    for (int step = 0; step < 500; ++step) {
      now += Duration(random.below(10'000'000));
      uint64_t what = random.below(8);
      if (what == 0 && flow.sent.unacked() + calls.sent.unacked() < 500)
        copies.push_back({send(random.chance(0.7)), true});
      if (copies.empty()) continue;
      Copy& c = copies[random.below(copies.size())];
      if (what == 1 && c.inFlight) {
        c.inFlight = false;
        dataTracker.onMoved(c.unit, now);
      }
      if (what == 2 && c.inFlight) {
        c.inFlight = false;
        dataTracker.onLost(c.unit, now);
      }
      if (what == 3) {
        dataTracker.onDelivered(c.unit, c.inFlight);
        dataTracker.release(c.unit);
        std::swap(c, copies.back());
        copies.pop_back();
      }
      if (what == 4 && !c.inFlight) {
        dataTracker.release(c.unit);
        std::swap(c, copies.back());
        copies.pop_back();
      }
      if (what == 5) {
        if (UnitRef d = dataTracker.nextRepair(now)) {
          dataTracker.onSent(d, 1_subflow, 0_pn);
          copies.push_back({d, true});
        }
      }
      if (what == 6 && !c.unit->isDone()) {
        dataTracker.onCopied(c.unit);
        copies.push_back({copies[static_cast<size_t>(&c - copies.data())].unit, true});
      }
      if (what == 7) dataTracker.onRecovered(copies[random.below(copies.size())].unit);
      while (dataTracker.takeSkip()) {
      }
    }
    dataTracker.giveUpRepairs(Drop::kPeerDown);
    for (Copy& c : copies) dataTracker.release(c.unit);
    ASSERT_EQ(dataTracker.records(), 0u) << "seed " << seed;
    ASSERT_EQ(dataTracker.queuedRepairs(), 0u) << "seed " << seed;
    ASSERT_EQ(pool.inUse(), 0u) << "seed " << seed;
    ASSERT_EQ(flow.sent.unacked() + calls.sent.unacked(), 0u) << "seed " << seed;
  }
}

// ---- copies, recovery, the list of a flow's packets

TEST_F(DataTrackerTest, ACopyCountsAsInFlightAndLeavesTheLastPlace) {
  UnitRef d = make(flow);
  dataTracker.onSent(d, 2_subflow, 77_pn);
  dataTracker.onCopied(d);
  EXPECT_EQ(d->protection, UnitProtection::kCopied);
  EXPECT_EQ(d->carriers, 2);
  EXPECT_EQ(d->subflow, 2_subflow);
  EXPECT_EQ(d->pn, 77_pn);
  dataTracker.onLost(d, now, true);
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr) << "only the copy is lost";
  dataTracker.onLost(d, now);
  EXPECT_EQ(dataTracker.nextRepair(now), d);
  dataTracker.giveUpRepairs(Drop::kPeerDown);
  dataTracker.release(d);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, WhatIsLostWaitsForItsCopyUntilTheAnswerIsDue) {
  UnitRef d = make(flow);
  dataTracker.onSent(d, 2_subflow, 77_pn);
  dataTracker.onCopied(d, now + 30ms);
  dataTracker.onLost(d, now);
  EXPECT_EQ(dataTracker.nextRepair(now), d) << "queued, though the copy is in flight";
  EXPECT_EQ(d->answerDue, now + 30ms) << "and the sender waits so long";
  dataTracker.onDelivered(d, true);
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
  dataTracker.release(d);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, ALostDatagramWaitsForItsCopyToo) {
  UnitRef d = make(calls);
  dataTracker.onSent(d, 2_subflow, 77_pn);
  dataTracker.onCopied(d, now + 30ms);
  dataTracker.onLost(d, now);
  EXPECT_EQ(dataTracker.queuedRepairs(), 1u);
  EXPECT_EQ(d->answerDue, now + 30ms);
  dataTracker.onLost(d, now, true);
  EXPECT_EQ(dataTracker.nextRepair(now), d) << "the copy is lost, too";
  EXPECT_EQ(dataTracker.nextRepair(now + DataTracker::kTimely + 1ns), nullptr);
  EXPECT_TRUE(d->isDone());
  dataTracker.release(d);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, ACopyOnASilentPathSaysNothingOfTheUnitsOwnPath) {
  UnitRef d = make(flow);
  dataTracker.onSent(d, 2_subflow, 77_pn);
  dataTracker.onCopied(d);
  dataTracker.onMoved(d, now, true);
  EXPECT_FALSE(d->moved);
  EXPECT_EQ(dataTracker.queuedRepairs(), 0u);
  dataTracker.onMoved(d, now);
  EXPECT_TRUE(d->moved);
  EXPECT_EQ(dataTracker.queuedRepairs(), 1u);
  dataTracker.giveUpRepairs(Drop::kPeerDown);
  dataTracker.release(d);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, ACopyDoesNotTakeTheUnitOffTheRepairQueue) {
  UnitRef d = send();
  dataTracker.onLost(d, now);
  dataTracker.onCopied(d);
  EXPECT_EQ(dataTracker.nextRepair(now), d);
  dataTracker.onDelivered(d, true);
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
  dataTracker.release(d);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, WhatIsRecoveredIsDeliveredAndNotRepaired) {
  UnitRef d = send();
  dataTracker.onRecovered(d);
  EXPECT_TRUE(d->isDone());
  EXPECT_EQ(pool.inUse(), 0u);
  EXPECT_EQ(flow.sent.unacked(), 0u);
  EXPECT_EQ(d->carriers, 1) << "its datagram is still in flight";
  dataTracker.onLost(d, now);
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
  EXPECT_FALSE(dataTracker.hasSkips());
  dataTracker.onRecovered(d);
  EXPECT_EQ(flow.sent.unacked(), 0u) << "once";
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, RecoveryEndsARepairThatWaits) {
  UnitRef d = send();
  dataTracker.onLost(d, now);
  dataTracker.onRecovered(d);
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
  EXPECT_EQ(dataTracker.queuedRepairs(), 0u);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, WhoHoldsAUnitKeepsItsEntry) {
  UnitRef d = send();
  dataTracker.retain(d);
  dataTracker.onDelivered(d, true);
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 1u);
  EXPECT_TRUE(d->isDone());
  dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, SendingAgainTellsWhereItIsNow) {
  UnitRef d = send();
  dataTracker.onMoved(d, now);
  EXPECT_TRUE(d->moved);
  dataTracker.onSent(d, 3_subflow, 9_pn);
  EXPECT_EQ(d->subflow, 3_subflow);
  EXPECT_EQ(d->pn, 9_pn);
  EXPECT_FALSE(d->moved);
  dataTracker.onDelivered(d, true);
  dataTracker.release(d);
  dataTracker.release(d);
}

/// DSNs of a flow's list, oldest first; checked in both directions.
std::vector<uint64_t> listOf(const Flow& flow) {
  std::vector<uint64_t> list;
  UnitRef before = nullptr;
  for (UnitRef d = flow.sent.oldest(); d; before = d, d = SentData::newer(*d)) {
    EXPECT_EQ(SentData::older(*d), before);
    list.push_back(d->dsn.value());
  }
  EXPECT_EQ(flow.sent.newest(), before);
  return list;
}

TEST_F(DataTrackerTest, AFlowListsItsUndeliveredPacketsInOrder) {
  using List = std::vector<uint64_t>;
  EXPECT_EQ(listOf(flow), List{});
  std::vector<UnitRef> all;
  for (int i = 0; i < 5; ++i) all.push_back(send());
  EXPECT_EQ(listOf(flow), (List{0, 1, 2, 3, 4}));
  dataTracker.onDelivered(all[2], true);
  EXPECT_EQ(listOf(flow), (List{0, 1, 3, 4}));
  dataTracker.onRecovered(all[0]);
  EXPECT_EQ(listOf(flow), (List{1, 3, 4}));
  EXPECT_EQ(dataTracker.undelivered(), 0u);
  dataTracker.giveUp(all[4], Drop::kExpired);
  EXPECT_EQ(dataTracker.undelivered(), 1u);
  EXPECT_EQ(listOf(flow), (List{1, 3}));
  dataTracker.onLost(all[1], now);
  EXPECT_EQ(listOf(flow), (List{1, 3})) << "lost is not delivered";
  dataTracker.giveUpRepairs(Drop::kPeerDown);
  EXPECT_EQ(dataTracker.undelivered(), 2u);
  EXPECT_EQ(listOf(flow), (List{3}));
  dataTracker.onDelivered(all[3], true);
  EXPECT_EQ(listOf(flow), List{});
  all.push_back(send());
  dataTracker.giveUp(all.back(), Drop::kTooBig);
  EXPECT_EQ(dataTracker.undelivered(), 2u) << "its sender is told, and sends smaller ones";
  for (UnitRef d : all) dataTracker.release(d);
  EXPECT_EQ(dataTracker.records(), 0u);
}

TEST_F(DataTrackerTest, NumbersCountUpWithinTheFlow) {
  UnitRef call = send(false);
  EXPECT_EQ(call->dsn, 0_dsn);
  EXPECT_EQ(call->slot, calls.slot());
  EXPECT_EQ(call->delivery, Delivery::kTimely);
  for (Dsn dsn{}; dsn < 3_dsn; ++dsn) {
    UnitRef d = send();
    EXPECT_EQ(d->dsn, dsn);
    EXPECT_EQ(d->slot, flow.slot());
    EXPECT_EQ(d->delivery, Delivery::kReliable);
    dataTracker.onDelivered(d, true);
    dataTracker.release(d);
  }
  dataTracker.onDelivered(call, true);
  dataTracker.release(call);
}

TEST_F(DataTrackerTest, WhatIsRefusedProtectionCountsAsProtected) {
  UnitRef d = send();
  dataTracker.onCoded(d, now + 30ms);
  EXPECT_EQ(d->protection, UnitProtection::kCoded);
  EXPECT_EQ(d->answerDue, now + 30ms);
  EXPECT_EQ(d->carriers, 1) << "a parity is no copy";
  UnitRef old = send();
  dataTracker.forbidCopy(old);
  dataTracker.forbidCoding(old);
  EXPECT_EQ(old->protection, UnitProtection::kRefused) << "nobody asks again";
  EXPECT_EQ(old->carriers, 1);
  for (UnitRef x : {d, old}) {
    dataTracker.onDelivered(x, true);
    dataTracker.release(x);
  }
}

TEST_F(DataTrackerTest, FlowsHaveListsOfTheirOwn) {
  Flow& other = flows.make();
  UnitRef a = send();
  UnitRef b = make(other);
  dataTracker.onSent(b, 0_subflow, 1_pn);
  EXPECT_EQ(listOf(flow).size(), 1u);
  EXPECT_EQ(listOf(other).size(), 1u);
  dataTracker.onDelivered(a, true);
  EXPECT_EQ(listOf(flow).size(), 0u);
  EXPECT_EQ(listOf(other).size(), 1u);
  dataTracker.onDelivered(b, true);
  dataTracker.release(a);
  dataTracker.release(b);
}

// ---- the quota of what was sent

TEST_F(DataTrackerTest, EverySessionHasRoomForItsPart) {
  MemoryQuota quota(80);
  DataTracker greedy(kRepairTime, nullptr, &quota), modest(kRepairTime, nullptr, &quota);
  std::vector<UnitRef> sent, others;
  auto fill = [&](DataTracker& of, std::vector<UnitRef>& all) {
    while (of.mayCreate()) {
      UnitRef d = of.create(flow, pool.copy(std::array<uint8_t, 3>{1, 2, 3}), now);
      of.onSent(d, 0_subflow, 0_pn);
      all.push_back(d);
    }
    return all.size();
  };
  EXPECT_EQ(fill(greedy, sent), 60u) << "three quarters";
  EXPECT_EQ(fill(modest, others), 10u) << "half of the rest";
  EXPECT_FALSE(greedy.mayCreate());
  for (UnitRef d : sent) greedy.onDelivered(d, true);
  EXPECT_EQ(quota.used(), 10u) << "what is delivered keeps no buffer";
  EXPECT_TRUE(modest.mayCreate());
  for (UnitRef d : sent) greedy.release(d);
  EXPECT_EQ(quota.used(), 10u);
  for (UnitRef d : others) {
    modest.onDelivered(d, true);
    modest.release(d);
  }
  EXPECT_EQ(quota.used(), 0u);
}

// Found by review: the tracker passed for a user that can free memory. When it held most, it was
// asked in vain, and those that could have freed some were not.
TEST_F(DataTrackerTest, SentDataIsNotReclaimedButOthersInTheQuotaAre) {
  struct Other final : QuotaUser {
    using QuotaUser::QuotaUser;
    using QuotaUser::setUsed;
    void reclaim() override { setUsed(used() - 10); }
  };
  MemoryQuota quota(100);
  DataTracker tracker(kRepairTime, nullptr, &quota);
  Other other(&quota, Reclaimable::kYes);
  std::vector<UnitRef> sent;
  for (int i = 0; i < 70; ++i) {
    sent.push_back(tracker.create(flow, pool.copy(std::array<uint8_t, 3>{1, 2, 3}), now));
    tracker.onSent(sent.back(), 0_subflow, 0_pn);
  }
  other.setUsed(40);
  EXPECT_EQ(other.used(), 30u);
  EXPECT_EQ(quota.used(), 100u);
  EXPECT_EQ(quota.reclaims(), 1u);
  for (UnitRef d : sent) {
    tracker.onDelivered(d, true);
    tracker.release(d);
  }
  EXPECT_EQ(tracker.records(), 0u);
}

/// A stream's flow, and a unit of it with this many bytes of the stream.
struct RangeTest : DataTrackerTest {
  PacketPool large{2048, 100};
  DataTracker ranges{kRepairTime, nullptr, &large.quota(PacketUse::kSent)};
  Flow stream{flows, {}};

  UnitRef send(uint64_t offset, size_t bytes, uint8_t frame) {
    Packet unit = large.allocate();
    Writer out(unit.room());
    writeStreamPrefix(out, StreamId(6), nullptr);
    for (size_t i = 0; i < bytes; ++i) out.u8(static_cast<uint8_t>(offset + i));
    unit.setSize(out.size());
    stream.unit = {offset, frame};
    UnitRef d = ranges.create(stream, std::move(unit), now);
    ranges.onSent(d, 0_subflow, 0_pn);
    return d;
  }
};

TEST_F(RangeTest, OfAStreamIsNeverTooLate) {
  UnitRef d = send(1000, 500, StreamFrame::kFirst);
  EXPECT_EQ(d->dsn, Dsn(1000));
  now += 1h;
  ranges.onLost(d, now);
  EXPECT_EQ(ranges.nextRepair(now), d);
  ranges.onSent(d, 0_subflow, 1_pn);
  ranges.release(d);
  now += 1h;
  ranges.onMoved(d, now);
  EXPECT_EQ(ranges.nextRepair(now), d);
  ranges.giveUp(d, Drop::kPeerDown);
  EXPECT_FALSE(ranges.hasSkips()) << "there is no SKIP for streams";
  ranges.release(d);
  EXPECT_EQ(ranges.records(), 0u);
}

TEST_F(RangeTest, IsCutInTwoThatAreSentOneAfterTheOther) {
  UnitRef d = send(1000, 500, StreamFrame::kFirst | StreamFrame::kFin);
  EXPECT_FALSE(ranges.cut(d, 200, large)) << "it is on its way";
  ranges.onLost(d, now);
  ranges.release(d);
  EXPECT_FALSE(ranges.cut(d, 501, large)) << "it is not larger";
  ASSERT_TRUE(ranges.cut(d, 201, large));
  EXPECT_EQ(stream.sent.unacked(), 2u);
  EXPECT_EQ(d->packet.size(), 201u);
  EXPECT_EQ(d->frame, StreamFrame::kFirst);
  UnitRef rest = DataTracker::repairAfter(d);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->dsn, Dsn(1200));
  EXPECT_EQ(rest->frame, StreamFrame::kFirst | StreamFrame::kFin);
  EXPECT_EQ(rest->packet.size(), 301u);
  EXPECT_TRUE(d->isProtected() && rest->isProtected())
      << "the number that they left under stands for other bytes";
  for (UnitRef each : {d, rest}) {
    EXPECT_EQ(ranges.nextRepair(now), each);
    ranges.onSent(each, 0_subflow, 5_pn);
    ranges.onDelivered(each, true);
    ranges.release(each);
  }
  EXPECT_EQ(ranges.records(), 0u);
  EXPECT_EQ(large.inUse(), 0u);
  EXPECT_EQ(large.quota(PacketUse::kSent).used(), 0u);
}

}  // namespace
}  // namespace braid::data_tracker_test
