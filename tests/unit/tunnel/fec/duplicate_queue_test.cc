#include "tunnel/fec/cursors.h"

#include "tests/unit/tunnel/fec/protection_bench.h"

namespace braid::duplicate_queue_test {
namespace {

struct DuplicateQueueTest : ProtectionBench {
  RecoveryPolicies policies;
  std::optional<DuplicateQueue> second;

  void SetUp() override { start("redundant"); }
  void start(const char* policy) {
    second.reset();
    ProtectionBench::SetUp();
    protectOptions.recovery = policy;
    policies.set(protectOptions, options.recoveryOptions, random);
    second.emplace(*context, policies);
  }
  void TearDown() override { second.reset(); }
  UnitRef sendOn(Subflow& s) {
    UnitRef d = make();
    send(s, {d});
    second->add(d);
    return d;
  }
};

TEST_F(DuplicateQueueTest, ACopyGoesOnAnotherPath) {
  Subflow& a = open(0);
  Subflow& b = open(1);
  UnitRef d = sendOn(a);
  PacketNumber pn = b.sender().sent().next();
  ASSERT_TRUE(second->poll(out, now));
  EXPECT_EQ(b.sender().sent().at(pn).data[0], d);
  EXPECT_EQ(b.sender().sent().at(pn).role, SentPacket::Role::kCopy);
  EXPECT_EQ(d->protection, UnitProtection::kCopied);
  ASSERT_EQ(traced.size(), 1u);
  EXPECT_EQ(traced[0].kind, TraceEvent::Kind::kCopySent);
  EXPECT_EQ(traced[0].on, 1_subflow);
  EXPECT_EQ(traced[0].onPn, pn);
  EXPECT_FALSE(second->poll(out, now));
  EXPECT_EQ(a.status(now).protectedPackets, 1u);
  EXPECT_EQ(b.status(now).copies, 1u);
}

TEST_F(DuplicateQueueTest, OnItsOwnPathWhenThePolicySaysSo) {
  start("proactive");
  Subflow& a = open(0);
  Subflow& b = open(1);
  sendOn(a);
  PacketNumber idle = b.sender().sent().next();
  ASSERT_TRUE(second->poll(out, now));
  EXPECT_EQ(b.sender().sent().next(), idle);
}

TEST_F(DuplicateQueueTest, WhatCameOrIsLostMeanwhileIsLeftOut) {
  Subflow& a = open(0);
  open(1);
  sendOn(a);
  UnitRef lost = sendOn(a);
  ack(a, lost->pn - 1, lost->pn - 1);
  lose(a, lost->pn);
  ASSERT_TRUE(lost->isLost());
  EXPECT_FALSE(second->poll(out, now));
  EXPECT_TRUE(second->empty());
}

TEST_F(DuplicateQueueTest, NobodyWaitsForOneWithoutAPath) {
  Subflow& a = open(0);
  sendOn(a);
  EXPECT_FALSE(second->poll(out, now));
  EXPECT_TRUE(second->empty()) << "there is no other path";
}

TEST_F(DuplicateQueueTest, ItWaitsForItsPathToOpen) {
  Subflow& a = open(0);
  Subflow& b = open(1);
  sendOn(a);
  PacketNumber first = b.sender().sent().next();
  while (b.admission().isOpen(now)) send(b, {make(1000)});
  EXPECT_FALSE(second->poll(out, now));
  EXPECT_FALSE(second->empty());
  now += kRtt;
  ack(b, first, b.sender().sent().next() - 1);
  now = std::max(now, b.admission().opensAt());
  EXPECT_TRUE(second->poll(out, now));
}

TEST_F(DuplicateQueueTest, BeyondTheBoundTheOldestIsDropped) {
  Subflow& a = open(0);
  open(1);
  UnitRef oldest = sendOn(a);
  uint32_t refs = oldest->refs;
  for (size_t i = 0; i < DuplicateQueue::kMost; ++i) sendOn(a);
  EXPECT_EQ(oldest->refs, refs - 1);
}

}  // namespace
}  // namespace braid::duplicate_queue_test
