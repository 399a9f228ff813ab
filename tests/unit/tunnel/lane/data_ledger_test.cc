#include "tunnel/lane/data_ledger.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/lane/some_flows.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::data_ledger_test {
namespace {

constexpr Duration kRepairTime = 3s;

struct DataLedgerTest : testing::Test {
  PacketPool pool{1500, 2000};
  SomeFlows flows;
  Flow& flow = flows.make();
  Flow& calls = flows.make(false);
  DataLedger ledger{kRepairTime};
  Time now = Time{} + 1s;

  const Datum* make(Flow& of) { return ledger.create(of, pool.copy(std::array<uint8_t, 3>{1, 2, 3}), now); }
  /// A packet that leaves on subflow 0.
  const Datum* send(bool reliable = true) {
    const Datum* d = make(reliable ? flow : calls);
    ledger.onSent(d, 0_subflow, 0_pn);
    return d;
  }
  uint64_t drops(Drop cause) { return ledger.drops()[static_cast<size_t>(cause)]; }
};

TEST_F(DataLedgerTest, DeliveryFreesTheBufferAtOnceAndTheEntryWhenForgotten) {
  const Datum* d = send();
  EXPECT_EQ(flow.sent.unacked(), 1u);
  EXPECT_EQ(pool.inUse(), 1u);
  ledger.onDelivered(d, true);
  EXPECT_EQ(flow.sent.unacked(), 0u);
  EXPECT_EQ(pool.inUse(), 0u);
  EXPECT_EQ(ledger.live(), 1u);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, ALostPacketIsRepairedOldestFirst) {
  const Datum* a = send();
  const Datum* b = send();
  ledger.onLost(a, now);
  ledger.onLost(b, now);
  EXPECT_EQ(ledger.nextRepair(now), a);
  ledger.onSent(a, 1_subflow, 0_pn);
  EXPECT_EQ(a->subflow, 1_subflow);
  EXPECT_EQ(ledger.nextRepair(now), b);
  ledger.onSent(b, 1_subflow, 0_pn);
  EXPECT_EQ(ledger.nextRepair(now), nullptr);
  for (const Datum* d : {a, b}) {
    ledger.onDelivered(d, true);
    ledger.forget(d);
    ledger.forget(d);
  }
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, TheRepairQueueTellsWhenItChanges) {
  const Datum* a = send();
  const Datum* b = send();
  EXPECT_EQ(ledger.repairChanges(), 0u);
  ledger.onLost(a, now);
  EXPECT_EQ(ledger.repairChanges(), 1u);
  ledger.onSent(a, 1_subflow, 0_pn);
  EXPECT_EQ(ledger.repairChanges(), 2u);
  ledger.onLost(b, now);
  ledger.onRecovered(b);
  EXPECT_EQ(ledger.repairChanges(), 4u);
  ledger.onDelivered(a, true);
  EXPECT_EQ(ledger.repairChanges(), 4u) << "it was not in the queue";
  for (const Datum* d : {a, a, b}) ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, WhatAnotherCopyDeliveredIsNotRepaired) {
  const Datum* d = send();
  ledger.onMoved(d, now);
  EXPECT_EQ(d->copies, 0);
  ledger.onSent(ledger.nextRepair(now), 1_subflow, 0_pn);
  EXPECT_EQ(d->copies, 1);
  ledger.onDelivered(d, false);
  ledger.onLost(d, now);
  EXPECT_EQ(ledger.nextRepair(now), nullptr);
  EXPECT_EQ(pool.inUse(), 0u);
  ledger.forget(d);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, OneCopyLostIsNoReasonWhileAnotherIsInFlight) {
  const Datum* d = send();
  ledger.onSent(d, 1_subflow, 0_pn);
  ledger.onLost(d, now);
  EXPECT_EQ(ledger.nextRepair(now), nullptr);
  ledger.onLost(d, now);
  EXPECT_EQ(ledger.nextRepair(now), d);
  ledger.giveUpAll(Drop::kPeerDown);
  ledger.forget(d);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, AMovedPacketMovesOnWhenTheNextSubflowFallsSilentToo) {
  const Datum* d = send();
  ledger.onMoved(d, now);
  EXPECT_TRUE(d->moved);
  ledger.onSent(ledger.nextRepair(now), 1_subflow, 0_pn);
  EXPECT_FALSE(d->moved);
  ledger.onMoved(d, now);
  ASSERT_EQ(ledger.nextRepair(now), d);
  ledger.onSent(d, 2_subflow, 0_pn);
  ledger.onLost(d, now);
  EXPECT_EQ(ledger.nextRepair(now), d);
  ledger.onDelivered(d, false);
  for (int i = 0; i < 3; ++i) ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, ALateAcknowledgmentCancelsTheRepair) {
  const Datum* d = send();
  ledger.onLost(d, now);
  ledger.onDelivered(d, false);
  EXPECT_EQ(ledger.nextRepair(now), nullptr);
  EXPECT_EQ(flow.sent.unacked(), 0u);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, RepairEndsAtTheRepairTimeAndTheReceiverIsTold) {
  const Datum* d = send();
  Dsn dsn = d->dsn;
  ledger.onLost(d, now);
  EXPECT_EQ(ledger.nextRepair(now + kRepairTime), d);
  EXPECT_EQ(ledger.nextRepair(now + kRepairTime + 1ns), nullptr);
  EXPECT_EQ(drops(Drop::kExpired), 1u);
  EXPECT_EQ(flow.sent.unacked(), 0u);
  std::optional<SkipFrame> skip = ledger.takeSkip();
  ASSERT_TRUE(skip);
  EXPECT_EQ(skip->flow, flow.slot());
  EXPECT_EQ(skip->first, dsn);
  EXPECT_EQ(skip->count, 1u);
  EXPECT_FALSE(ledger.takeSkip());
  ledger.forget(d);
}

TEST_F(DataLedgerTest, WhatWaitsForRepairTellsWhenItExpires) {
  EXPECT_EQ(ledger.repairExpiresAt(), kNever);
  const Datum* d = send();
  EXPECT_EQ(ledger.repairExpiresAt(), kNever) << "it is on its way";
  ledger.onLost(d, now);
  Time expires = ledger.repairExpiresAt();
  EXPECT_EQ(ledger.nextRepair(expires - 1ns), d);
  EXPECT_EQ(ledger.nextRepair(expires), nullptr);
  EXPECT_EQ(drops(Drop::kExpired), 1u);
  EXPECT_EQ(ledger.repairExpiresAt(), kNever);
  ledger.forget(d);
}

TEST_F(DataLedgerTest, NeighboursGivenUpAreOneSkip) {
  std::vector<const Datum*> all;
  for (int i = 0; i < 10; ++i) all.push_back(send());
  for (const Datum* d : all) ledger.onLost(d, now);
  ledger.giveUpAll(Drop::kPeerDown);
  std::optional<SkipFrame> skip = ledger.takeSkip();
  ASSERT_TRUE(skip);
  EXPECT_EQ(skip->first, 0_dsn);
  EXPECT_EQ(skip->count, 10u);
  EXPECT_FALSE(ledger.takeSkip());
  for (const Datum* d : all) ledger.forget(d);
  EXPECT_EQ(pool.inUse(), 0u);
}

TEST_F(DataLedgerTest, ALostDatagramIsNotSentAgain) {
  const Datum* d = send(false);
  ledger.onLost(d, now);
  EXPECT_EQ(ledger.nextRepair(now), nullptr);
  EXPECT_EQ(drops(Drop::kLostDatagram), 1u);
  EXPECT_FALSE(ledger.takeSkip());
  ledger.forget(d);
}

TEST_F(DataLedgerTest, ADatagramMovesOnlyWhileItIsTimely) {
  const Datum* late = send(false);
  ledger.onMoved(late, now + DataLedger::kTimely + 1ns);
  EXPECT_EQ(ledger.nextRepair(now), nullptr);
  EXPECT_EQ(drops(Drop::kLostDatagram), 1u);
  const Datum* d = send(false);
  ledger.onMoved(d, now + DataLedger::kTimely);
  EXPECT_EQ(ledger.nextRepair(now + DataLedger::kTimely), d);
  EXPECT_EQ(ledger.nextRepair(now + DataLedger::kTimely + 1ns), nullptr);
  EXPECT_EQ(drops(Drop::kLostDatagram), 2u);
  ledger.forget(late);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

// Random fates on up to three copies: every entry and buffer comes back, each packet ends once.
TEST_F(DataLedgerTest, NothingLeaksWhateverHappens) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    struct Copy {
      const Datum* datum;
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
        ledger.onMoved(c.datum, now);
      }
      if (what == 2 && c.inFlight) {
        c.inFlight = false;
        ledger.onLost(c.datum, now);
      }
      if (what == 3) {
        ledger.onDelivered(c.datum, c.inFlight);
        ledger.forget(c.datum);
        std::swap(c, copies.back());
        copies.pop_back();
      }
      if (what == 4 && !c.inFlight) {
        ledger.forget(c.datum);
        std::swap(c, copies.back());
        copies.pop_back();
      }
      if (what == 5) {
        if (const Datum* d = ledger.nextRepair(now)) {
          ledger.onSent(d, 1_subflow, 0_pn);
          copies.push_back({d, true});
        }
      }
      if (what == 6 && !c.datum->done) {
        ledger.onCopied(c.datum);
        copies.push_back({copies[static_cast<size_t>(&c - copies.data())].datum, true});
      }
      if (what == 7) ledger.onRecovered(copies[random.below(copies.size())].datum);
      while (ledger.takeSkip()) {
      }
    }
    ledger.giveUpAll(Drop::kPeerDown);
    for (Copy& c : copies) ledger.forget(c.datum);
    ASSERT_EQ(ledger.live(), 0u) << "seed " << seed;
    ASSERT_EQ(ledger.queued(), 0u) << "seed " << seed;
    ASSERT_EQ(pool.inUse(), 0u) << "seed " << seed;
    ASSERT_EQ(flow.sent.unacked() + calls.sent.unacked(), 0u) << "seed " << seed;
  }
}

// ---- copies, recovery, the list of a flow's packets

TEST_F(DataLedgerTest, ACopyCountsAsInFlightAndLeavesTheLastPlace) {
  const Datum* d = make(flow);
  ledger.onSent(d, 2_subflow, 77_pn);
  ledger.onCopied(d);
  EXPECT_TRUE(d->copied);
  EXPECT_EQ(d->copies, 2);
  EXPECT_EQ(d->subflow, 2_subflow);
  EXPECT_EQ(d->pn, 77_pn);
  ledger.onLost(d, now, true);
  EXPECT_EQ(ledger.nextRepair(now), nullptr) << "only the copy is lost";
  ledger.onLost(d, now);
  EXPECT_EQ(ledger.nextRepair(now), d);
  ledger.giveUpAll(Drop::kPeerDown);
  ledger.forget(d);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, WhatIsLostWaitsForItsCopyUntilTheAnswerIsDue) {
  const Datum* d = make(flow);
  ledger.onSent(d, 2_subflow, 77_pn);
  ledger.onCopied(d, now + 30ms);
  ledger.onLost(d, now);
  EXPECT_EQ(ledger.nextRepair(now), d) << "queued, though the copy is in flight";
  EXPECT_EQ(d->answerDue, now + 30ms) << "and the sender waits so long";
  ledger.onDelivered(d, true);
  EXPECT_EQ(ledger.nextRepair(now), nullptr);
  ledger.forget(d);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, ALostDatagramWithACopyInFlightIsNotSentAgain) {
  const Datum* d = make(calls);
  ledger.onSent(d, 2_subflow, 77_pn);
  ledger.onCopied(d, now + 30ms);
  ledger.onLost(d, now);
  EXPECT_EQ(ledger.queued(), 0u);
  EXPECT_FALSE(d->done);
  ledger.onLost(d, now, true);
  EXPECT_TRUE(d->done);
  ledger.forget(d);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, ACopyOnASilentPathSaysNothingOfTheDatumsOwnPath) {
  const Datum* d = make(flow);
  ledger.onSent(d, 2_subflow, 77_pn);
  ledger.onCopied(d);
  ledger.onMoved(d, now, true);
  EXPECT_FALSE(d->moved);
  EXPECT_EQ(ledger.queued(), 0u);
  ledger.onMoved(d, now);
  EXPECT_TRUE(d->moved);
  EXPECT_EQ(ledger.queued(), 1u);
  ledger.giveUpAll(Drop::kPeerDown);
  ledger.forget(d);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, ACopyDoesNotTakeTheDatumOffTheRepairQueue) {
  const Datum* d = send();
  ledger.onLost(d, now);
  ledger.onCopied(d);
  EXPECT_EQ(ledger.nextRepair(now), d);
  ledger.onDelivered(d, true);
  EXPECT_EQ(ledger.nextRepair(now), nullptr);
  ledger.forget(d);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, WhatIsRecoveredIsDeliveredAndNotRepaired) {
  const Datum* d = send();
  ledger.onRecovered(d);
  EXPECT_TRUE(d->done);
  EXPECT_EQ(pool.inUse(), 0u);
  EXPECT_EQ(flow.sent.unacked(), 0u);
  EXPECT_EQ(d->copies, 1) << "its datagram is still in flight";
  ledger.onLost(d, now);
  EXPECT_EQ(ledger.nextRepair(now), nullptr);
  EXPECT_FALSE(ledger.hasSkips());
  ledger.onRecovered(d);
  EXPECT_EQ(flow.sent.unacked(), 0u) << "once";
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, RecoveryEndsARepairThatWaits) {
  const Datum* d = send();
  ledger.onLost(d, now);
  ledger.onRecovered(d);
  EXPECT_EQ(ledger.nextRepair(now), nullptr);
  EXPECT_EQ(ledger.queued(), 0u);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, WhoHoldsADatumKeepsItsEntry) {
  const Datum* d = send();
  ledger.hold(d);
  ledger.onDelivered(d, true);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 1u);
  EXPECT_TRUE(d->done);
  ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, SendingAgainTellsWhereItIsNow) {
  const Datum* d = send();
  ledger.onMoved(d, now);
  EXPECT_TRUE(d->moved);
  ledger.onSent(d, 3_subflow, 9_pn);
  EXPECT_EQ(d->subflow, 3_subflow);
  EXPECT_EQ(d->pn, 9_pn);
  EXPECT_FALSE(d->moved);
  ledger.onDelivered(d, true);
  ledger.forget(d);
  ledger.forget(d);
}

/// DSNs of a flow's list, oldest first; checked in both directions.
std::vector<uint64_t> listOf(const Flow& flow) {
  std::vector<uint64_t> list;
  const Datum* before = nullptr;
  for (const Datum* d = flow.sent.oldest(); d; before = d, d = SentData::newer(*d)) {
    EXPECT_EQ(SentData::older(*d), before);
    list.push_back(d->dsn.value());
  }
  EXPECT_EQ(flow.sent.newest(), before);
  return list;
}

TEST_F(DataLedgerTest, AFlowListsItsUndeliveredPacketsInOrder) {
  using List = std::vector<uint64_t>;
  EXPECT_EQ(listOf(flow), List{});
  std::vector<const Datum*> all;
  for (int i = 0; i < 5; ++i) all.push_back(send());
  EXPECT_EQ(listOf(flow), (List{0, 1, 2, 3, 4}));
  ledger.onDelivered(all[2], true);
  EXPECT_EQ(listOf(flow), (List{0, 1, 3, 4}));
  ledger.onRecovered(all[0]);
  EXPECT_EQ(listOf(flow), (List{1, 3, 4}));
  ledger.giveUp(all[4], Drop::kExpired);
  EXPECT_EQ(listOf(flow), (List{1, 3}));
  ledger.onLost(all[1], now);
  EXPECT_EQ(listOf(flow), (List{1, 3})) << "lost is not delivered";
  ledger.giveUpAll(Drop::kPeerDown);
  EXPECT_EQ(listOf(flow), (List{3}));
  ledger.onDelivered(all[3], true);
  EXPECT_EQ(listOf(flow), List{});
  for (const Datum* d : all) ledger.forget(d);
  EXPECT_EQ(ledger.live(), 0u);
}

TEST_F(DataLedgerTest, NumbersCountUpWithinTheFlow) {
  const Datum* call = send(false);
  EXPECT_EQ(call->dsn, 0_dsn);
  EXPECT_EQ(call->slot, calls.slot());
  EXPECT_EQ(call->delivery, Delivery::kTimely);
  for (Dsn dsn{}; dsn < 3_dsn; ++dsn) {
    const Datum* d = send();
    EXPECT_EQ(d->dsn, dsn);
    EXPECT_EQ(d->slot, flow.slot());
    EXPECT_EQ(d->delivery, Delivery::kReliable);
    ledger.onDelivered(d, true);
    ledger.forget(d);
  }
  ledger.onDelivered(call, true);
  ledger.forget(call);
}

TEST_F(DataLedgerTest, WhatIsRefusedProtectionCountsAsProtected) {
  const Datum* d = send();
  ledger.onCoded(d, now + 30ms);
  EXPECT_TRUE(d->coded);
  EXPECT_EQ(d->answerDue, now + 30ms);
  EXPECT_EQ(d->copies, 1) << "a parity is no copy";
  const Datum* old = send();
  ledger.refuseCopy(old);
  ledger.refuseCode(old);
  EXPECT_TRUE(old->copied && old->coded) << "nobody asks again";
  EXPECT_EQ(old->copies, 1);
  for (const Datum* x : {d, old}) {
    ledger.onDelivered(x, true);
    ledger.forget(x);
  }
}

TEST_F(DataLedgerTest, FlowsHaveListsOfTheirOwn) {
  Flow& other = flows.make();
  const Datum* a = send();
  const Datum* b = make(other);
  ledger.onSent(b, 0_subflow, 1_pn);
  EXPECT_EQ(listOf(flow).size(), 1u);
  EXPECT_EQ(listOf(other).size(), 1u);
  ledger.onDelivered(a, true);
  EXPECT_EQ(listOf(flow).size(), 0u);
  EXPECT_EQ(listOf(other).size(), 1u);
  ledger.onDelivered(b, true);
  ledger.forget(a);
  ledger.forget(b);
}

// ---- the budget of what was sent

TEST_F(DataLedgerTest, EverySessionHasRoomForItsPart) {
  Budget budget(80);
  DataLedger greedy(kRepairTime, nullptr, &budget), modest(kRepairTime, nullptr, &budget);
  std::vector<const Datum*> sent, others;
  auto fill = [&](DataLedger& of, std::vector<const Datum*>& all) {
    while (of.mayCreate()) {
      const Datum* d = of.create(flow, pool.copy(std::array<uint8_t, 3>{1, 2, 3}), now);
      of.onSent(d, 0_subflow, 0_pn);
      all.push_back(d);
    }
    return all.size();
  };
  EXPECT_EQ(fill(greedy, sent), 60u) << "three quarters";
  EXPECT_EQ(fill(modest, others), 10u) << "half of the rest";
  EXPECT_FALSE(greedy.mayCreate());
  for (const Datum* d : sent) greedy.onDelivered(d, true);
  EXPECT_EQ(budget.used(), 10u) << "what is delivered keeps no buffer";
  EXPECT_TRUE(modest.mayCreate());
  for (const Datum* d : sent) greedy.forget(d);
  EXPECT_EQ(budget.used(), 10u);
  for (const Datum* d : others) {
    modest.onDelivered(d, true);
    modest.forget(d);
  }
  EXPECT_EQ(budget.used(), 0u);
}

/// A stream's flow, and a unit of it with this many bytes of the stream.
struct RangeTest : DataLedgerTest {
  PacketPool large{2048, 100};
  DataLedger ranges{kRepairTime, nullptr, &large.budget(PacketUse::kSent)};
  Flow stream{flows, {}};

  const Datum* send(uint64_t offset, size_t bytes, uint8_t frame) {
    Packet unit = large.allocate();
    Writer out(unit.room());
    writeStreamPrefix(out, StreamId(6), nullptr);
    for (size_t i = 0; i < bytes; ++i) out.u8(static_cast<uint8_t>(offset + i));
    unit.setSize(out.size());
    stream.unit = {offset, frame};
    const Datum* d = ranges.create(stream, std::move(unit), now);
    ranges.onSent(d, 0_subflow, 0_pn);
    return d;
  }
};

TEST_F(RangeTest, OfAStreamIsNeverTooLate) {
  const Datum* d = send(1000, 500, StreamFrame::kFirst);
  EXPECT_EQ(d->dsn, Dsn(1000));
  now += 1h;
  ranges.onLost(d, now);
  EXPECT_EQ(ranges.nextRepair(now), d);
  ranges.onSent(d, 0_subflow, 1_pn);
  ranges.forget(d);
  now += 1h;
  ranges.onMoved(d, now);
  EXPECT_EQ(ranges.nextRepair(now), d);
  ranges.giveUp(d, Drop::kPeerDown);
  EXPECT_FALSE(ranges.hasSkips()) << "there is no SKIP for streams";
  ranges.forget(d);
  EXPECT_EQ(ranges.live(), 0u);
}

TEST_F(RangeTest, IsCutInTwoThatAreSentOneAfterTheOther) {
  const Datum* d = send(1000, 500, StreamFrame::kFirst | StreamFrame::kFin);
  EXPECT_FALSE(ranges.cut(d, 200, large)) << "it is on its way";
  ranges.onLost(d, now);
  ranges.forget(d);
  EXPECT_FALSE(ranges.cut(d, 501, large)) << "it is not larger";
  ASSERT_TRUE(ranges.cut(d, 201, large));
  EXPECT_EQ(stream.sent.unacked(), 2u);
  EXPECT_EQ(d->packet.size(), 201u);
  EXPECT_EQ(d->frame, StreamFrame::kFirst);
  const Datum* rest = DataLedger::repairAfter(d);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->dsn, Dsn(1200));
  EXPECT_EQ(rest->frame, StreamFrame::kFirst | StreamFrame::kFin);
  EXPECT_EQ(rest->packet.size(), 301u);
  EXPECT_TRUE(d->coded && rest->coded) << "the number that they left under stands for other bytes";
  for (const Datum* each : {d, rest}) {
    EXPECT_EQ(ranges.nextRepair(now), each);
    ranges.onSent(each, 0_subflow, 5_pn);
    ranges.onDelivered(each, true);
    ranges.forget(each);
  }
  EXPECT_EQ(ranges.live(), 0u);
  EXPECT_EQ(large.inUse(), 0u);
  EXPECT_EQ(large.budget(PacketUse::kSent).used(), 0u);
}

}  // namespace
}  // namespace braid::data_ledger_test
