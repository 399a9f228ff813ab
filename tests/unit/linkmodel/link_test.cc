#include "simnet/link/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/unit/linkmodel/link_test_support.h"

namespace braid::link_test {
namespace {

using testing::ElementsAre;

TEST(Link, DefaultsDeliverAtOnce) {
  Link<int> link({}, 1);
  EXPECT_EQ(link.nextDelivery(), kNever);
  EXPECT_EQ(link.pop(at(5s)), std::nullopt);
  EXPECT_TRUE(link.push(1, 1500, at(5s)));
  EXPECT_EQ(link.nextDelivery(), at(5s));
  EXPECT_EQ(link.pop(at(5s)), 1);
  EXPECT_EQ(link.nextDelivery(), kNever);
}

TEST(Link, NothingBeforeItsTime) {
  Link<int> link({.delay = 10ms}, 1);
  link.push(1, 100, at(0ms));
  EXPECT_EQ(link.pop(at(10ms) - 1ns), std::nullopt);
  EXPECT_EQ(link.pop(at(10ms)), 1);
}

TEST(Link, SerialisesThenDelays) {
  Link<int> link({.rateBitsPerSecond = 12e6, .delay = 20ms}, 1);  // 1500 bytes take 1 ms
  link.push(1, 1500, at(0ms));
  link.push(2, 750, at(0ms));
  link.push(3, 1500, at(10ms));
  EXPECT_THAT(arrivals(link), ElementsAre(Arrival{1, at(21ms)}, Arrival{2, at(21ms + 500us)},
                                          Arrival{3, at(31ms)}));
}

TEST(Link, RateIsExactOverManyPackets) {
  // 1500 bytes at 7 Mbit/s take 1714285.714... ns: rounding each packet would drift by 0.1 ms.
  Link<int> link({.rateBitsPerSecond = 7e6, .queueBytes = size_t{1} << 40}, 1);
  constexpr int kPackets = 500'000;
  Time now{};
  Time last{};
  for (int i = 0; i < kPackets; ++i) {
    ASSERT_TRUE(link.push(i, 1500, now));
    if (i % 1000 == 999) {
      for (auto& [id, time] : drain(link)) now = last = time;
    }
  }
  double seconds = kPackets * 12000.0 / 7e6;
  EXPECT_NEAR(toSeconds(last - Time{}), seconds, kPackets / 1000 * 1e-9);
}

TEST(Link, QueueBoundIsExact) {
  Link<int> link({.rateBitsPerSecond = 8e6, .queueBytes = 3000}, 1);  // 1000 bytes take 1 ms
  EXPECT_TRUE(link.push(0, 1000, at(0ms)));  // in transmission, not in the queue
  for (int i = 1; i <= 3; ++i) EXPECT_TRUE(link.push(i, 1000, at(0ms)));
  EXPECT_FALSE(link.push(4, 1, at(0ms)));
  EXPECT_EQ(link.stats(at(0ms)).queueBytes, 3000u);
  EXPECT_FALSE(link.push(5, 1000, at(1ms) - 1ns));
  EXPECT_TRUE(link.push(6, 1000, at(1ms)));
  EXPECT_THAT(ids(link), ElementsAre(0, 1, 2, 3, 6));
  LinkStats s = link.stats(at(1s));
  EXPECT_EQ(s.dropQueue, (LinkCount{2, 1001}));
  EXPECT_EQ(s.queueBytes, 0u);
  EXPECT_EQ(s.queueBytesMax, 3000u);
  EXPECT_EQ(s.queueDelayMax, 3ms);
  EXPECT_EQ(s.in, (LinkCount{7, 6001}));
  EXPECT_EQ(s.delivered, (LinkCount{5, 5000}));
  expectConserved(s);
}

TEST(Link, AnIdleLinkTakesAPacketLargerThanItsQueue) {
  Link<int> link({.rateBitsPerSecond = 8e6, .queueBytes = 1}, 1);
  EXPECT_TRUE(link.push(1, 1500, at(0ms)));
  EXPECT_FALSE(link.push(2, 1500, at(1ms)));
  EXPECT_TRUE(link.push(3, 1500, at(1500us)));
}

TEST(Link, DefaultQueue) {
  EXPECT_EQ(defaultQueueBytes({.rateBitsPerSecond = 1e6}), 65536u);
  EXPECT_EQ(defaultQueueBytes({.rateBitsPerSecond = 80e6}), 1'000'000u);
  EXPECT_EQ(defaultQueueBytes({.rateBitsPerSecond = 80e6, .trace = {{1s, 8e6}, {1s, 160e6}}}),
            2'000'000u);
  Link<int> link({.rateBitsPerSecond = 1e6}, 1);
  int accepted = 0;
  while (link.push(0, 1024, at(0s))) ++accepted;
  EXPECT_EQ(accepted, 65);
}

TEST(Link, JitterIsUniformAndNeverReorders) {
  LinkOptions options{.delay = 10ms, .jitter = 4ms};
  Link<int> spaced(options, 7);
  double sum = 0;
  Duration low = 1h, high{};
  constexpr int kPackets = 20000;
  for (int i = 0; i < kPackets; ++i) {
    Time sent = at(i * 100ms);
    spaced.push(i, 100, sent);
    Duration d = spaced.nextDelivery() - sent;
    low = std::min(low, d);
    high = std::max(high, d);
    sum += toMilliseconds(d);
    spaced.pop(sent + d);
  }
  EXPECT_GE(low, 10ms);
  EXPECT_LT(low, 10ms + 20us);
  EXPECT_LE(high, 14ms);
  EXPECT_GT(high, 14ms - 20us);
  EXPECT_NEAR(sum / kPackets, 12.0, 0.05);

  Link<int> dense(options, 7);
  for (int i = 0; i < 1000; ++i) dense.push(i, 100, at(i * 10us));
  std::vector<int> got = ids(dense);
  ASSERT_EQ(got.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
}

TEST(Link, MtuIsABlackHole) {
  Link<int> link({.mtu = 1400}, 1);
  EXPECT_TRUE(link.push(1, 1400, at(0s)));
  EXPECT_FALSE(link.push(2, 1401, at(0s)));
  EXPECT_THAT(ids(link), ElementsAre(1));
  EXPECT_EQ(link.stats(at(0s)).dropMtu, (LinkCount{1, 1401}));
}

TEST(Link, ReorderHoldsBackByItsDelay) {
  Link<int> link({.delay = 10ms, .reorder = 1, .reorderDelay = 5ms}, 1);
  link.push(1, 100, at(0ms));
  LinkOptions normal{.delay = 10ms};
  link.setOptions(normal, at(1ms));
  link.push(2, 100, at(1ms));
  link.push(3, 100, at(6ms));
  EXPECT_THAT(arrivals(link),
              ElementsAre(Arrival{2, at(11ms)}, Arrival{1, at(15ms)}, Arrival{3, at(16ms)}));
  EXPECT_EQ(link.stats(at(1s)).reordered, 1u);
  expectConserved(link.stats(at(1s)));
}

TEST(Link, ReorderShare) {
  Link<int> link({.reorder = 0.1, .reorderDelay = 1ms}, 3);
  for (int i = 0; i < 10000; ++i) link.push(i, 100, at(i * 1us));
  EXPECT_EQ(ids(link).size(), 10000u);
  EXPECT_NEAR(static_cast<double>(link.stats(at(1h)).reordered), 1000, 120);  // 4 sigma
}

TEST(Link, DuplicatesComeBackToBack) {
  Link<int> link({.delay = 1ms, .duplicate = 1}, 1);
  link.push(1, 100, at(0ms));
  link.push(2, 100, at(0ms));
  EXPECT_THAT(ids(link), ElementsAre(1, 1, 2, 2));
  LinkStats s = link.stats(at(1s));
  EXPECT_EQ(s.duplicated, 2u);
  EXPECT_EQ(s.delivered, (LinkCount{4, 400}));
  EXPECT_EQ(s.inside, 0u);
  expectConserved(s);
}

TEST(Link, MoveOnlyItems) {
  Link<std::unique_ptr<int>> link(
      {.delay = 1ms, .duplicate = 1, .reorder = 0.5, .reorderDelay = 1ms}, 1);
  for (int i = 0; i < 100; ++i) link.push(std::make_unique<int>(i), 100, at(0ms));
  int sum = 0;
  for (auto& [item, time] : drain(link)) {
    ASSERT_TRUE(item);
    sum += *item;
  }
  EXPECT_EQ(sum, 4950);  // it cannot be copied, so nothing is duplicated
  EXPECT_EQ(link.stats(at(1s)).duplicated, 0u);
}

/// An item with all functions that a link may use, like a datagram with an ECN codepoint.
struct Frame {
  std::vector<uint8_t> bytes{};
  bool ect = false;
  bool ce = false;
};
bool clearEcn(Frame& frame) {
  if (!frame.ect && !frame.ce) return false;
  frame.ect = frame.ce = false;
  return true;
}
bool markCe(Frame& frame) {
  if (!frame.ect || frame.ce) return false;
  frame.ce = true;
  return true;
}
void corrupt(Frame& frame, Random& random) {
  uint64_t bit = random.below(frame.bytes.size() * 8);
  frame.bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
}
int copiesLeft = 0;
std::optional<Frame> clone(const Frame& frame) {
  if (copiesLeft == 0) return std::nullopt;
  --copiesLeft;
  return frame;
}

TEST(Link, MarksAboveTheThresholdOnly) {
  Link<Frame> link({.rateBitsPerSecond = 8e6, .queueBytes = 100000, .ecnThresholdBytes = 2000}, 1);
  for (int i = 0; i < 6; ++i) link.push({.ect = i != 4, .ce = false}, 1000, at(0ms));
  // Bytes found waiting by the packets: 0 0 1000 2000 3000 4000. The last but one is not
  // ECN-capable.
  std::vector<bool> marks;
  for (auto& [frame, time] : drain(link)) marks.push_back(frame.ce);
  EXPECT_THAT(marks, ElementsAre(false, false, false, false, false, true));
  EXPECT_EQ(link.stats(at(1s)).marked, 1u);
}

TEST(Link, NoMarksWithoutThreshold) {
  Link<Frame> link({.rateBitsPerSecond = 8e6, .queueBytes = 100000}, 1);
  for (int i = 0; i < 50; ++i) link.push({.ect = true, .ce = false}, 1000, at(0ms));
  for (auto& [frame, time] : drain(link)) EXPECT_FALSE(frame.ce);
}

// Every second packet is ECN-capable. The fifth and sixth find more than 2000 bytes waiting.
std::vector<Frame> throughFault(EcnFault fault, LinkStats& stats) {
  Link<Frame> link({.rateBitsPerSecond = 8e6,
                    .queueBytes = 100000,
                    .ecnThresholdBytes = 2000,
                    .ecnFault = fault},
                   1);
  for (int i = 0; i < 6; ++i) link.push({.ect = i % 2 == 1, .ce = false}, 1000, at(0ms));
  std::vector<Frame> frames;
  for (auto& [frame, time] : drain(link)) frames.push_back(std::move(frame));
  stats = link.stats(at(1s));
  expectConserved(stats);
  return frames;
}

TEST(Link, BleachingClearsMarksToo) {
  LinkStats stats;
  std::vector<Frame> frames = throughFault(EcnFault::kBleach, stats);
  ASSERT_EQ(frames.size(), 6u);
  for (const Frame& frame : frames) EXPECT_FALSE(frame.ect || frame.ce);
  EXPECT_EQ(stats.bleached, 3u);
  EXPECT_EQ(stats.marked, 1u);
}

TEST(Link, ManglingMarksWhatIsEcnCapable) {
  LinkStats stats;
  std::vector<Frame> frames = throughFault(EcnFault::kMangle, stats);
  ASSERT_EQ(frames.size(), 6u);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(frames[i].ce, i % 2 == 1);
  EXPECT_EQ(stats.marked, 3u);
}

TEST(Link, AFaultyLinkDropsWhatIsEcnCapable) {
  LinkStats stats;
  std::vector<Frame> frames = throughFault(EcnFault::kDrop, stats);
  ASSERT_EQ(frames.size(), 3u);
  for (const Frame& frame : frames) EXPECT_FALSE(frame.ect);
  EXPECT_EQ(stats.dropEcn.packets, 3u);
  EXPECT_EQ(stats.dropEcn.bytes, 3000u);
}

TEST(Link, CorruptionFlipsExactlyOneBit) {
  Link<Frame> link({.corrupt = 0.5}, 11);
  Frame zeros{.bytes = std::vector<uint8_t>(100)};
  std::vector<int> hits(800);
  uint64_t corrupted = 0;
  for (int i = 0; i < 4000; ++i) {
    link.push(Frame(zeros), 100, at(0s));
    std::optional<Frame> frame = link.pop(at(0s));
    int bits = 0;
    for (size_t b = 0; b < 800; ++b) {
      bool flipped = frame->bytes[b / 8] >> b % 8 & 1;
      bits += flipped;
      hits[b] += flipped;
    }
    ASSERT_LE(bits, 1);
    corrupted += static_cast<uint64_t>(bits);
  }
  EXPECT_NEAR(static_cast<double>(corrupted), 2000, 130);  // 4 sigma
  EXPECT_EQ(link.stats(at(0s)).corrupted, corrupted);
  EXPECT_LT(*std::max_element(hits.begin(), hits.end()),
            20);  // spread over the packet: 2.5 expected
}

TEST(Link, CloneHookDecidesOnDuplicates) {
  Link<Frame> link({.duplicate = 1}, 1);
  copiesLeft = 1;
  for (uint8_t i = 0; i < 2; ++i) link.push({.bytes = {i}}, 1, at(0s));
  std::vector<int> got;
  for (auto& [frame, time] : drain(link)) got.push_back(frame.bytes.at(0));
  EXPECT_THAT(got, ElementsAre(0, 0, 1));
  expectConserved(link.stats(at(0s)));
}

}  // namespace
}  // namespace braid::link_test
