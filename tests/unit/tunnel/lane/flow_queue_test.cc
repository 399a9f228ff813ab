#include "tunnel/lane/flow_queues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"
#include "inet/ecn.h"
#include "tests/unit/tunnel/lane/flow_queue_bench.h"
#include "tunnel/wire/frames.h"

namespace braid::flow_queue_test {
namespace {

TEST(FlowQueues, EmptyGivesNothing) {
  Bench b;
  EXPECT_EQ(b.queues.peek(at(1s)), nullptr);
  Flow* flow = nullptr;
  EXPECT_FALSE(b.queues.pop(at(1s), flow));
  EXPECT_EQ(flow, nullptr);
  EXPECT_EQ(b.queues.nextDeadline(), kNever);
}

TEST(FlowQueues, OneFlowIsAFifo) {
  Bench b;
  for (size_t size : {300, 400, 500}) b.in(1, size);
  EXPECT_EQ(b.queues.packets(), 3u);
  EXPECT_EQ(b.queues.bytes(), 1200u);
  for (size_t size : {300, 400, 500}) {
    Flow* flow = nullptr;
    Packet p = b.queues.pop(at(1s), flow);
    EXPECT_EQ(p.size(), size);
    ASSERT_NE(flow, nullptr);
    EXPECT_EQ(flow->key(), key(1));
  }
  EXPECT_EQ(b.queues.packets(), 0u);
  EXPECT_EQ(b.queues.bytes(), 0u);
  EXPECT_EQ(b.flow(1)->queue.counts().packets, 3u);
  EXPECT_EQ(b.flow(1)->queue.counts().bytes, 1200u);
}

TEST(FlowQueues, PeekSettlesOnWhatPopTakes) {
  Bench b;
  b.in(1, 700);
  const Packet* shown = b.queues.peek(at(1s));
  ASSERT_NE(shown, nullptr);
  const uint8_t* bytes = shown->data();
  b.in(2, 800);
  EXPECT_EQ(b.queues.peek(at(2s))->data(), bytes);
  EXPECT_EQ(b.queues.packets(), 2u) << "it still waits";
  EXPECT_EQ(b.queues.bytes(), 1500u);
  Flow* flow = nullptr;
  EXPECT_EQ(b.queues.pop(at(2s), flow).data(), bytes);
  EXPECT_EQ(b.out(at(2s)), 2);
}

TEST(FlowQueues, TheTargetFollowsTheSlowestPath) {
  LaneOptions o;
  EXPECT_EQ(queueTarget(o, 0s), 25ms);
  EXPECT_EQ(queueTarget(o, 16ms), 25ms);
  EXPECT_EQ(queueTarget(o, 60ms), 90ms);
  EXPECT_EQ(queueTarget(o, 600ms), 100ms) << "half the interval";
  o.codelInterval = 10ms;
  EXPECT_EQ(queueTarget(o, 1ms), 5ms);
  o.codelTarget = 500us;
  EXPECT_EQ(queueTarget(o, 60ms), 500us) << "as configured";
}

// ---- RFC 8290 section 4.2: deficit round robin, new and old flows

TEST(FlowQueues, QuantumByHand) {
  Bench b;
  for (int i = 0; i < 8; ++i) b.in(1, 1000);
  for (int i = 0; i < 8; ++i) b.in(2, 500);
  // Both new with 1514. Flow 1: 514, -486. Flow 2: 1014, 514, 14, -486. Then + 1514 each: 1028.
  // Flow 1: 28, -972. Flow 2: 528, 28, -472. + 1514: flow 1 542, -458. Flow 2: 1042: 542.
  EXPECT_EQ(b.outs(13), (Outs{1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 2, 1, 2}));
}

TEST(FlowQueues, NewFlowGoesBeforeOldOnes) {
  Bench b;
  for (int i = 0; i < 10; ++i) {
    b.in(1);
    b.in(2);
  }
  b.outs(8);
  b.in(3);
  EXPECT_EQ(b.out(), 3);
  EXPECT_NE(b.out(), 3);
}

TEST(FlowQueues, NewFlowThatUsesItsQuantumBecomesOld) {
  Bench b;
  for (int i = 0; i < 10; ++i) b.in(1);
  b.outs(4);  // flow 1 is old, its credit used up
  for (int i = 0; i < 10; ++i) b.in(2);
  // Flow 2 is new: 1514, 514, -486, + 1514 = 1028 and last of the old. Flow 1: -972 + 1514 = 542, behind
  // flow 2. Flow 2: 28, -972, + 1514 = 542, behind flow 1: -458, + 1514, behind flow 2.
  EXPECT_EQ(b.outs(6), (Outs{2, 2, 2, 2, 1, 2}));
}

TEST(FlowQueues, EmptiedNewFlowIsOldBeforeItIsForgotten) {
  Bench b;
  for (int i = 0; i < 20; ++i) b.in(1, 300);
  ASSERT_EQ(b.out(), 1);  // 1214 left
  ASSERT_EQ(b.out(), 1);
  b.in(2, 100);
  // Both are new. Flow 1 goes on: 614, 314, 14, -286, + 1514 and old. Flow 2 goes, and is found empty: old
  // too.
  EXPECT_EQ(b.outs(5), (Outs{1, 1, 1, 1, 2}));
  EXPECT_EQ(b.out(), 1);  // 1228 - 300 left
  b.in(2, 100);
  // As a new flow it would go before flow 1 each time. It waits until flow 1 has used its credit.
  EXPECT_EQ(b.outs(5), (Outs{1, 1, 1, 1, 2}));
}

TEST(FlowQueues, FlowThatWasGoneIsNewAgain) {
  Bench b;
  b.in(1, 1500);
  EXPECT_EQ(b.outs(2), (Outs{1, -1}));
  for (int i = 0; i < 10; ++i) b.in(2);
  b.outs(4);
  b.in(1, 1500);
  EXPECT_EQ(b.out(), 1);
}

TEST(FlowQueues, PacketsAboveTheQuantumAreServed) {
  Bench b;
  for (int i = 0; i < 4; ++i) {
    b.in(1, 2900);
    b.in(2, 1450);
    b.in(2, 1450);
  }
  std::map<int, size_t> bytes;
  for (int i = 0; i < 6; ++i) {
    int n = b.out();
    bytes[n] += n == 1 ? 2900 : 1450;
  }
  EXPECT_EQ(bytes[1], bytes[2]);
}

TEST(FlowQueuesProperty, BackloggedFlowsGetEqualShares) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    FlowQueueOptions options;
    options.codel.target = 1h;
    options.queueBytes = 64 << 20;
    Bench b(options);
    uint16_t flows = static_cast<uint16_t>(2 + random.below(10));
    std::vector<size_t> top(flows + 1u);
    for (uint16_t n = 1; n <= flows; ++n) {
      top[n] = 60 + random.below(1454);
      for (size_t queued = 0; queued < 200'000;) {
        size_t size = 40 + random.below(top[n] - 40);
        b.in(n, size);
        queued += size;
      }
    }
    std::map<int, int64_t> served;
    for (int step = 0;; ++step) {
      const Packet* head = b.queues.peek(at(1s));
      ASSERT_NE(head, nullptr);
      auto size = static_cast<int64_t>(head->size());
      int n = b.out();
      served[n] += size;
      if (served[n] > 150'000) break;
      if (step < 20 * flows) continue;
      auto [low, high] = std::minmax_element(
          served.begin(), served.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
      ASSERT_EQ(served.size(), flows);
      ASSERT_LE(high->second - low->second, FairRound::kQuantum + 1514);
    }
  }
}

TEST(FlowQueuesProperty, SparseFlowNeverWaitsForMoreThanOnePacket) {
  Random random(7);
  Bench b;
  for (int i = 0; i < 400; ++i) b.in(static_cast<uint16_t>(1 + i % 4), 1400);
  b.outs(8);
  Time now = at(1s);
  for (int i = 0; i < 40; ++i) {
    b.in(9, 200, now);
    ASSERT_EQ(b.out(now), 9) << i;
    // Four old flows have their turns meanwhile.
    for (int j = 0; j < 8; ++j) ASSERT_NE(b.out(now), 9);
  }
}

// ---- CoDel on each flow

TEST(FlowQueues, StandingQueueDropsAtItsHead) {
  Bench b;
  for (int i = 0; i < 300; ++i) b.in(1, 1000, at(0ms));
  for (Duration t = 0ms; t <= 205ms; t += 1ms) ASSERT_EQ(b.out(at(t)), 1);
  EXPECT_EQ(b.drops(Drop::kAqm), 2u);  // at 105 and 205 ms, see codel_test.cc
  EXPECT_EQ(b.flow(1)->queue.counts().drops, 2u);
  EXPECT_EQ(b.queues.packets(), 300u - 206 - 2);
  EXPECT_EQ(b.queues.bytes(), 1000 * b.queues.packets());
}

TEST(FlowQueues, EcnCapablePacketsAreMarked) {
  Bench b;
  for (int i = 0; i < 300; ++i) b.in(1, 1000, at(0ms), true, true);
  int marked = 0;
  for (Duration t = 0ms; t <= 205ms; t += 1ms) {
    Flow* flow = nullptr;
    Packet p = b.queues.pop(at(t), flow);
    ASSERT_TRUE(p);
    marked += readEcn(p.view()) == Ecn::kCe;
  }
  EXPECT_EQ(marked, 2);
  EXPECT_EQ(b.flow(1)->queue.counts().marks, 2u);
  EXPECT_EQ(b.flow(1)->queue.counts().drops, 0u);
  EXPECT_EQ(b.drops(Drop::kAqm), 0u);
}

TEST(FlowQueues, MarksBehindAnEthernetHeader) {
  Bench b({.ethernet = true});
  for (int i = 0; i < 300; ++i) {
    Packet p = b.make(1, 1000);
    store16(p.data() + 2, 1000);  // total length, TTL, protocol: a well-formed packet
    p.data()[8] = 64;
    p.data()[9] = 17;
    uint8_t* ethernet = p.prepend(14);
    std::fill_n(ethernet, 12, uint8_t{2});
    store16(ethernet + 12, 0x0800);
    b.queues.enqueue(std::move(p), key(1), true, true, at(0ms));
  }
  int marked = 0;
  for (Duration t = 0ms; t <= 205ms; t += 1ms) {
    Flow* flow = nullptr;
    Packet p = b.queues.pop(at(t), flow);
    marked += readEcn(p.view().subspan(14)) == Ecn::kCe;
  }
  EXPECT_EQ(marked, 2);
}

TEST(FlowQueues, DropsOfOneFlowLeaveOthersAlone) {
  Bench b;
  for (int i = 0; i < 300; ++i) b.in(1, 1000, at(0ms));
  for (Duration t = 0ms; t <= 300ms; t += 1ms) {
    b.in(2, 100, at(t));
    for (int n = 0; n != 1 && n != -1; n = b.out(at(t))) {
    }
  }
  EXPECT_GT(b.flow(1)->queue.counts().drops, 0u);
  EXPECT_EQ(b.flow(2)->queue.counts().drops, 0u);
}

// ---- bounds

TEST(FlowQueues, ByteBoundDropsFromTheHeadOfTheFattest) {
  Bench b({.queueBytes = 20'000});
  for (int i = 0; i < 4; ++i) b.in(1);
  for (int i = 0; i < 16; ++i) b.in(2, i == 0 ? 999 : 1000);
  b.in(3, 1000);  // 20999: flow 2 loses half of its bytes at once
  EXPECT_EQ(b.flow(1)->queue.bytes(), 4000u);
  EXPECT_EQ(b.flow(3)->queue.bytes(), 1000u);
  EXPECT_EQ(b.flow(2)->queue.bytes(), 7000u) << "999 + 8 * 1000 went, the first where half was reached";
  EXPECT_EQ(b.drops(Drop::kQueueFull), 9u);
  EXPECT_EQ(b.flow(2)->queue.counts().drops, 9u);
  EXPECT_EQ(b.queues.bytes(), 12'000u);
}

TEST(FlowQueues, DropBatchIsLimited) {
  Bench b({.queueBytes = 300'000});
  for (int i = 0; i < 301; ++i) b.in(1);
  EXPECT_EQ(b.drops(Drop::kQueueFull), FlowQueues::kDropBatch);
}

TEST(FlowQueues, TinyPacketsCountAsMore) {
  Bench b({.queueBytes = 25'600});
  for (int i = 0; i < 100; ++i) b.in(1, 40);
  EXPECT_EQ(b.drops(Drop::kQueueFull), 0u);
  b.in(2, 40);
  EXPECT_EQ(b.drops(Drop::kQueueFull), 50u);
  EXPECT_EQ(b.queues.bytes(), 51u * 40);
}

TEST(FlowQueues, ABoundBelowOnePacket) {
  Bench b({.queueBytes = 500});
  EXPECT_EQ(b.in(1), std::nullopt);
  EXPECT_EQ(b.out(), -1);
  EXPECT_EQ(b.drops(Drop::kQueueFull), 1u);
  b.in(1, 400);
  ASSERT_NE(b.queues.peek(at(1s)), nullptr);
  b.in(1, 400);
  EXPECT_EQ(b.queues.packets(), 1u) << "the settled packet stays";
  EXPECT_EQ(b.out(), 1);
}

// ---- flow numbers and the table

TEST(FlowQueues, TwoNumberSpaces) {
  Bench b;
  b.in(1, 1000, at(1s), true);
  b.in(2, 1000, at(1s), false);
  b.in(3, 1000, at(1s), true);
  EXPECT_EQ(b.flow(1)->slot(), 0u);
  EXPECT_TRUE(b.flow(1)->reliable());
  EXPECT_EQ(b.flow(2)->slot(), kDatagramFlow + 1u);
  EXPECT_FALSE(b.flow(2)->reliable());
  EXPECT_EQ(b.flow(3)->slot(), 2u);
}

TEST(FlowQueues, FullTableEvictsTheLeastRecentlyUsed) {
  Bench b({.maxFlows = 2});
  b.in(1, 1000, at(1s));
  b.in(2, 1000, at(2s));
  b.in(1, 1000, at(3s));
  b.outs(4, at(3s));
  b.in(3, 1000, at(4s));
  EXPECT_EQ(b.flow(2), nullptr);
  EXPECT_NE(b.flow(1), nullptr);
  EXPECT_EQ(b.flow(3)->slot(), 1u);
  EXPECT_EQ(b.queues.flows(), 2u);
}

TEST(FlowQueues, BusyFlowsAreNotEvicted) {
  Bench b({.maxFlows = 2});
  b.in(1);
  const Datum* first = b.send();
  EXPECT_EQ(b.out(), -1);
  b.in(2);  // queued
  EXPECT_EQ(b.in(3), Drop::kFlowTableFull);
  EXPECT_EQ(b.drops(Drop::kFlowTableFull), 0u) << "the caller counts what is refused";
  b.queues.peek(at(1s));  // settled
  EXPECT_EQ(b.in(3), Drop::kFlowTableFull);
  b.deliver(first);
  EXPECT_EQ(b.in(3), std::nullopt);
  EXPECT_EQ(b.flow(1), nullptr);
  EXPECT_NE(b.flow(2), nullptr);
}

TEST(FlowQueues, SlotKeepsItsDsn) {
  Bench b({.maxFlows = 1});
  auto send = [&](uint16_t n, bool reliable) {
    b.in(n, 1000, at(1s), reliable);
    const Datum* datum = b.send();
    EXPECT_EQ(b.out(), -1);
    uint64_t dsn = datum->dsn;
    EXPECT_EQ(datum->slot, reliable ? 0u : kDatagramFlow);
    b.deliver(datum);
    return dsn;
  };
  EXPECT_EQ(send(1, true), 0u);
  EXPECT_EQ(send(1, true), 1u);
  EXPECT_EQ(send(2, true), 2u) << "slot 0 goes on";
  EXPECT_EQ(send(3, false), 0u) << "slot 0x8000 is another";
  EXPECT_EQ(b.flow(3)->slot(), kDatagramFlow);
  EXPECT_EQ(b.flow(3)->queue.counts().packets, 1u) << "counters are the flow's";
  EXPECT_EQ(send(4, true), 3u);
  EXPECT_EQ(b.flow(4)->slot(), 0u);
  EXPECT_EQ(send(5, false), 1u);
}

TEST(FlowQueues, IdleFlowsAreForgotten) {
  Bench b({.flowIdle = 60s});
  b.in(1, 1000, at(1s));
  const Datum* busy = b.send();
  b.in(2, 1000, at(2s));
  EXPECT_EQ(b.outs(2, at(2s)), (Outs{2, -1}));
  EXPECT_EQ(b.queues.nextDeadline(), at(61s));
  b.queues.onTimer(at(61s));
  EXPECT_NE(b.flow(1), nullptr) << "unacknowledged";
  EXPECT_EQ(b.queues.nextDeadline(), at(62s));
  b.queues.onTimer(at(62s));
  EXPECT_EQ(b.flow(2), nullptr);
  EXPECT_EQ(b.queues.nextDeadline(), at(121s));
  b.deliver(busy);
  b.queues.onTimer(at(121s));
  EXPECT_EQ(b.queues.flows(), 0u);
  EXPECT_EQ(b.queues.nextDeadline(), kNever);
}

TEST(FlowQueuesProperty, NothingIsLostUncounted) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    Bench b({.queueBytes = 100'000, .maxFlows = 20, .flowIdle = 100ms});
    Time now = at(1s);
    uint64_t in = 0, refused = 0, out = 0;
    std::map<uint16_t, uint64_t> dsn;
    std::vector<const Datum*> unacked;
    for (int step = 0; step < 20000; ++step) {
      now += Duration(random.below(1'000'000));
      if (random.chance(0.55)) {
        auto n = static_cast<uint16_t>(random.below(random.chance(0.5) ? 3 : 40));
        ++in;
        refused += b.in(n, 40 + random.below(1460), now, n % 2 == 0, n % 3 == 0).has_value();
      } else {
        const Packet* shown = random.chance(0.5) ? b.queues.peek(now) : nullptr;
        const uint8_t* bytes = shown ? shown->data() : nullptr;
        const Datum* datum = b.send(now);
        ASSERT_TRUE(!shown || datum->packet.data() == bytes);
        if (!datum) continue;
        ++out;
        ASSERT_EQ(datum->flow->key(), key(load16(datum->packet.data() + 20)));
        ASSERT_EQ(datum->dsn, dsn[datum->slot]++) << "a slot's DSNs have no gap and no repeat";
        if (random.chance(0.3)) {
          unacked.push_back(datum);
        } else {
          b.deliver(datum);
        }
      }
      if (!unacked.empty() && random.chance(0.3)) {
        b.deliver(unacked.back());
        unacked.pop_back();
      }
      if (b.queues.nextDeadline() <= now) b.queues.onTimer(now);
      ASSERT_GT(b.queues.nextDeadline(), now);
      ASSERT_LE(b.queues.bytes(), 100'000u);
      ASSERT_LE(b.queues.flows(), 20u);
      ASSERT_EQ(in, refused + out + b.queues.packets() + b.drops(Drop::kAqm) + b.drops(Drop::kQueueFull));
      ASSERT_EQ(b.pool.inUse(), b.queues.packets() + unacked.size());
    }
  }
}

}  // namespace
}  // namespace braid::flow_queue_test
