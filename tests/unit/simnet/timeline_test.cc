#include "simnet/timeline.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace braid::sim {
namespace {

TEST(Timeline, CallsOfOneMomentKeepTheirOrder) {
  Simulation simulation(1);
  std::vector<int> calls;
  for (int i = 0; i < 100; ++i)
    simulation.after(Duration((i % 3) * 1'000'000), [&, i] { calls.push_back(i); });
  simulation.run(10ms);
  std::vector<int> expected;
  for (int late = 0; late < 3; ++late) {
    for (int i = late; i < 100; i += 3) expected.push_back(i);
  }
  EXPECT_EQ(calls, expected);
}

TEST(Timeline, ACallMayAskForMoreAtItsOwnMoment) {
  Simulation simulation(1);
  std::vector<int> calls;
  simulation.after(1ms, [&] {
    calls.push_back(1);
    for (int i = 3; i < 50; ++i) simulation.after(Duration(0), [&, i] { calls.push_back(i); });
  });
  simulation.after(1ms, [&] { calls.push_back(2); });
  simulation.run(1ms);
  ASSERT_EQ(calls.size(), 49u);
  for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], static_cast<int>(i) + 1);
}

TEST(Timeline, WhatACallHoldsLivesUntilItIsOverAndNotLonger) {
  Simulation simulation(1);
  auto held = std::make_shared<int>(0);
  std::weak_ptr<int> watched = held;
  simulation.after(1ms, [&simulation, &watched, held = std::move(held)] {
    for (int i = 0; i < 100; ++i)
      simulation.after(Duration(0), [&watched] { EXPECT_TRUE(watched.expired()); });
    EXPECT_FALSE(watched.expired());
    EXPECT_EQ(*held, 0);
  });
  simulation.run(1ms);
  EXPECT_TRUE(watched.expired());
}

TEST(Timeline, ManyCallsComeAtTheirTimes) {
  Simulation simulation(3);
  int open = 0;
  std::function<void()> again = [&] {
    if (simulation.now() > Time{10s}) return;
    Time wanted = simulation.now() + Duration(simulation.random().below(50'000'000));
    ++open;
    simulation.at(wanted, [&, wanted] {
      --open;
      EXPECT_EQ(simulation.now(), wanted);
      again();
    });
  };
  for (int i = 0; i < 20; ++i) again();
  simulation.run(12s);
  EXPECT_EQ(open, 0);
}

}  // namespace
}  // namespace braid::sim
