#include "scheduler/rate/controller.h"

#include <gtest/gtest.h>

namespace braid::full_pipe_test {
namespace {

TEST(FullPipe, IsFullAfterThreeRoundsWithoutAQuarterMore) {
  FullPipe pipe;
  pipe.onRound(100);
  pipe.onRound(124);
  pipe.onRound(124);
  EXPECT_FALSE(pipe.isFull());
  pipe.onRound(124);
  EXPECT_TRUE(pipe.isFull());
}

TEST(FullPipe, AQuarterMoreBeginsAnew) {
  FullPipe pipe;
  pipe.onRound(100);
  pipe.onRound(124);
  pipe.onRound(124);
  pipe.onRound(125);
  for (int i = 0; i < 2; ++i) pipe.onRound(125);
  EXPECT_FALSE(pipe.isFull());
}

TEST(FullPipe, AnEighthOfTheRttIsAQueueWithinBounds) {
  EXPECT_EQ(FullPipe::queueOf(10ms), 4ms);
  EXPECT_EQ(FullPipe::queueOf(80ms), 10ms);
  EXPECT_EQ(FullPipe::queueOf(1s), 16ms);
}

}  // namespace
}  // namespace braid::full_pipe_test
