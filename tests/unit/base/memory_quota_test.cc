#include "base/memory_quota.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/random.h"

namespace braid::memory_quota_test {
namespace {

/// A quota user that frees `step` at a time, down to `fixed`.
struct Holder final : QuotaUser {
  explicit Holder(MemoryQuota* quota) : QuotaUser(quota, Reclaimable::kYes) {}

  using QuotaUser::hasRoom;
  using QuotaUser::makeRoom;
  using QuotaUser::Reserve;
  using QuotaUser::setUsed;
  void reclaim() override {
    ++asked;
    if (used() > fixed) setUsed(std::max(fixed, used() - std::min(used(), step)));
  }

  size_t step = 10;
  size_t fixed = 0;
  int asked = 0;
};

TEST(MemoryQuota, WithoutOneThereIsNoBound) {
  Holder a(nullptr);
  EXPECT_TRUE(a.hasRoom(SIZE_MAX));
  EXPECT_TRUE(a.makeRoom(SIZE_MAX));
  a.setUsed(1000);
  EXPECT_EQ(a.used(), 1000u);
  EXPECT_EQ(a.asked, 0);
}

TEST(MemoryQuota, OneTakesAllAsLongAsNobodyElseWantsIt) {
  MemoryQuota quota(100);
  Holder a(&quota), b(&quota);
  a.setUsed(100);
  EXPECT_EQ(quota.used(), 100u);
  EXPECT_EQ(a.asked + b.asked, 0);
}

TEST(MemoryQuota, WhoKeepsMostGivesBack) {
  MemoryQuota quota(100);
  Holder a(&quota), b(&quota), c(&quota);
  a.setUsed(60);
  b.setUsed(40);
  c.setUsed(15);
  EXPECT_EQ(a.used(), 40u) << "two steps";
  EXPECT_EQ(b.used(), 40u);
  EXPECT_EQ(c.used(), 15u);
  EXPECT_EQ(quota.reclaims(), 2u);
  b.setUsed(60);
  EXPECT_EQ(b.used(), 40u) << "the one that wanted more keeps most itself";
  EXPECT_EQ(a.used(), 40u);
}

TEST(MemoryQuota, WhoEndsGivesAllBack) {
  MemoryQuota quota(100);
  {
    Holder a(&quota);
    a.setUsed(70);
  }
  EXPECT_EQ(quota.used(), 0u);
  Holder b(&quota);
  b.setUsed(100);
  EXPECT_EQ(b.asked, 0);
}

TEST(MemoryQuota, WhatCannotBeGivenBackEndsTheSearch) {
  MemoryQuota quota(100);
  Holder a(&quota), b(&quota);
  a.fixed = 90;
  a.setUsed(90);
  b.setUsed(20);
  EXPECT_EQ(quota.used(), 110u);
  EXPECT_EQ(a.asked, 1);
  EXPECT_FALSE(b.hasRoom(1));
}

TEST(MemoryQuota, WhoCannotGiveIsNotAskedHoweverMuchItKeeps) {
  struct Firm final : QuotaUser {
    explicit Firm(MemoryQuota* quota) : QuotaUser(quota, Reclaimable::kNo) {}
    using QuotaUser::setUsed;
    void reclaim() override { ADD_FAILURE(); }
  };
  MemoryQuota quota(100);
  Firm firm(&quota);
  Holder a(&quota);
  firm.setUsed(70);
  a.setUsed(40);
  EXPECT_EQ(a.used(), 30u);
  EXPECT_EQ(firm.used(), 70u);
  firm.setUsed(101);
  EXPECT_EQ(a.used(), 0u);
  EXPECT_EQ(quota.used(), 101u) << "nobody is left who could";
}

TEST(MemoryQuota, AQuarterIsDividedAmongAll) {
  MemoryQuota quota(400);
  Holder a(&quota), b(&quota), c(&quota), d(&quota);
  for (Holder* h : {&a, &b, &c, &d}) h->fixed = SIZE_MAX;
  while (a.hasRoom(1)) a.setUsed(a.used() + 1);
  EXPECT_EQ(a.used(), 300u) << "whoever comes first";
  for (Holder* h : {&b, &c, &d}) {
    while (h->hasRoom(1)) h->setUsed(h->used() + 1);
    EXPECT_EQ(h->used(), 25u) << "its own part, whatever the others do";
  }
  EXPECT_LE(quota.used(), quota.limit());
}

TEST(MemoryQuota, RoomIsMadeByThoseWhoHaveMuchMore) {
  MemoryQuota quota(400);
  Holder a(&quota), b(&quota);
  a.setUsed(300);
  b.setUsed(60);
  EXPECT_TRUE(b.makeRoom(10));
  EXPECT_EQ(a.used(), 230u) << "until three quarters hold it";
  a.setUsed(150);
  b.setUsed(140);
  EXPECT_FALSE(b.makeRoom(20)) << "twice as much would be more";
  EXPECT_EQ(a.used(), 150u);
}

// Found by review: a peer could make each of its packets cause a walk over all peers.
TEST(MemoryQuota, WhoHasAskedInVainDoesNotLookForOthersAgainAtOnce) {
  MemoryQuota quota(400);
  Holder a(&quota), b(&quota), c(&quota);
  a.setUsed(150);
  b.setUsed(150);
  EXPECT_FALSE(b.makeRoom(20));
  a.setUsed(0);
  c.setUsed(220);
  b.setUsed(80);
  ASSERT_FALSE(b.hasRoom(20));
  int calls = 1;
  for (; !b.makeRoom(20); ++calls) ASSERT_EQ(c.asked, 0) << "it rests";
  EXPECT_EQ(calls, 65);
  EXPECT_GT(c.asked, 0);
  EXPECT_FALSE(a.makeRoom(150));
  c.setUsed(0);
  EXPECT_TRUE(a.makeRoom(150)) << "what there is anyway needs no search";
}

TEST(MemoryQuota, AmongManyOfAboutTheSameTheOneWithTooMuchIsFound) {
  MemoryQuota quota(39 * 70 + 127 + 10);
  std::vector<std::unique_ptr<Holder>> all;
  for (int i = 0; i < 40; ++i) {
    all.push_back(std::make_unique<Holder>(&quota));
    all.back()->setUsed(i == 35 ? 127 : 70);
  }
  Holder little(&quota);
  little.setUsed(20);
  EXPECT_EQ(all[35]->used(), 117u);
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(all[i]->used(), i == 35 ? 117u : 70u) << "no more than an equal part";
  all[35]->step = 60;
  Holder asking(&quota);
  EXPECT_TRUE(asking.makeRoom(50, Holder::Reserve::kAll))
      << "one has twice as much, though none of those looked at first";
  EXPECT_EQ(all[35]->used(), 57u);
}

TEST(MemoryQuota, EqualOnesDoNotTakeFromEachOther) {
  MemoryQuota quota(400);
  std::vector<std::unique_ptr<Holder>> all;
  for (int i = 0; i < 40; ++i) all.push_back(std::make_unique<Holder>(&quota));
  int refused = 0;
  for (int round = 0; round < 10; ++round) {
    for (auto& holder : all) {
      if (holder->used() > 0) continue;
      if (holder->makeRoom(10)) {
        holder->setUsed(10);
      } else {
        ++refused;
      }
    }
  }
  EXPECT_EQ(refused, 100);
  EXPECT_EQ(quota.reclaims(), 0u);
}

// With few quota users, which are all compared, and with many.
TEST(MemoryQuotaProperty, TheSumIsRightAndWithinTheLimit) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const size_t most = seed % 2 == 0 ? 12 : 200;
    MemoryQuota quota(most * 80);
    std::vector<std::unique_ptr<Holder>> all;
    for (int step = 0; step < 3000; ++step) {
      if (all.size() < most && random.chance(most == 12 ? 0.05 : 0.5))
        all.push_back(std::make_unique<Holder>(&quota));
      if (all.empty()) continue;
      size_t at = random.below(all.size());
      Holder& holder = *all[at];
      size_t share = quota.limit() / all.size();
      std::vector<size_t> before;
      for (auto& h : all) before.push_back(h->used());
      holder.setUsed(random.below(400));
      size_t sum = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        sum += all[i]->used();
        if (i != at && before[i] < share) {
          ASSERT_EQ(all[i]->used(), before[i]) << "it keeps no more than its part";
        }
      }
      ASSERT_EQ(quota.used(), sum);
      ASSERT_LE(sum, quota.limit());
      if (random.chance(0.2 / static_cast<double>(most)))
        all.erase(all.begin() + static_cast<ptrdiff_t>(at));
    }
  }
}

}  // namespace
}  // namespace braid::memory_quota_test
