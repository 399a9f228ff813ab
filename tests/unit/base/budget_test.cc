#include "base/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/random.h"

namespace braid::budget_test {
namespace {

/// A quota user that frees `step` at a time, down to `fixed`.
struct Holder final : QuotaUser {
  explicit Holder(MemoryQuota* budget) : QuotaUser(budget) {}

  using QuotaUser::hasRoom;
  using QuotaUser::keep;
  using QuotaUser::makeRoom;
  void reclaim() override {
    ++asked;
    if (kept() > fixed) keep(std::max(fixed, kept() - std::min(kept(), step)));
  }

  size_t step = 10;
  size_t fixed = 0;
  int asked = 0;
};

TEST(MemoryQuota, WithoutOneThereIsNoBound) {
  Holder a(nullptr);
  EXPECT_TRUE(a.hasRoom(SIZE_MAX));
  EXPECT_TRUE(a.makeRoom(SIZE_MAX));
  a.keep(1000);
  EXPECT_EQ(a.kept(), 1000u);
  EXPECT_EQ(a.asked, 0);
}

TEST(MemoryQuota, OneTakesAllAsLongAsNobodyElseWantsIt) {
  MemoryQuota budget(100);
  Holder a(&budget), b(&budget);
  a.keep(100);
  EXPECT_EQ(budget.used(), 100u);
  EXPECT_EQ(a.asked + b.asked, 0);
}

TEST(MemoryQuota, WhoKeepsMostGivesBack) {
  MemoryQuota budget(100);
  Holder a(&budget), b(&budget), c(&budget);
  a.keep(60);
  b.keep(40);
  c.keep(15);
  EXPECT_EQ(a.kept(), 40u) << "two steps";
  EXPECT_EQ(b.kept(), 40u);
  EXPECT_EQ(c.kept(), 15u);
  EXPECT_EQ(budget.taken(), 2u);
  b.keep(60);
  EXPECT_EQ(b.kept(), 40u) << "the one that wanted more keeps most itself";
  EXPECT_EQ(a.kept(), 40u);
}

TEST(MemoryQuota, WhoEndsGivesAllBack) {
  MemoryQuota budget(100);
  {
    Holder a(&budget);
    a.keep(70);
  }
  EXPECT_EQ(budget.used(), 0u);
  Holder b(&budget);
  b.keep(100);
  EXPECT_EQ(b.asked, 0);
}

TEST(MemoryQuota, WhatCannotBeGivenBackEndsTheSearch) {
  MemoryQuota budget(100);
  Holder a(&budget), b(&budget);
  a.fixed = 90;
  a.keep(90);
  b.keep(20);
  EXPECT_EQ(budget.used(), 110u);
  EXPECT_EQ(a.asked, 1);
  EXPECT_FALSE(b.hasRoom(1));
}

TEST(MemoryQuota, WhoCannotGiveIsNotAskedHoweverMuchItKeeps) {
  struct Firm final : QuotaUser {
    explicit Firm(MemoryQuota* budget) : QuotaUser(budget, false) {}
    using QuotaUser::keep;
    void reclaim() override { ADD_FAILURE(); }
  };
  MemoryQuota budget(100);
  Firm firm(&budget);
  Holder a(&budget);
  firm.keep(70);
  a.keep(40);
  EXPECT_EQ(a.kept(), 30u);
  EXPECT_EQ(firm.kept(), 70u);
  firm.keep(101);
  EXPECT_EQ(a.kept(), 0u);
  EXPECT_EQ(budget.used(), 101u) << "nobody is left who could";
}

TEST(MemoryQuota, AQuarterIsDividedAmongAll) {
  MemoryQuota budget(400);
  Holder a(&budget), b(&budget), c(&budget), d(&budget);
  for (Holder* h : {&a, &b, &c, &d}) h->fixed = SIZE_MAX;
  while (a.hasRoom(1)) a.keep(a.kept() + 1);
  EXPECT_EQ(a.kept(), 300u) << "whoever comes first";
  for (Holder* h : {&b, &c, &d}) {
    while (h->hasRoom(1)) h->keep(h->kept() + 1);
    EXPECT_EQ(h->kept(), 25u) << "its own part, whatever the others do";
  }
  EXPECT_LE(budget.used(), budget.limit());
}

TEST(MemoryQuota, RoomIsMadeByThoseWhoHaveMuchMore) {
  MemoryQuota budget(400);
  Holder a(&budget), b(&budget);
  a.keep(300);
  b.keep(60);
  EXPECT_TRUE(b.makeRoom(10));
  EXPECT_EQ(a.kept(), 230u) << "until three quarters hold it";
  a.keep(150);
  b.keep(140);
  EXPECT_FALSE(b.makeRoom(20)) << "twice as much would be more";
  EXPECT_EQ(a.kept(), 150u);
}

// Found by review: a peer could make each of its packets cause a walk over all peers.
TEST(MemoryQuota, WhoHasAskedInVainDoesNotLookForOthersAgainAtOnce) {
  MemoryQuota budget(400);
  Holder a(&budget), b(&budget), c(&budget);
  a.keep(150);
  b.keep(150);
  EXPECT_FALSE(b.makeRoom(20));
  a.keep(0);
  c.keep(220);
  b.keep(80);
  ASSERT_FALSE(b.hasRoom(20));
  int calls = 1;
  for (; !b.makeRoom(20); ++calls) ASSERT_EQ(c.asked, 0) << "it rests";
  EXPECT_EQ(calls, 65);
  EXPECT_GT(c.asked, 0);
  EXPECT_FALSE(a.makeRoom(150));
  c.keep(0);
  EXPECT_TRUE(a.makeRoom(150)) << "what there is anyway needs no search";
}

TEST(MemoryQuota, AmongManyOfAboutTheSameTheOneWithTooMuchIsFound) {
  MemoryQuota budget(39 * 70 + 127 + 10);
  std::vector<std::unique_ptr<Holder>> all;
  for (int i = 0; i < 40; ++i) {
    all.push_back(std::make_unique<Holder>(&budget));
    all.back()->keep(i == 35 ? 127 : 70);
  }
  Holder little(&budget);
  little.keep(20);
  EXPECT_EQ(all[35]->kept(), 117u);
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(all[i]->kept(), i == 35 ? 117u : 70u) << "no more than an equal part";
  all[35]->step = 60;
  Holder asking(&budget);
  EXPECT_TRUE(asking.makeRoom(50, true))
      << "one has twice as much, though none of those looked at first";
  EXPECT_EQ(all[35]->kept(), 57u);
}

TEST(MemoryQuota, EqualOnesDoNotTakeFromEachOther) {
  MemoryQuota budget(400);
  std::vector<std::unique_ptr<Holder>> all;
  for (int i = 0; i < 40; ++i) all.push_back(std::make_unique<Holder>(&budget));
  int refused = 0;
  for (int round = 0; round < 10; ++round) {
    for (auto& holder : all) {
      if (holder->kept() > 0) continue;
      if (holder->makeRoom(10)) {
        holder->keep(10);
      } else {
        ++refused;
      }
    }
  }
  EXPECT_EQ(refused, 100);
  EXPECT_EQ(budget.taken(), 0u);
}

// With few quota users, which are all compared, and with many.
TEST(BudgetProperty, TheSumIsRightAndWithinTheLimit) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const size_t most = seed % 2 == 0 ? 12 : 200;
    MemoryQuota budget(most * 80);
    std::vector<std::unique_ptr<Holder>> all;
    for (int step = 0; step < 3000; ++step) {
      if (all.size() < most && random.chance(most == 12 ? 0.05 : 0.5))
        all.push_back(std::make_unique<Holder>(&budget));
      if (all.empty()) continue;
      size_t at = random.below(all.size());
      Holder& holder = *all[at];
      size_t share = budget.limit() / all.size();
      std::vector<size_t> before;
      for (auto& h : all) before.push_back(h->kept());
      holder.keep(random.below(400));
      size_t sum = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        sum += all[i]->kept();
        if (i != at && before[i] < share) {
          ASSERT_EQ(all[i]->kept(), before[i]) << "it keeps no more than its part";
        }
      }
      ASSERT_EQ(budget.used(), sum);
      ASSERT_LE(sum, budget.limit());
      if (random.chance(0.2 / static_cast<double>(most)))
        all.erase(all.begin() + static_cast<ptrdiff_t>(at));
    }
  }
}

}  // namespace
}  // namespace braid::budget_test
