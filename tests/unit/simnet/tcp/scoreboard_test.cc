// Compares the sender's scoreboard and the receiver's reassembly with plain models of both.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "simnet/tcp/reassembly.h"
#include "simnet/tcp/scoreboard.h"

namespace braid::sim::tcp::scoreboard_test {
namespace {

constexpr uint32_t kSize = 1000;
auto nothing = [](const SentSegment&) {};

TEST(TcpScoreboard, CountsWhatIsOnItsWay) {
  Scoreboard board;
  for (uint64_t i = 0; i < 10; ++i) board.append(i * kSize, kSize, Time{1ms * i});
  EXPECT_EQ(board.pipe(), 10u * kSize);
  std::array<Range, 1> sack{Range{3 * kSize, 6 * kSize}};
  std::vector<uint64_t> delivered;
  board.sack(sack.data(), 1, [&](const SentSegment& s) { delivered.push_back(s.begin / kSize); });
  EXPECT_EQ(delivered, (std::vector<uint64_t>{3, 4, 5}));
  EXPECT_EQ(board.pipe(), 7u * kSize);
  board.markLost(0);
  board.markLost(1);
  EXPECT_EQ(board.pipe(), 5u * kSize);
  EXPECT_EQ(board.nextRepair(), 0u);
  board.resend(0, Time{20ms});
  EXPECT_EQ(board.pipe(), 6u * kSize);
  EXPECT_EQ(board.nextRepair(), 1u);
  EXPECT_EQ(board.oldest(), 2u) << "lost ones are sent again before they can be lost again";
  EXPECT_EQ(board.at(9).later, 0u);
  delivered.clear();
  board.acknowledge(
      5 * kSize, [&](const SentSegment& s) { delivered.push_back(s.begin / kSize); }, nothing);
  EXPECT_EQ(delivered, (std::vector<uint64_t>{0, 1, 2})) << "the others were known";
  EXPECT_EQ(board.pipe(), 4u * kSize);
  EXPECT_EQ(board.flight(), 5u * kSize);
  EXPECT_FALSE(board.hasLost());
}

TEST(TcpScoreboard, APartOfASegmentMayBeAcknowledged) {
  Scoreboard board;
  board.append(0, kSize, Time{});
  board.markLost(0);
  board.resend(0, Time{1ms});
  board.acknowledge(400, nothing, nothing);
  EXPECT_EQ(board.at(0).begin, 400u);
  EXPECT_EQ(board.pipe(), 600u);
  board.acknowledge(1000, nothing, nothing);
  EXPECT_EQ(board.pipe(), 0u);
  EXPECT_TRUE(board.empty());
}

TEST(TcpScoreboard, ThreeAboveMeansLost) {
  Scoreboard board;
  for (uint64_t i = 0; i < 10; ++i) board.append(i * kSize, kSize, Time{});
  std::array<Range, 2> two{Range{4 * kSize, 5 * kSize}, Range{8 * kSize, 9 * kSize}};
  board.sack(two.data(), 2, nothing);
  EXPECT_EQ(board.belowSacked(3), 0u);
  EXPECT_EQ(board.belowSacked(2), 4u);
  std::array<Range, 1> more{Range{6 * kSize, 7 * kSize}};
  board.sack(more.data(), 1, nothing);
  EXPECT_EQ(board.belowSacked(3), 4u);
  EXPECT_EQ(board.belowSacked(1), 8u);
  EXPECT_EQ(board.sackedEnd(), 9u);
  board.acknowledge(5 * kSize, nothing, nothing);
  EXPECT_EQ(board.belowSacked(3), board.firstId()) << "two are left";
}

TEST(TcpScoreboard, SacksCanBeForgotten) {
  Scoreboard board;
  for (uint64_t i = 0; i < 4; ++i) board.append(1000 * i, 1000, Time{1ms * i});
  Range block{1000, 2000};
  board.sack(&block, 1, [](const SentSegment&) {});
  board.markLost(0);
  board.resend(0, Time{9ms});
  EXPECT_FALSE(board.reneged());
  board.acknowledge(
      1000, [](const SentSegment&) {}, [](const SentSegment&) {});
  EXPECT_TRUE(board.reneged());
  board.forgetSacks();
  EXPECT_FALSE(board.reneged());
  EXPECT_EQ(board.firstId(), 1u);
  EXPECT_EQ(board.sackedSegments(), 0u);
  EXPECT_EQ(board.pipe(), 3000u);
  EXPECT_EQ(board.flight(), 3000u);
  EXPECT_FALSE(board.hasLost());
  board.markLost(1);
  EXPECT_EQ(board.nextRepair(), 1u);
}

TEST(TcpScoreboard, ALowerMssCutsWhatIsOnItsWay) {
  Scoreboard board;
  for (uint64_t i = 0; i < 3; ++i) board.append(i * kSize, kSize, Time{});
  std::array<Range, 1> sack{Range{2 * kSize, 3 * kSize}};
  board.sack(sack.data(), 1, nothing);
  board.cut(600);
  EXPECT_EQ(board.size(), 6u);
  EXPECT_EQ(board.flight(), 3u * kSize);
  EXPECT_EQ(board.pipe(), 0u);
  EXPECT_EQ(board.sackedSegments(), 2u);
  EXPECT_EQ(board.at(board.nextRepair()).size, 600u);
}

// A receiver that gets segments in any order, and a sender that processes its ACKs.
TEST(TcpScoreboard, AgreesWithAPlainModelOfBothEnds) {
  Random random(5);
  for (int run = 0; run < 200; ++run) {
    Scoreboard board;
    Reassembly bytes;
    std::set<uint64_t> heard;
    size_t segments = 5 + random.below(60);
    for (uint64_t i = 0; i < segments; ++i) board.append(i * kSize, kSize, Time{});
    for (int step = 0; step < 150; ++step) {
      uint64_t i = random.below(segments);
      if (i * kSize >= bytes.next() + 30 * kSize) continue;
      bytes.add({i * kSize, (i + 1) * kSize});
      heard.insert(i);
      uint64_t next = 0;
      while (heard.contains(next)) ++next;
      ASSERT_EQ(bytes.next(), next * kSize);
      ASSERT_EQ(bytes.hasGap(), next < heard.size());
      std::array<Range, 4> blocks;
      size_t count = bytes.blocks(3, blocks);
      Range newest{};
      for (size_t b = 0; b < count; ++b) {
        for (uint64_t at = blocks[b].begin; at < blocks[b].end; at += kSize)
          ASSERT_TRUE(heard.contains(at / kSize));
        if (i * kSize >= blocks[b].begin && i * kSize < blocks[b].end && newest.size() == 0)
          newest = blocks[b];
      }
      ASSERT_TRUE(i * kSize < bytes.next() || newest.size() > 0) << "what came last is in a block";
      board.acknowledge(bytes.next(), nothing, nothing);
      std::array<Range, 4> sacks;
      size_t n = 0;
      for (size_t b = 0; b < count; ++b) {
        if (blocks[b].begin > bytes.next()) sacks[n++] = blocks[b];
      }
      std::sort(sacks.begin(), sacks.begin() + static_cast<ptrdiff_t>(n),
                [](Range a, Range b) { return a.begin < b.begin; });
      board.sack(sacks.data(), n, nothing);
      if (random.chance(0.2) && !board.empty()) {
        uint32_t id = board.firstId() + static_cast<uint32_t>(random.below(board.size()));
        board.markLost(id);
        if (board.hasRepair() && random.chance(0.7)) board.resend(board.nextRepair(), Time{});
      }
      uint64_t pipe = 0, flight = 0;
      for (uint32_t id = board.firstId(); id != board.endId(); ++id) {
        const SentSegment& s = board.at(id);
        ASSERT_EQ(s.sacked && !heard.contains(s.begin / kSize), false);
        ASSERT_TRUE(s.sacked || s.begin / kSize != i) << "what came last is known";
        flight += s.size;
        pipe +=
            (s.sacked || (s.lost && !s.resent) ? 0 : s.size) + (s.resent && !s.lost ? s.size : 0);
      }
      ASSERT_EQ(board.pipe(), pipe);
      ASSERT_EQ(board.flight(), flight);
    }
  }
}

TEST(TcpReassembly, TheNewestBlockComesFirst) {
  Reassembly bytes;
  for (uint64_t i : {2, 6, 4, 10}) bytes.add({i * kSize, (i + 1) * kSize});
  std::array<Range, 4> blocks;
  ASSERT_EQ(bytes.blocks(3, blocks), 3u);
  EXPECT_EQ(blocks[0].begin, 10u * kSize);
  EXPECT_EQ(blocks[1].begin, 4u * kSize);
  EXPECT_EQ(blocks[2].begin, 6u * kSize);
  bytes.add({5 * kSize, 6 * kSize});
  ASSERT_EQ(bytes.blocks(3, blocks), 3u);
  EXPECT_EQ(blocks[0], (Range{4 * kSize, 7 * kSize})) << "two became one";
  EXPECT_EQ(blocks[1].begin, 10u * kSize);
  EXPECT_EQ(blocks[2].begin, 2u * kSize);
}

TEST(TcpReassembly, ARepeatedSegmentIsTheFirstBlockOnce) {
  Reassembly bytes;
  bytes.add({0, 3 * kSize});
  bytes.add({5 * kSize, 8 * kSize});
  bytes.add({6 * kSize, 7 * kSize});
  std::array<Range, 4> blocks;
  ASSERT_EQ(bytes.blocks(3, blocks), 2u);
  EXPECT_EQ(blocks[0], (Range{6 * kSize, 7 * kSize}));
  EXPECT_EQ(blocks[1], (Range{5 * kSize, 8 * kSize}))
      << "the block that holds it follows (RFC 2883)";
  bytes.add({kSize, 2 * kSize});
  ASSERT_EQ(bytes.blocks(3, blocks), 2u);
  EXPECT_EQ(blocks[0], (Range{kSize, 2 * kSize}));
  EXPECT_EQ(bytes.blocks(3, blocks), 1u) << "once";
}

TEST(TcpReassembly, KnowsWhatIsMissing) {
  Reassembly bytes;
  bytes.add({0, 10});
  bytes.add({20, 30});
  bytes.add({35, 40});
  EXPECT_EQ(bytes.missing({0, 10}).size(), 0u);
  EXPECT_EQ(bytes.missing({5, 30}), (Range{10, 20}));
  EXPECT_EQ(bytes.missing({22, 40}), (Range{30, 35}));
  EXPECT_EQ(bytes.missing({0, 50}), (Range{10, 50}));
  EXPECT_EQ(bytes.missing({21, 29}).size(), 0u);
  EXPECT_TRUE(bytes.has({36, 40}));
  EXPECT_FALSE(bytes.has({36, 41}));
}

}  // namespace
}  // namespace braid::sim::tcp::scoreboard_test
