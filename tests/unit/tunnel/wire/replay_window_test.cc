#include "tunnel/wire/key_ring.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::replay_window_test {
namespace {

constexpr uint64_t kWindow = ReplayWindow::kWindow;

TEST(ReplayWindow, CheckAloneChangesNothing) {
  ReplayWindow window;
  EXPECT_TRUE(window.check(7_pn));
  EXPECT_TRUE(window.check(7_pn));
  EXPECT_EQ(window.next(), 0_pn);
  EXPECT_TRUE(window.commit(7_pn));
  EXPECT_FALSE(window.check(7_pn));
  EXPECT_FALSE(window.commit(7_pn));
  EXPECT_EQ(window.next(), 8_pn);
}

TEST(ReplayWindow, FirstNumberMayBeZeroOrLarge) {
  ReplayWindow zero;
  EXPECT_TRUE(zero.commit(0_pn));
  EXPECT_FALSE(zero.check(0_pn));
  ReplayWindow large;
  EXPECT_TRUE(large.commit(PacketNumber(uint64_t{1} << 61)));
  EXPECT_FALSE(large.check(PacketNumber(uint64_t{1} << 61)));
  EXPECT_TRUE(large.check(PacketNumber((uint64_t{1} << 61) - 1)));
}

TEST(ReplayWindow, EdgeIsExactlyTheWindow) {
  RecordProperty("rule", "header.number");
  for (uint64_t top : {kWindow + 5, 2 * kWindow, 3 * kWindow + 63, 3 * kWindow + 64}) {
    ReplayWindow window;
    ASSERT_TRUE(window.commit(PacketNumber(top)));
    EXPECT_TRUE(window.check(PacketNumber(top + 1 - kWindow))) << top;
    EXPECT_FALSE(window.check(PacketNumber(top - kWindow))) << top;
    EXPECT_TRUE(window.commit(PacketNumber(top + 1 - kWindow)));
    EXPECT_FALSE(window.check(PacketNumber(top + 1 - kWindow)));
    EXPECT_FALSE(window.check(PacketNumber(top))) << "the oldest shares no word with the newest";
  }
}

TEST(ReplayWindow, JumpForgetsTheOldBits) {
  ReplayWindow window;
  for (uint64_t pn = 0; pn < 2 * kWindow; ++pn) ASSERT_TRUE(window.commit(PacketNumber(pn)));
  ASSERT_TRUE(window.commit(PacketNumber(100 * kWindow)));
  for (uint64_t pn = 99 * kWindow + 1; pn < 100 * kWindow; ++pn)
    ASSERT_TRUE(window.check(PacketNumber(pn))) << pn;
}

TEST(ReplayWindowProperty, MatchesASet) {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    ReplayWindow window;
    std::set<uint64_t> seen;
    uint64_t next = 0;
    uint64_t base = random.below(2) * random.below(uint64_t{1} << 60);
    for (int step = 0; step < 5000; ++step) {
      base += random.chance(0.01) ? random.below(2 * kWindow) : random.below(3);
      uint64_t back = random.chance(0.2) ? random.below(kWindow + 100) : random.below(50);
      uint64_t pn = base > back ? base - back : 0;
      bool inside = pn >= next || next - pn <= kWindow;
      bool fresh = inside && !seen.contains(pn);
      ASSERT_EQ(window.check(PacketNumber(pn)), fresh) << "pn " << pn;
      if (random.chance(0.2)) continue;
      ASSERT_EQ(window.commit(PacketNumber(pn)), fresh) << "pn " << pn;
      if (!fresh) continue;
      seen.insert(pn);
      next = std::max(next, pn + 1);
    }
  }
}

}  // namespace
}  // namespace braid::replay_window_test
