#include "tunnel/order/resequencer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::resequencer_test {
namespace {

constexpr Time at(Duration d) {
  return Time{} + d;
}

/// Packets that carry their slot and DSN, so that the output can be identified.
struct Bench {
  /// The memory that a packet takes, independent of its length.
  static constexpr size_t kBuffer = PacketPool::kHeadroom + 2000 + PacketPool::kTailroom;

  PacketPool pool{2000, 40000};
  Resequencer order;

  explicit Bench(ResequencerOptions options = {}) : order(options) {}

  Packet make(FlowNumber slot, uint64_t dsn, size_t size) {
    Packet p = pool.allocate();
    p.append(size);
    store16(p.data(), slot.value());
    store64(p.data() + 2, dsn);
    return p;
  }
  void in(FlowNumber slot, uint64_t dsn, Time now = at(1s), size_t size = 100) {
    order.onPacket(slot, Dsn(dsn), make(slot, dsn, size), now);
  }
  struct Out {
    FlowNumber slot;
    uint64_t dsn;
  };
  std::vector<Out> outputs() {
    std::vector<Out> out;
    Packet p;
    while (order.poll(p)) out.push_back({FlowNumber(load16(p.data())), load64(p.data() + 2)});
    return out;
  }
  std::vector<uint64_t> out() {
    std::vector<uint64_t> dsns;
    for (const Out& o : outputs()) dsns.push_back(o.dsn);
    return dsns;
  }
  uint64_t drops(Drop cause) const { return order.drops()[static_cast<size_t>(cause)]; }
};

using Dsns = std::vector<uint64_t>;

Dsns range(uint64_t first, uint64_t end) {
  Dsns v;
  for (; first < end; ++first) v.push_back(first);
  return v;
}

TEST(Resequencer, InOrderPassesWithTheSameBuffer) {
  Bench b;
  for (uint64_t dsn = 0; dsn < 5000; ++dsn) {
    Packet p = b.make(3_flow, dsn, 100);
    const uint8_t* bytes = p.data();
    b.order.onPacket(3_flow, Dsn(dsn), std::move(p), at(1s));
    Packet q;
    ASSERT_TRUE(b.order.poll(q));
    ASSERT_EQ(q.data(), bytes);
    ASSERT_FALSE(b.order.poll(q));
  }
  EXPECT_EQ(b.order.next(3_flow), 5000_dsn);
  EXPECT_EQ(b.order.next(4_flow), 0_dsn);
  EXPECT_EQ(b.order.nextDeadline(), kNever);
}

TEST(Resequencer, HoleIsFilled) {
  Bench b;
  for (uint64_t dsn : {0, 2, 4, 3}) b.in(0_flow, dsn);
  EXPECT_EQ(b.out(), Dsns{0});
  EXPECT_EQ(b.order.heldPackets(), 3u);
  EXPECT_EQ(b.order.heldBytes(), 300u);
  b.in(0_flow, 1);
  EXPECT_EQ(b.out(), (Dsns{1, 2, 3, 4}));
  EXPECT_EQ(b.order.heldPackets(), 0u);
  EXPECT_EQ(b.order.heldBytes(), 0u);
  EXPECT_EQ(b.order.nextDeadline(), kNever);
}

TEST(Resequencer, OneSlotNeverDelaysAnother) {
  Bench b;
  b.in(1_flow, 1);
  b.in(2_flow, 0);
  b.in(2_flow, 1);
  EXPECT_EQ(b.out(), (Dsns{0, 1}));
}

TEST(Resequencer, HoldTimeCountsFromTheOldestPacketBehindTheHole) {
  Bench b({.holdTime = 100ms});
  b.in(0_flow, 5, at(1000ms));
  b.in(0_flow, 2, at(1050ms));
  b.in(0_flow, 3, at(1060ms));
  b.in(0_flow, 7, at(1070ms));
  EXPECT_EQ(b.order.nextDeadline(), at(1100ms));
  b.order.onTimer(at(1099ms));
  EXPECT_EQ(b.out(), Dsns{});
  b.order.onTimer(at(1100ms));
  EXPECT_EQ(b.out(), (Dsns{2, 3, 5})) << "all before it goes with it, in order";
  EXPECT_EQ(b.order.next(0_flow), 6_dsn);
  EXPECT_EQ(b.order.nextDeadline(), at(1170ms)) << "the next hole has its own time";
  EXPECT_EQ(b.drops(Drop::kHoldOverflow), 0u);
}

TEST(Resequencer, LateOriginalIsDeliveredOnce) {
  Bench b({.holdTime = 100ms});
  b.in(0_flow, 2, at(1s));
  b.order.onTimer(at(1100ms));
  EXPECT_EQ(b.out(), Dsns{2});
  b.in(0_flow, 0, at(1200ms));
  EXPECT_EQ(b.out(), Dsns{0});
  b.in(0_flow, 0, at(1200ms));
  b.in(0_flow, 2, at(1200ms));
  EXPECT_EQ(b.out(), Dsns{});
  EXPECT_EQ(b.drops(Drop::kDuplicate), 2u);
  b.in(0_flow, 1, at(1200ms));
  EXPECT_EQ(b.out(), Dsns{1});
}

TEST(Resequencer, LaterThanTheHistoryIsDropped) {
  RecordProperty("rule", "data.dsn");
  Bench b({.holdTime = 100ms});
  b.in(0_flow, 1023, at(1s));
  b.order.onTimer(at(1100ms));
  EXPECT_EQ(b.out(), Dsns{1023});
  b.in(0_flow, 0, at(1200ms));
  EXPECT_EQ(b.out(), Dsns{0}) << "1024 below next: still known";
  b.in(0_flow, 1024, at(1200ms));
  EXPECT_EQ(b.out(), Dsns{1024});
  b.in(0_flow, 0, at(1200ms));
  EXPECT_EQ(b.out(), Dsns{});
}

TEST(Resequencer, DuplicateOfAHeldPacket) {
  Bench b;
  b.in(0_flow, 1);
  b.in(0_flow, 1);
  EXPECT_EQ(b.order.heldPackets(), 1u);
  EXPECT_EQ(b.drops(Drop::kDuplicate), 1u);
  b.in(0_flow, 0);
  EXPECT_EQ(b.out(), (Dsns{0, 1}));
}

TEST(Resequencer, SkipEndsTheWait) {
  Bench b;
  b.in(0_flow, 3);
  b.in(0_flow, 5);
  b.order.skip(0_flow, 0_dsn, 2, at(1s));
  EXPECT_EQ(b.out(), Dsns{});
  EXPECT_EQ(b.order.next(0_flow), 2_dsn);
  b.order.skip(0_flow, 2_dsn, 1, at(1s));
  EXPECT_EQ(b.out(), Dsns{3});
  b.order.skip(0_flow, 0_dsn, 5, at(1s));
  EXPECT_EQ(b.out(), Dsns{5});
  b.in(0_flow, 4);
  EXPECT_EQ(b.out(), Dsns{4}) << "it came after all";
}

TEST(Resequencer, SkipDeliversWhatIsThere) {
  Bench b;
  for (uint64_t dsn : {1, 3, 4, 9}) b.in(0_flow, dsn);
  b.order.skip(0_flow, 0_dsn, 7, at(1s));
  EXPECT_EQ(b.out(), (Dsns{1, 3, 4}));
  EXPECT_EQ(b.order.next(0_flow), 7_dsn);
}

TEST(Resequencer, SkipBehindAHoleIsRemembered) {
  Bench b;
  b.order.skip(0_flow, 2_dsn, 3, at(1s));
  b.in(0_flow, 5);
  b.in(0_flow, 1);
  EXPECT_EQ(b.order.heldPackets(), 2u);
  b.in(0_flow, 3);
  b.in(0_flow, 0);
  EXPECT_EQ(b.out(), (Dsns{0, 1, 3, 5}));
  EXPECT_EQ(b.drops(Drop::kDuplicate), 0u);
  EXPECT_EQ(b.order.nextDeadline(), kNever);
}

TEST(Resequencer, SkipOfAnythingIsHarmless) {
  RecordProperty("rule", "skip.first");
  Bench b;
  b.order.skip(0_flow, 1'000'000_dsn, 4096, at(1s));
  EXPECT_EQ(b.order.next(0_flow), 0_dsn);
  b.order.skip(0_flow, 0_dsn, 4096, at(1s));
  EXPECT_EQ(b.order.next(0_flow), 4096_dsn);
  b.order.skip(0_flow, 0_dsn, 10, at(1s));
  EXPECT_EQ(b.order.next(0_flow), 4096_dsn);
  b.in(0_flow, 4096);
  EXPECT_EQ(b.out(), Dsns{4096});
}

TEST(Resequencer, SkipsAloneStayBounded) {
  Bench b({.holdBytes = 51200});
  const auto most = static_cast<uint16_t>(b.order.maxEntries());
  ASSERT_EQ(most, 31);
  for (uint64_t dsn = 1; dsn < 400; dsn += 2) b.order.skip(0_flow, Dsn(dsn), 1, at(1s));
  EXPECT_EQ(b.order.entries(), 1u) << "the marks of a slot are one";
  EXPECT_EQ(b.order.next(0_flow), 0_dsn);
  for (uint16_t slot = 1; slot < 200; ++slot) b.order.skip(FlowNumber(slot), 5_dsn, 1, at(1s));
  EXPECT_EQ(b.order.entries(), most);
  EXPECT_EQ(b.order.next(0_flow), 400_dsn);
  EXPECT_EQ(b.order.next(FlowNumber(199 - most)), 6_dsn);
  EXPECT_EQ(b.order.next(FlowNumber(200 - most)), 0_dsn) << "so many slots with marks are left";
  b.order.onTimer(at(2s));
  EXPECT_EQ(b.order.next(199_flow), 6_dsn);
  EXPECT_EQ(b.order.entries(), 0u);
  EXPECT_EQ(b.order.nextDeadline(), kNever);
}

// Found by review: the bound on entries let what keeps them in order take more than twice
// holdBytes, with a packet, or a mark, in each of many slots.
TEST(Resequencer, WhatKeepsEntriesInOrderTakesNoMoreThanHoldBytes) {
  constexpr uint16_t kSlots = 4000;
  constexpr size_t kBeginnings = 20'000;  // a slab of each object pool is allocated at once
  PacketPool small{100, 2 * kSlots};
  Resequencer order({.holdBytes = 1 << 20});
  auto in = [&](uint16_t slot, Dsn dsn) {
    Packet packet = small.allocate();
    packet.append(10);
    order.onPacket(FlowNumber(slot), dsn, std::move(packet), at(1s));
  };
  for (uint16_t slot = 0; slot < kSlots; ++slot) in(slot, 0_dsn);
  const size_t slotsAlone = order.footprint();
  for (uint16_t slot = 0; slot < kSlots; ++slot) in(slot, 70_dsn);
  EXPECT_EQ(order.entries(), order.maxEntries());
  EXPECT_EQ(order.heldPackets(), order.maxEntries());
  EXPECT_LE(order.footprint() - slotsAlone, (1 << 20) + kBeginnings);
  for (uint16_t slot = 0; slot < kSlots; ++slot) order.skip(FlowNumber(slot), 200_dsn, 1, at(1s));
  EXPECT_EQ(order.entries(), order.maxEntries());
  EXPECT_LE(order.footprint() - slotsAlone, (1 << 20) + kBeginnings);
  EXPECT_GT(order.footprint() - slotsAlone, (1 << 20) / 2) << "the bound is not too small either";
}

// Thirteen bytes of SKIP can name 4096 packets, and may be sent repeatedly.
TEST(Resequencer, ASkipIsOneEntryHoweverManyItNames) {
  Bench b;
  for (int round = 0; round < 1000; ++round) {
    Dsn next = b.order.next(0_flow);
    for (uint64_t first = 1; first < 200; ++first) b.order.skip(0_flow, next + first, 4096, at(1s));
    ASSERT_EQ(b.order.entries(), 1u);
    b.order.skip(0_flow, next, 1, at(1s));
    ASSERT_EQ(b.order.entries(), 0u);
    ASSERT_GE(b.order.next(0_flow) - next, Resequencer::kSpan - 64) << "all that was in reach";
  }
}

TEST(Resequencer, ASkipThatSaysNothingNewDoesNotProlongTheWait) {
  Bench b({.holdTime = 100ms});
  b.order.skip(0_flow, 10_dsn, 100, at(1000ms));
  b.order.skip(0_flow, 20_dsn, 50, at(1050ms));
  EXPECT_EQ(b.order.nextDeadline(), at(1100ms));
  b.order.skip(0_flow, 20_dsn, 91, at(1060ms));
  EXPECT_EQ(b.order.nextDeadline(), at(1160ms));
  b.order.onTimer(at(1160ms));
  EXPECT_EQ(b.order.next(0_flow), 111_dsn);
  EXPECT_EQ(b.order.nextDeadline(), kNever);
}

TEST(Resequencer, ASkippedPacketThatComesWaitsLikeAnyOther) {
  Bench b({.holdTime = 100ms});
  b.order.skip(0_flow, 5_dsn, 1, at(1000ms));
  b.order.skip(0_flow, 70_dsn, 1, at(1000ms));
  b.in(0_flow, 70, at(1090ms));
  b.order.onTimer(at(1100ms));
  EXPECT_EQ(b.order.next(0_flow), 6_dsn) << "the mark that is left ends the wait below it only";
  EXPECT_EQ(b.out(), Dsns{});
  EXPECT_EQ(b.order.nextDeadline(), at(1190ms));
  b.order.onTimer(at(1190ms));
  EXPECT_EQ(b.out(), Dsns{70});
}

TEST(Resequencer, ASkipOverHeldPacketsMarksTheRest) {
  Bench b;
  for (uint64_t dsn : {3, 64, 100}) b.in(0_flow, dsn);
  b.order.skip(0_flow, 1_dsn, 200, at(1s));
  EXPECT_EQ(b.order.entries(), 4u);
  EXPECT_EQ(b.out(), Dsns{});
  b.in(0_flow, 0);
  EXPECT_EQ(b.out(), (Dsns{0, 3, 64, 100}));
  EXPECT_EQ(b.order.next(0_flow), 201_dsn);
  EXPECT_EQ(b.order.entries(), 0u);
  EXPECT_EQ(b.drops(Drop::kDuplicate), 0u);
}

TEST(Resequencer, ByteBoundReleasesTheOldest) {
  Bench b({.holdBytes = 3 * Bench::kBuffer});
  b.in(1_flow, 2, at(1000ms), 1200);
  b.in(2_flow, 1, at(1001ms), 1200);
  b.in(1_flow, 4, at(1002ms), 600);
  EXPECT_EQ(b.out(), Dsns{});
  b.in(2_flow, 3, at(1003ms), 100);
  auto out = b.outputs();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].slot, 1_flow);
  EXPECT_EQ(out[0].dsn, 2u);
  EXPECT_EQ(b.drops(Drop::kHoldOverflow), 1u);
  EXPECT_EQ(b.order.heldBytes(), 1900u);
}

// Found: a packet of 20 bytes was counted as only 20 bytes of memory.
TEST(Resequencer, AHeldPacketIsChargedAsTheBufferThatItTakes) {
  Bench b({.holdBytes = 11 * Bench::kBuffer});
  for (uint64_t dsn = 1; dsn <= 11; ++dsn) b.in(0_flow, 2 * dsn, at(1s), 20);
  EXPECT_EQ(b.out(), Dsns{});
  b.in(0_flow, 100, at(1s), 20);
  EXPECT_EQ(b.out(), Dsns{2});
}

TEST(Resequencer, TooFarAheadMovesTheSlot) {
  Bench b;
  b.in(0_flow, 1);
  b.in(0_flow, 70);
  b.in(0_flow, Resequencer::kSpan - 1);
  EXPECT_EQ(b.out(), Dsns{});
  b.in(0_flow, Resequencer::kSpan);
  EXPECT_EQ(b.out(), Dsns{1}) << "moves by a page of 64";
  EXPECT_EQ(b.order.next(0_flow), 64_dsn);
  EXPECT_EQ(b.drops(Drop::kHoldOverflow), 1u);
  b.in(0_flow, uint64_t{1} << 40);
  EXPECT_EQ(b.out(), (Dsns{70, Resequencer::kSpan - 1, Resequencer::kSpan}));
  EXPECT_EQ(b.order.heldPackets(), 1u);
}

TEST(Resequencer, ASurelyHeldSpanFitsBehindEveryHole) {
  for (uint64_t hole = 0; hole < 130; ++hole) {
    Bench b;
    for (uint64_t dsn = 0; dsn < hole; ++dsn) b.in(0_flow, dsn);
    b.out();
    b.in(0_flow, hole + kGuaranteedSpan - 1);
    EXPECT_EQ(b.out(), Dsns{}) << hole;
    EXPECT_EQ(b.order.next(0_flow), Dsn(hole));
  }
}

TEST(Resequencer, TooFarAheadThatFits) {
  Bench b;
  for (uint64_t dsn = 1; dsn < Resequencer::kSpan; ++dsn) b.in(0_flow, dsn);
  EXPECT_EQ(b.out(), Dsns{});
  b.in(0_flow, Resequencer::kSpan);
  EXPECT_EQ(b.out(), range(1, Resequencer::kSpan + 1)) << "only the first is missing";
  EXPECT_EQ(b.order.heldPackets(), 0u);
  EXPECT_EQ(b.order.next(0_flow), Dsn(Resequencer::kSpan + 1));
}

TEST(Resequencer, SlotsAreBounded) {
  Bench b({.maxFlows = 4});
  b.in(3_flow, 0);
  b.in(4_flow, 0);
  EXPECT_EQ(b.outputs().size(), 1u);
  EXPECT_EQ(b.drops(Drop::kFlowTableFull), 1u);
  b.order.skip(4_flow, 0_dsn, 1, at(1s));
  EXPECT_EQ(b.order.next(4_flow), 0_dsn);
}

// ---- memory

TEST(Resequencer, MemoryIsThatOfTheSlotsInUse) {
  Bench b;
  EXPECT_EQ(b.order.footprint(), 0u);
  for (uint16_t slot = 0; slot < 640; ++slot) {
    size_t growth = b.order.growth(FlowNumber(slot)), before = b.order.footprint();
    b.in(FlowNumber(slot), 0, at(1s));
    EXPECT_EQ(b.order.footprint(), before + growth);
    EXPECT_EQ(b.order.growth(FlowNumber(slot)), 0u);
  }
  size_t all = b.order.footprint();
  EXPECT_LT(all, 640u * 250);
  EXPECT_EQ(b.outputs().size(), 640u);
  b.in(7_flow, 1, at(60s));
  b.order.freeIdle(at(30s));
  EXPECT_LT(b.order.footprint(), 640u * 20) << "what was not used since is forgotten";
  EXPECT_EQ(b.order.growth(7_flow), 0u);
}

TEST(Resequencer, AForgottenSlotGoesOnWhereItWas) {
  Bench b({.holdTime = 100ms});
  for (uint64_t dsn : {0, 1, 3}) b.in(0_flow, dsn, at(1s));
  b.order.onTimer(at(2s));
  EXPECT_EQ(b.out(), (Dsns{0, 1, 3}));
  b.order.freeIdle(at(60s));
  EXPECT_EQ(b.order.next(0_flow), 4_dsn);
  b.in(0_flow, 5, at(61s));
  EXPECT_EQ(b.out(), Dsns{}) << "4 is waited for";
  b.in(0_flow, 2, at(61s));
  b.in(0_flow, 3, at(61s));
  EXPECT_EQ(b.drops(Drop::kDuplicate), 2u) << "which of those came nobody knows any more";
  b.in(0_flow, 4, at(61s));
  EXPECT_EQ(b.out(), (Dsns{4, 5}));
}

TEST(Resequencer, WhatHoldsSomethingIsNotForgotten) {
  Bench b;
  b.in(0_flow, 1, at(1s));
  size_t before = b.order.footprint();
  b.order.freeIdle(at(60s));
  EXPECT_EQ(b.order.footprint(), before);
  b.in(0_flow, 0, at(61s));
  EXPECT_EQ(b.out(), (Dsns{0, 1}));
}

TEST(Resequencer, ThePlacesOfWhatWasHeldAreGivenBack) {
  Bench b;
  for (uint64_t dsn = 1; dsn < 4000; ++dsn) b.in(0_flow, dsn, at(1s));
  b.in(0_flow, 0, at(1s));
  EXPECT_EQ(b.out(), range(0, 4000));
  EXPECT_GT(b.order.footprint(), 4000u * 64) << "kept for the next hole";
  b.order.freeIdle(at(999ms));
  EXPECT_GT(b.order.footprint(), 4000u * 64);
  b.order.freeIdle(at(1s));
  EXPECT_LE(b.order.footprint(), 64u * 16);
  b.in(0_flow, 4001, at(2s));
  b.in(0_flow, 4000, at(2s));
  EXPECT_EQ(b.out(), (Dsns{4000, 4001}));
}

TEST(Resequencer, ClearGivesAllThatIsHeld) {
  Bench b;
  for (uint64_t dsn : {2, 3, 5}) b.in(0_flow, dsn);
  b.in(1_flow, 1);
  b.order.skip(2_flow, 4_dsn, 1, at(1s));
  b.order.releaseAll();
  EXPECT_EQ(b.outputs().size(), 4u);
  EXPECT_EQ(b.order.heldPackets(), 0u);
  EXPECT_EQ(b.order.nextDeadline(), kNever);
  EXPECT_EQ(b.drops(Drop::kHoldOverflow), 4u);
  EXPECT_EQ(b.order.next(0_flow), 6_dsn);
}

TEST(Resequencer, HeldPacketsDieWithIt) {
  Bench b;
  b.in(0_flow, 1);
  EXPECT_EQ(b.pool.inUse(), 1u);
}

/// Packets of several slots arrive shuffled, duplicated and with losses. Every packet moves by less
/// than the history's length.
TEST(ResequencerProperty, ExactlyOnceBoundedAndInTime) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    ResequencerOptions options{.holdTime = 50ms,
                               .holdBytes = seed % 3 == 0 ? size_t{20'000} : size_t{8 << 20}};
    Bench b(options);
    double loss = seed % 2 ? 0.05 : 0;
    bool bounded = options.holdBytes < 100'000;
    Duration spread = 1us * (1 + random.below(60'000));

    std::multimap<Time, Bench::Out> arrivals;
    for (FlowNumber slot{}; slot < 5_flow; ++slot) {
      for (uint64_t dsn = 0; dsn < 1500; ++dsn) {
        if (random.chance(loss)) continue;
        Time sent = at(1s) + dsn * 200us;
        for (int copy = random.chance(0.05) ? 2 : 1; copy > 0; --copy) {
          arrivals.emplace(sent + Duration(random.below(static_cast<uint64_t>(spread.count()))),
                           Bench::Out{slot, dsn});
        }
      }
    }
    std::map<std::pair<FlowNumber, uint64_t>, Time> due;
    std::set<std::pair<FlowNumber, uint64_t>> delivered;
    std::map<FlowNumber, uint64_t> last;
    auto collect = [&](Time now) {
      for (const Bench::Out& o : b.outputs()) {
        auto key = std::make_pair(o.slot, o.dsn);
        ASSERT_TRUE(delivered.insert(key).second) << "twice: " << o.slot.value() << ":" << o.dsn;
        ASSERT_LE(now, due.at(key)) << "late: " << o.slot.value() << ":" << o.dsn;
        if (loss == 0 && !bounded && spread < 50ms && last.contains(o.slot)) {
          ASSERT_EQ(o.dsn, last[o.slot] + 1) << "no reason to leave the order";
        }
        last[o.slot] = o.dsn;
      }
      ASSERT_LE(b.order.heldBytes(), options.holdBytes);
      ASSERT_LE(b.order.heldPackets(), b.order.maxEntries());
    };
    for (const auto& [now, packet] : arrivals) {
      while (b.order.nextDeadline() <= now) {
        Time then = b.order.nextDeadline();
        b.order.onTimer(then);
        collect(then);
      }
      due.emplace(std::make_pair(packet.slot, packet.dsn), now + options.holdTime);
      b.in(packet.slot, packet.dsn, now, 20 + random.below(1400));
      collect(now);
      if (HasFatalFailure()) return;
    }
    while (b.order.nextDeadline() != kNever) {
      Time then = b.order.nextDeadline();
      b.order.onTimer(then);
      collect(then);
    }
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_EQ(delivered.size(), due.size()) << "what arrived came out";
    EXPECT_EQ(b.drops(Drop::kDuplicate), arrivals.size() - due.size());
    EXPECT_EQ(b.order.heldBytes(), 0u);
    EXPECT_EQ(b.pool.inUse(), 0u);
  }
}

/// Anything that an authenticated but broken peer may send.
TEST(ResequencerProperty, AnyInputStaysBounded) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    Bench b({.holdTime = 10ms, .holdBytes = 100'000, .maxFlows = 16});
    Time now = at(1s);
    std::set<std::pair<FlowNumber, uint64_t>> delivered;
    for (int step = 0; step < 20000; ++step) {
      now += Duration(random.below(20'000));
      FlowNumber slot(static_cast<uint16_t>(random.below(18)));
      uint64_t next = b.order.next(slot).value();
      uint64_t dsn = random.chance(0.02)
                         ? random.below(uint64_t{1} << 40) % (next + 20'000)
                         : next + random.below(5000) - std::min<uint64_t>(next, 1100);
      if (random.chance(0.05)) {
        b.order.skip(slot, Dsn(dsn), 1 + random.below(4096), now);
      } else {
        b.in(slot, dsn, now, 20 + random.below(300));
      }
      if (b.order.nextDeadline() <= now) b.order.onTimer(now);
      ASSERT_GT(b.order.nextDeadline(), now);
      ASSERT_LE(b.order.heldBytes(), 100'000u);
      ASSERT_LE(b.order.heldPackets(), b.order.maxEntries());
      for (const Bench::Out& o : b.outputs()) {
        ASSERT_TRUE(delivered.emplace(o.slot, o.dsn).second)
            << "twice: " << o.slot.value() << ":" << o.dsn;
      }
      ASSERT_EQ(b.pool.inUse(), b.order.heldPackets());
    }
  }
}

}  // namespace
}  // namespace braid::resequencer_test
