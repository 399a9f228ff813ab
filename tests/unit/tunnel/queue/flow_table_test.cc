// The flow table: flow numbers, eviction when it is full, removal of idle flows, classes.

#include "tunnel/queue/flow_table.h"
#include "tests/unit/tunnel/wire/number_literals.h"

#include <gtest/gtest.h>

#include <utility>

#include "tunnel/queue/data_tracker.h"
#include "tunnel/queue/drr.h"
#include "tunnel/wire/frames.h"

namespace braid::flow_table_test {
namespace {

constexpr Time at(Duration d) {
  return Time{} + d;
}

constexpr FlowKey key(uint16_t n) {
  FlowKey k{};
  k.sport = n;
  return k;
}

FlowKey between(uint8_t source, uint8_t destination, uint16_t n) {
  FlowKey k = key(n);
  k.family = Address::Family::kV4;
  k.src[3] = source;
  k.dst[3] = destination;
  return k;
}

/// A lane with flows. Flows with a claim have a DRR entry; flows given to queue() also have a data
/// unit.
struct Bench final : Lane {
  PacketPool pool{100, 10};
  Flow* full = nullptr;  // the flow with a data unit
  Packet waiting;
  DrrScheduler round;
  DataTracker dataTracker{3s};
  InnerFlowTable flows;

  explicit Bench(FlowTableOptions options = {}) : flows(options, 1) {}

  const Packet* prepare(Flow& flow, Time) override { return &flow == full ? &waiting : nullptr; }
  Packet handOut(Flow&) override {
    full = nullptr;
    return std::move(waiting);
  }
  void queue(Flow& flow) {
    full = &flow;
    waiting = pool.allocate();
    waiting.append(100);
    round.onData(flow, waiting.size());
  }

  Flow* use(uint16_t n, Time now = at(1s), bool reliable = true, uint8_t recoveryClass = 0) {
    Flow* flow = flows.findOrAdd(*this, key(n), reliable, recoveryClass, now);
    if (flow) flows.touch(*flow, now);
    return flow;
  }
  Flow* use(const FlowKey& of, Time now = at(1s)) {
    Flow* flow = flows.findOrAdd(*this, of, true, 0, now);
    if (flow) flows.touch(*flow, now);
    return flow;
  }
  /// Adds a flow that must not be evicted.
  bool useBusy(const FlowKey& of) {
    Flow* flow = use(of);
    if (flow) round.requestTurn(*flow);
    return flow != nullptr;
  }
  const Flow* flow(uint16_t n) const { return flows.find(key(n)); }
  /// Sends the flow's data unit.
  UnitRef send(Flow& flow) {
    UnitRef unit = dataTracker.create(flow, pool.allocate(), at(1s));
    dataTracker.onSent(unit, 0_subflow, 0_pn);
    return unit;
  }
  void deliver(UnitRef unit) {
    dataTracker.onDelivered(unit, true);
    dataTracker.release(unit);
  }
};

TEST(InnerFlowTable, AFlowIsKnownByItsKey) {
  Bench b;
  Flow* one = b.use(1);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->key(), key(1));
  EXPECT_EQ(&one->lane(), &b);
  EXPECT_EQ(b.use(1), one);
  EXPECT_NE(b.use(2), one);
  EXPECT_EQ(b.flow(1), one);
  EXPECT_EQ(b.flow(3), nullptr);
  EXPECT_EQ(b.flows.size(), 2u);
}

TEST(InnerFlowTable, TwoNumberSpaces) {
  Bench b;
  EXPECT_EQ(b.use(1, at(1s), true)->slot(), 0_flow);
  EXPECT_EQ(b.use(2, at(1s), false)->slot(), kDatagramFlow + 1);
  EXPECT_EQ(b.use(3, at(1s), true)->slot(), 2_flow);
  EXPECT_TRUE(b.flow(1)->reliable());
  EXPECT_FALSE(b.flow(2)->reliable());
  EXPECT_FALSE(b.use(2, at(1s), true)->reliable()) << "as its first packet said";
}

TEST(InnerFlowTable, AFullTableEvictsTheLeastRecentlyUsed) {
  Bench b({.maxFlows = 2});
  b.use(1, at(1s));
  b.use(2, at(2s));
  b.use(1, at(3s));
  EXPECT_EQ(b.use(3, at(4s))->slot(), 1_flow);
  EXPECT_EQ(b.flow(2), nullptr);
  EXPECT_NE(b.flow(1), nullptr);
  EXPECT_EQ(b.flows.size(), 2u);
}

TEST(InnerFlowTable, BusyFlowsAreNotEvicted) {
  Bench b({.maxFlows = 2});
  UnitRef onItsWay = b.send(*b.use(1));
  b.round.requestTurn(*b.use(2));
  EXPECT_EQ(b.use(3), nullptr);
  DrrCursor walk(b.round);
  ASSERT_TRUE(walk.peek(at(1s)).isBareTurn());
  EXPECT_EQ(b.use(3), nullptr) << "during its turn";
  b.deliver(onItsWay);
  EXPECT_NE(b.use(3), nullptr);
  EXPECT_EQ(b.flow(1), nullptr);
  EXPECT_NE(b.flow(2), nullptr);
  EXPECT_EQ(b.use(2), b.flow(2));
  walk.endTurn(0, false);
  EXPECT_FALSE(walk.peek(at(1s)));
  EXPECT_TRUE(b.flow(2)->isIdle());
}

// A flow that was passed over is in no list of the DRR scheduler, but keeps its entry.
TEST(InnerFlowTable, AFlowThatIsOfferedOrWasPassedIsNeitherEvictedNorForgotten) {
  for (bool passed : {false, true}) {
    Bench b({.maxFlows = 1, .idle = 60s});
    b.queue(*b.use(1));
    {
      DrrCursor walk(b.round);
      ASSERT_EQ(walk.peek(at(1s)).flow, b.flow(1));
      if (passed) {
        ASSERT_TRUE(walk.skip(at(1s)));
      }
      EXPECT_EQ(b.round.skipped(), passed ? 1u : 0u);
      EXPECT_EQ(b.use(2), nullptr);
      b.flows.onTimer(at(61s));
      ASSERT_NE(b.flow(1), nullptr) << passed;
    }
    DrrCursor walk(b.round);
    ASSERT_EQ(walk.peek(at(61s)).flow, b.flow(1)) << "also in another walk";
    EXPECT_EQ(walk.take().size(), 100u);
    EXPECT_FALSE(walk.peek(at(61s)));
    b.flows.onTimer(at(121s));
    EXPECT_EQ(b.flow(1), nullptr) << "now it may go";
    EXPECT_NE(b.use(2, at(121s)), nullptr);
  }
}

TEST(InnerFlowTable, ANumberGoesOnWithItsDsn) {
  Bench b({.maxFlows = 1});
  auto send = [&](uint16_t n, bool reliable) {
    UnitRef unit = b.send(*b.use(n, at(1s), reliable));
    EXPECT_EQ(unit->slot, reliable ? 0_flow : kDatagramFlow);
    Dsn dsn = unit->dsn;
    b.deliver(unit);
    return dsn;
  };
  EXPECT_EQ(send(1, true), 0_dsn);
  EXPECT_EQ(send(1, true), 1_dsn);
  EXPECT_EQ(send(2, true), 2_dsn) << "slot 0 goes on";
  EXPECT_EQ(send(3, false), 0_dsn) << "slot 0x8000 is another";
  EXPECT_EQ(send(4, true), 3_dsn);
  EXPECT_EQ(send(5, false), 1_dsn);
}

TEST(InnerFlowTable, IdleFlowsAreForgotten) {
  Bench b({.idle = 60s});
  EXPECT_EQ(b.flows.nextDeadline(), kNever);
  UnitRef onItsWay = b.send(*b.use(1, at(1s)));
  b.use(2, at(2s));
  EXPECT_EQ(b.flows.nextDeadline(), at(61s));
  b.flows.onTimer(at(61s));
  EXPECT_NE(b.flow(1), nullptr) << "unacknowledged";
  EXPECT_EQ(b.flows.nextDeadline(), at(62s));
  b.flows.onTimer(at(62s));
  EXPECT_EQ(b.flow(2), nullptr);
  EXPECT_EQ(b.flows.nextDeadline(), at(121s));
  b.deliver(onItsWay);
  b.flows.onTimer(at(121s));
  EXPECT_EQ(b.flows.size(), 0u);
  EXPECT_EQ(b.flows.nextDeadline(), kNever);
}

TEST(InnerFlowTable, TheClassIsThatOfTheFirstPacket) {
  Bench b({.maxFlows = 1});
  EXPECT_EQ(b.use(1, at(1s), true, 3)->recoveryClass(), 3);
  EXPECT_EQ(b.use(1, at(1s), true, 5)->recoveryClass(), 3);
  EXPECT_EQ(b.use(2, at(1s), true, 5)->recoveryClass(), 5) << "another flow on the same slot";
}

TEST(InnerFlowTable, FlowsOfAClassThatIsGoneAreOfNone) {
  Bench b;
  for (uint8_t n = 1; n <= 3; ++n) b.use(n, at(1s), true, n);
  b.flows.limitClasses(3);
  EXPECT_EQ(b.flow(1)->recoveryClass(), 1);
  EXPECT_EQ(b.flow(2)->recoveryClass(), 2);
  EXPECT_EQ(b.flow(3)->recoveryClass(), 0);
}

// ---- hosts

// For a host that sends anything, or to which thousands of others send.
TEST(InnerFlowTable, AHostThatTakesAllItCanLeavesRoom) {
  for (bool source : {true, false}) {
    Bench b({.maxFlows = 900});
    auto of = [&](uint8_t host, uint16_t n) {
      auto other = static_cast<uint8_t>(10 + n % 200);
      return source ? between(host, other, n) : between(other, host, n);
    };
    auto take = [&](uint8_t host) {
      size_t taken = 0;
      for (uint16_t n = 0; n < 2000; ++n) taken += b.useBusy(of(host, n));
      return taken;
    };
    EXPECT_EQ(take(1), 800u) << "eight times as many as are free";
    EXPECT_EQ(take(2), 89u) << "of the other 100";
    EXPECT_EQ(take(3), 10u) << "of the other 11";
    EXPECT_EQ(take(4), 1u) << "the last one";
    for (uint16_t n = 0; n < 800; ++n)
      ASSERT_NE(b.flows.find(of(1, n)), nullptr) << "nobody lost one";
  }
}

TEST(InnerFlowTable, TheHeaviestHostMakesRoomNotTheOldestFlow) {
  Bench b({.maxFlows = 32});
  b.use(between(2, 20, 0), at(1s));
  for (uint16_t n = 0; n < 40; ++n)
    b.use(between(1, static_cast<uint8_t>(30 + n), n), at(2s) + n * 1ms);
  uint8_t host = 3;
  while (b.flows.size() < 32) b.use(between(host++, 21, 0), at(3s));
  for (uint16_t n = 1; n <= 10; ++n) ASSERT_NE(b.use(between(2, 20, n), at(4s)), nullptr);
  for (uint16_t n = 0; n <= 10; ++n) EXPECT_NE(b.flows.find(between(2, 20, n)), nullptr) << n;
}

TEST(InnerFlowTable, AHostWithItsShareEvictsItsOwn) {
  Bench b({.maxFlows = 32});
  auto hog = [&](uint16_t n, Time now) {
    return b.use(between(1, static_cast<uint8_t>(30 + n), n), now);
  };
  b.use(between(2, 20, 0), at(1s));
  for (uint16_t n = 0; n < 100; ++n) ASSERT_NE(hog(n, at(2s) + n * 1ms), nullptr);
  EXPECT_NE(b.flows.find(between(2, 20, 0)), nullptr) << "the oldest of all";
  EXPECT_NE(b.flows.find(between(1, 129, 99)), nullptr);
  EXPECT_LT(b.flows.size(), 32u);
}

TEST(InnerFlowTable, WhenNobodyHasMuchTheLeastRecentlyUsedGoes) {
  Bench b({.maxFlows = 64});
  for (uint8_t host = 1; host <= 64; ++host)
    b.use(between(host, static_cast<uint8_t>(100 + host), 0), at(1s));
  for (uint8_t host = 1; host <= 64; ++host) {
    if (host != 40) b.use(between(host, static_cast<uint8_t>(100 + host), 0), at(2s));
  }
  ASSERT_NE(b.use(between(200, 201, 0), at(3s)), nullptr);
  EXPECT_EQ(b.flows.find(between(40, 140, 0)), nullptr);
}

// When all flows of a host are busy, each new flow costs at most sixteen checks, not one for each
// flow of the host.
TEST(InnerFlowTable, ASearchForAFlowThatMayGoIsShortAndGoesOnTheNextTime) {
  Bench b({.maxFlows = 36});
  auto of = [](uint16_t n) { return between(1, static_cast<uint8_t>(30 + n), n); };
  for (uint16_t n = 0; n < 32; ++n) {
    if (n == InnerFlowTable::kHostTries + 4) {
      b.use(of(n));
    } else {
      ASSERT_TRUE(b.useBusy(of(n)));
    }
  }
  EXPECT_EQ(b.use(of(100)), nullptr) << "none of the first sixteen may go";
  EXPECT_NE(b.use(of(100)), nullptr);
  EXPECT_EQ(b.flows.find(of(InnerFlowTable::kHostTries + 4)), nullptr);
}

// In a storm of connections, the flows with data are adjacent in a host's list. A new flow must not
// be refused because of that, even when other hosts have flows that have been idle for longer.
TEST(InnerFlowTable, TheFlowOfTheHostThatWasNotUsedForLongestGoesHoweverManyAreBusy) {
  for (uint16_t others : {uint16_t{0}, uint16_t{20}}) {
    Bench b({.maxFlows = static_cast<size_t>(36 + others * 9 / 8)});
    auto of = [](uint16_t n) { return between(1, static_cast<uint8_t>(30 + n), n); };
    auto other = [](uint16_t n) { return between(static_cast<uint8_t>(2 + n), 29, n); };
    for (uint16_t n = 0; n < others; ++n) ASSERT_NE(b.use(other(n), at(0s)), nullptr);
    uint16_t own = 0;
    while (b.flows.find(of(0)) || own == 0) {
      ASSERT_NE(b.use(of(own), at(1s) + own * 1ms), nullptr);
      ++own;
    }
    // Flow 0 was evicted for the last one.
    for (uint16_t n = 1; n <= InnerFlowTable::kHostTries; ++n)
      b.round.requestTurn(*b.use(of(n), at(2s)));
    for (uint16_t n = 0; n < 10; ++n) {
      ASSERT_NE(b.use(of(static_cast<uint16_t>(100 + n)), at(3s)), nullptr) << n;
      EXPECT_EQ(b.flows.find(of(static_cast<uint16_t>(InnerFlowTable::kHostTries + 1 + n))),
                nullptr)
          << "the oldest";
    }
    for (uint16_t n = 0; n < others; ++n) EXPECT_NE(b.flows.find(other(n)), nullptr) << n;
  }
}

// The flow is idle after each packet, and its position among its host's flows never changes.
TEST(InnerFlowTable, AFlowThatSendsAllTheTimeStays) {
  Bench b({.maxFlows = 36});
  auto of = [](uint16_t n) { return between(1, static_cast<uint8_t>(30 + n), n); };
  for (uint16_t n = 0; n < 32; ++n) ASSERT_NE(b.use(of(n), at(1s)), nullptr);
  Time now = at(1s);
  for (uint16_t n = 0; n < 60; ++n) {
    now += InnerFlowTable::kFresh / 5;
    ASSERT_NE(b.flows.find(of(0)), nullptr) << n;
    b.use(of(0), now);
    if (now - at(1s) >= InnerFlowTable::kFresh) {
      ASSERT_NE(b.use(of(static_cast<uint16_t>(100 + n)), now), nullptr);
    }
  }
  EXPECT_NE(b.flows.find(of(0)), nullptr);
  EXPECT_EQ(b.flows.find(of(1)), nullptr);
}

TEST(InnerFlowTable, AForgottenFlowCountsForNoHost) {
  Bench b({.maxFlows = 9, .idle = 60s});
  for (int round = 0; round < 3; ++round) {
    Time now = at(1s + round * 100s);
    b.flows.onTimer(now);
    EXPECT_EQ(b.flows.size(), 0u);
    for (uint16_t n = 0; n < 20; ++n) b.use(between(1, 2, n), now);
    EXPECT_EQ(b.flows.size(), 8u);
  }
}

}  // namespace
}  // namespace braid::flow_table_test
