#include "host/linux/workers.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace braid::workers_test {
namespace {

class WorkersTest : public testing::Test {
 protected:
  template <typename Done>
  void runUntil(Done&& done) {
    Time end = monotonicNow() + 20s;
    while (!done() && monotonicNow() < end) loop_.runOnce(true);
    ASSERT_TRUE(done());
  }
  Loop loop_;
  Workers workers_{loop_};
};

TEST_F(WorkersTest, AJobIsDoneElsewhereAndToldOnTheLoop) {
  EXPECT_FALSE(workers_.started());
  workers_.start(1);
  EXPECT_TRUE(workers_.started());
  const auto here = std::this_thread::get_id();
  std::thread::id worked, told;
  unsigned number = 0;
  Job job(
      [&](unsigned worker) {
        worked = std::this_thread::get_id();
        number = worker;
        return true;
      },
      [&] { told = std::this_thread::get_id(); });
  EXPECT_FALSE(job.underWay());
  workers_.post(job);
  EXPECT_TRUE(job.underWay());
  runUntil([&] { return !job.underWay(); });
  EXPECT_NE(worked, here);
  EXPECT_EQ(told, here);
  EXPECT_EQ(number, 1u);
}

// Only the job itself protects the two counters from concurrent access.
TEST_F(WorkersTest, WhatAJobTouchesPassesToAndFro) {
  constexpr size_t kRounds = 2000, kJobs = 5;
  workers_.start(3);
  struct Ping {
    explicit Ping(Workers& workers)
        : job([this](unsigned) { return ++worked > 0; },
              [this, &workers] {
                if (++told < kRounds) workers.post(job);
              }) {}
    size_t worked = 0, told = 0;
    Job job;
  };
  std::vector<std::unique_ptr<Ping>> pings;
  for (size_t i = 0; i < kJobs; ++i)
    workers_.post(pings.emplace_back(std::make_unique<Ping>(workers_))->job);
  for (auto& ping : pings) {
    runUntil([&] { return ping->told == kRounds; });
    EXPECT_EQ(ping->worked, kRounds);
  }
}

TEST_F(WorkersTest, WhoCannotWaitDoesWhatNobodyHasBegun) {
  workers_.start(1);
  std::promise<void> begun, may;
  int told = 0;
  std::thread::id worked;
  Job slow(
      [&](unsigned) {
        begun.set_value();
        may.get_future().wait();
        return true;
      },
      [&] { ++told; });
  Job next(
      [&](unsigned) {
        worked = std::this_thread::get_id();
        return true;
      },
      [&] { ++told; });
  workers_.post(slow);
  workers_.post(next);
  begun.get_future().wait();
  workers_.await(next);
  EXPECT_EQ(worked, std::this_thread::get_id());
  may.set_value();
  workers_.await(slow);
  EXPECT_FALSE(slow.underWay());
  EXPECT_FALSE(next.underWay());
  loop_.runOnce(false);
  EXPECT_EQ(told, 0);
}

// A job without a result does not wake the loop, unless its owner wants to be told.
TEST_F(WorkersTest, AQuietJobIsLookedAtOrToldWithOthers) {
  workers_.start(1);
  int told = 0;
  std::promise<void> may;
  Job quiet([](unsigned) { return false; }, [&] { ++told; });
  Job slow([&](unsigned) { return may.get_future().wait(), false; }, [&] { ++told; });
  workers_.post(quiet);
  Time end = monotonicNow() + 20s;
  while (!workers_.isOver(quiet, false) && monotonicNow() < end) loop_.runOnce(false);
  EXPECT_FALSE(quiet.underWay());
  EXPECT_EQ(told, 0);
  workers_.post(quiet);
  workers_.post(slow);
  EXPECT_FALSE(workers_.isOver(slow, true));
  may.set_value();
  runUntil([&] { return told == 2; });
}

TEST_F(WorkersTest, JobsBeginInTheirOrder) {
  constexpr size_t kJobs = 50;
  workers_.start(1);
  std::vector<size_t> order;
  std::vector<std::unique_ptr<Job>> jobs;
  for (size_t i = 0; i < kJobs; ++i) {
    jobs.push_back(std::make_unique<Job>(
        [&order, i](unsigned) {
          order.push_back(i);
          return i + 1 == kJobs;
        },
        [] {}));
    workers_.post(*jobs.back());
  }
  runUntil([&] { return !jobs.back()->underWay(); });
  for (size_t i = 0; i < kJobs; ++i) EXPECT_EQ(order.at(i), i);
}

}  // namespace
}  // namespace braid::workers_test
