#include "evaluation/models/timeout_model.h"

#include <gtest/gtest.h>

namespace braid::timeout_model_test {
namespace {

using sim::TimeoutModel;

TEST(TimeoutModel, OfOnePacketIsItsLoss) {
  TimeoutModel m{.loss = 0.01, .packets = 1};
  EXPECT_DOUBLE_EQ(m.tcp(), 0.01);
  m.paths = 3;
  EXPECT_DOUBLE_EQ(m.tcp(), 0.01 / 3);
}

// By hand: 0.1 + 1 - 0.99^9.
TEST(TimeoutModel, OfTenPackets) {
  EXPECT_NEAR((TimeoutModel{.loss = 0.1, .packets = 10}.tcp()), 0.186482752, 1e-9);
}

// Four packets over two subflows and two paths: a subflow times out with 0.1 + 1 - 0.99 = 0.11.
TEST(TimeoutModel, OfSubflows) {
  TimeoutModel m{.loss = 0.1, .packets = 4, .paths = 2, .subflows = 2};
  EXPECT_NEAR(m.mptcp(), 1 - 0.945 * 0.945, 1e-12);
  EXPECT_NEAR(m.fuso(), 0.25 * (0.5 * 0.11 * 0.11 + 0.5 * (0.01 + 0.01)), 1e-12);
}

// Fig. 4: 100 KB over three paths.
TEST(TimeoutModel, HasTheOrderOfFusosFigure) {
  for (double loss : {0.001, 0.01, 0.1}) {
    TimeoutModel m{.loss = loss, .packets = 69, .paths = 3};
    EXPECT_GT(m.mptcp(), m.tcp()) << loss;
    EXPECT_GT(m.tcp() / m.fuso(), 100) << loss;
  }
}

TEST(TimeoutModel, WithoutLossThereIsNone) {
  TimeoutModel m{.loss = 0, .packets = 69, .paths = 3};
  EXPECT_EQ(m.tcp(), 0);
  EXPECT_EQ(m.mptcp(), 0);
  EXPECT_EQ(m.fuso(), 0);
}

}  // namespace
}  // namespace braid::timeout_model_test
