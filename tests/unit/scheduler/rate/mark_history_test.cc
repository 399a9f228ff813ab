#include "scheduler/rate/controller_group.h"

#include <gtest/gtest.h>

namespace braid::mark_history_test {
namespace {

struct Pair {
  MarkHistory a, b;
  /// Intervals with these marks. Less than 0: no ACK came.
  void run(int intervals, int ofA, int ofB) {
    for (int i = 0; i < intervals; ++i) {
      a.advance();
      b.advance();
      if (ofA >= 0) a.onAck(static_cast<uint64_t>(ofA));
      if (ofB >= 0) b.onAck(static_cast<uint64_t>(ofB));
    }
  }
  bool share() const { return shareMarks(a, b); }
};

TEST(MarkHistory, MarksInTheSameIntervalsAreShared) {
  Pair p;
  p.run(MarkHistory::kLeast - 1, 1, 3);
  EXPECT_FALSE(p.share()) << "too few";
  p.run(1, 1, 1);
  EXPECT_TRUE(p.share());
}

TEST(MarkHistory, HalfOfTheMarkedIntervalsIsEnough) {
  Pair p;
  p.run(8, 1, 1);
  p.run(8, 1, 0);
  EXPECT_TRUE(p.share());
  p.run(1, 0, 1);
  EXPECT_FALSE(p.share());
}

TEST(MarkHistory, WithoutMarksNothingIsShared) {
  Pair p;
  p.run(60, 0, 0);
  EXPECT_FALSE(p.share());
}

TEST(MarkHistory, IntervalsWithoutAcksSayNothing) {
  Pair p;
  p.run(8, 1, 1);
  p.run(20, 1, -1);
  EXPECT_TRUE(p.share());
}

TEST(MarkHistory, WhatIsLongAgoIsForgotten) {
  Pair p;
  p.run(20, 1, 1);
  p.run(MarkHistory::kIntervals, 0, 0);
  EXPECT_FALSE(p.share());
  p.run(20, 1, 1);
  p.a.reset();
  EXPECT_FALSE(p.share());
}

}  // namespace
}  // namespace braid::mark_history_test
