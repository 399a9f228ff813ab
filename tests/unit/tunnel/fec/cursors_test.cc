#include "tunnel/fec/cursors.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/subflow/carrying_subflow.h"

namespace braid::cursors_test {
namespace {

struct ProtectionCursorsTest : CarryingSubflow {
  ProtectionCursors marks;

  void SetUp() override {
    CarryingSubflow::SetUp();
    marks = {};
  }
  const SentPackets& sent() { return s->sender().sent(); }
  PacketNumber none() { return sent().next(); }
  PacketNumber firstUncopied(uint8_t recoveryClass) {
    return marks.firstUncopied(sent(), recoveryClass);
  }
  PacketNumber firstUncoded(uint8_t recoveryClass, PacketNumber from = {}) {
    return marks.firstUncoded(sent(), recoveryClass, from);
  }
  PacketNumber newestUnacked(uint8_t recoveryClass) {
    return ProtectionCursors::newestUnacked(sent(), recoveryClass);
  }
  bool isCodable(PacketNumber pn) { return ProtectionCursors::isCodable(sent(), pn); }
  RecoveryPath path(uint8_t recoveryClass = 0, size_t most = 128) {
    RecoveryPath p = recoveryPath(*s, marks.lastSent(recoveryClass), now);
    marks.countUnacked(sent(), p, recoveryClass, most);
    return p;
  }
};

// ---- which packets

TEST_F(ProtectionCursorsTest, NothingBeforeDataIsInFlight) {
  EXPECT_EQ(firstUncopied(0), none());
  EXPECT_EQ(firstUncoded(0), none());
  EXPECT_EQ(newestUnacked(0), none());
  ping();
  EXPECT_EQ(firstUncopied(0), none());
  EXPECT_EQ(newestUnacked(0), none());
}

TEST_F(ProtectionCursorsTest, TheOldestInFlightIsFirst) {
  PacketNumber a = send();
  PacketNumber b = send();
  EXPECT_EQ(firstUncopied(0), a);
  EXPECT_EQ(firstUncoded(0), a);
  EXPECT_EQ(firstUncoded(0, a + 1), b);
  EXPECT_EQ(firstUncoded(0, b + 1), none());
  EXPECT_EQ(firstUncoded(0), a) << "a look ahead does not move the cursor";
  EXPECT_EQ(newestUnacked(0), b);
}

TEST_F(ProtectionCursorsTest, ASearchEndsWhereItIsTold) {
  PacketNumber a = send();
  send();
  PacketNumber c = send();
  EXPECT_EQ(marks.firstUncoded(sent(), 0, a + 1, a + 2), a + 1);
  dataTracker.forbidCopy(unit(a + 1));
  EXPECT_EQ(marks.firstUncoded(sent(), 0, a + 1, a + 2), none());
  EXPECT_EQ(marks.firstUncoded(sent(), 0, a + 1, c + 1), c);
  EXPECT_EQ(firstUncoded(0), a);
}

TEST_F(ProtectionCursorsTest, AcknowledgedPacketsNeedNothing) {
  PacketNumber a = send();
  PacketNumber b = send();
  ack(a);
  EXPECT_EQ(firstUncopied(0), b);
  EXPECT_EQ(firstUncoded(0), b);
  ack(b);
  EXPECT_EQ(firstUncopied(0), none());
  EXPECT_EQ(newestUnacked(0), none());
}

TEST_F(ProtectionCursorsTest, WhatIsCopiedIsNeitherCopiedNorCodedAgain) {
  PacketNumber a = send();
  PacketNumber b = send();
  dataTracker.forbidCopy(unit(a));
  EXPECT_EQ(firstUncopied(0), b);
  EXPECT_EQ(firstUncoded(0), b);
  EXPECT_FALSE(isCodable(a));
  EXPECT_EQ(newestUnacked(0), b);
  EXPECT_EQ(path().uncoded, 1u);
  dataTracker.forbidCopy(unit(b));
  EXPECT_EQ(newestUnacked(0), b) << "a probe copies it all the same";
  EXPECT_EQ(path().uncopied + path().uncoded, 0u);
}

TEST_F(ProtectionCursorsTest, WhatIsCodedMayBeCopied) {
  PacketNumber a = send();
  PacketNumber b = send();
  dataTracker.forbidCoding(unit(a));
  EXPECT_EQ(firstUncoded(0), b);
  EXPECT_EQ(firstUncopied(0), a);
}

TEST_F(ProtectionCursorsTest, CopiesAndParitiesAreNotProtected) {
  PacketNumber a = send();
  dataTracker.forbidCopy(unit(a));
  PacketNumber copy = carry({unit(a)}, SentPacket::Role::kCopy);
  carry({}, SentPacket::Role::kParity);
  EXPECT_EQ(firstUncopied(0), none());
  EXPECT_EQ(firstUncoded(0), none());
  EXPECT_FALSE(isCodable(copy));
  EXPECT_EQ(newestUnacked(0), a);
}

TEST_F(ProtectionCursorsTest, LostPacketsAreRepairedNotProtected) {
  PacketNumber a = send();
  lose(a);
  ASSERT_NE(dataTracker.nextRepair(now), nullptr);
  EXPECT_EQ(firstUncopied(0), none());
  EXPECT_EQ(newestUnacked(0), none());
}

TEST_F(ProtectionCursorsTest, MovedPacketsAreNot) {
  PacketNumber a = send();
  s->sender().moveData(const_cast<SentPacket&>(sent().at(a)), now);
  EXPECT_EQ(firstUncopied(0), none());
  EXPECT_EQ(firstUncoded(0), none());
  EXPECT_FALSE(isCodable(a));
}

TEST_F(ProtectionCursorsTest, RecoveredDataNeedsNothing) {
  PacketNumber a = send();
  ASSERT_TRUE(s->sender().onRecovered(a));
  EXPECT_EQ(firstUncopied(0), none());
  EXPECT_EQ(newestUnacked(0), none());
}

TEST_F(ProtectionCursorsTest, ADatagramIsCodedWholeOrNotAtAll) {
  PacketNumber a = carry({make(flow), make(flow)});
  EXPECT_TRUE(isCodable(a));
  dataTracker.onRecovered(unit(a));
  EXPECT_FALSE(isCodable(a)) << "its symbol can not be made any more";
  EXPECT_EQ(firstUncoded(0), none());
  EXPECT_EQ(firstUncopied(0), a) << "what is left of it can be copied";
}

TEST_F(ProtectionCursorsTest, SixPacketsOfOneDatagram) {
  PacketNumber a = carry({make(flow), make(flow), make(flow), make(flow), make(flow), make(flow)});
  EXPECT_TRUE(isCodable(a));
  EXPECT_TRUE(s->sender().flight().isDataMissing(a));
  for (size_t i = 0; i < 5; ++i) dataTracker.onRecovered(unit(a, i));
  EXPECT_TRUE(s->sender().flight().isDataMissing(a));
  dataTracker.onRecovered(unit(a, 5));
  EXPECT_FALSE(s->sender().flight().isDataMissing(a));
}

TEST_F(ProtectionCursorsTest, EachClassSeesItsOwn) {
  PacketNumber a = send();
  PacketNumber b = send(other);
  PacketNumber both = carry({make(flow), make(other)});
  EXPECT_EQ(firstUncopied(0), a);
  EXPECT_EQ(firstUncopied(2), b);
  EXPECT_EQ(firstUncoded(2, b + 1), both);
  EXPECT_EQ(firstUncopied(1), none());
  EXPECT_EQ(newestUnacked(0), both);
  EXPECT_EQ(newestUnacked(1), none());
  EXPECT_EQ(path(0).uncoded, 2u);
  EXPECT_EQ(path(2).uncoded, 2u);
}

TEST_F(ProtectionCursorsTest, NumbersThatAreForgottenAreNotMissing) {
  PacketNumber a = send();
  ack(a);
  EXPECT_FALSE(s->sender().flight().isDataMissing(a));
  EXPECT_FALSE(isCodable(a));
  EXPECT_FALSE(s->sender().flight().isDataMissing(none() + 100));
  EXPECT_FALSE(s->sender().onRecovered(none() + 100));
}

// ---- what a policy sees

TEST_F(ProtectionCursorsTest, APathTellsWhatIsUnprotected) {
  Time first = now;
  PacketNumber a = send();
  now += 1ms;
  PacketNumber b = send();
  now += 1ms;
  send();
  RecoveryPath p = path();
  EXPECT_TRUE(p.usable && p.open);
  EXPECT_EQ(p.srtt, kRtt);
  EXPECT_EQ(p.inFlight, 3600u);
  EXPECT_EQ(p.sent, 4u);
  EXPECT_EQ(p.uncoded, 3u);
  EXPECT_EQ(p.uncopied, 1u);
  EXPECT_EQ(p.unacked, 1u);
  EXPECT_EQ(p.oldestUncoded, first);
  EXPECT_EQ(p.newestSent, first + 2ms);
  dataTracker.forbidCoding(unit(a));
  EXPECT_EQ(path().oldestUncoded, first + 1ms);
  dataTracker.forbidCopy(unit(a));
  dataTracker.forbidCopy(unit(b));
  EXPECT_EQ(path().oldestUncoded, first + 2ms);
  EXPECT_EQ(path().uncoded, 1u);
  EXPECT_EQ(path(0, 2).uncoded, 1u);
}

TEST_F(ProtectionCursorsTest, AGlanceAtAPathCountsNothing) {
  send();
  RecoveryPath p = recoveryPath(*s, marks.lastSent(0), now);
  EXPECT_TRUE(p.usable && p.open);
  EXPECT_LE(p.opensAt, now);
  EXPECT_EQ(p.uncopied + p.uncoded + p.unacked, 0u);
}

TEST_F(ProtectionCursorsTest, APathThatIsNotOpenTellsWhenItIs) {
  while (s->admission().isOpen(now)) send();
  RecoveryPath full = recoveryPath(*s, marks.lastSent(0), now);
  EXPECT_FALSE(full.open);
  EXPECT_EQ(full.opensAt, s->admission().opensAt());
}

TEST_F(ProtectionCursorsTest, APathThatRestsIsNotUsable) {
  ASSERT_TRUE(path().usable);
  s->admission().setRole(PathRole::kOverflow, now);
  EXPECT_FALSE(path().usable);
  s->admission().setRole(PathRole::kNone, now);
  EXPECT_FALSE(path().usable);
}

TEST_F(ProtectionCursorsTest, EachClassHasItsLastData) {
  EXPECT_EQ(path(0).lastSent, Time::min());
  marks.noteData(0, now);
  now += 1ms;
  marks.noteData(2, now);
  EXPECT_EQ(path(0).lastSent, now - 1ms);
  EXPECT_EQ(path(1).lastSent, Time::min());
  EXPECT_EQ(path(2).lastSent, now);
}

TEST_F(ProtectionCursorsTest, UnprotectedPacketsAreCountedUpToTheMost) {
  for (int i = 0; i < 9; ++i) send();
  EXPECT_EQ(path(0, 5).uncoded, 5u);
  EXPECT_EQ(path(0, 9).uncoded, 9u);
}

// Found by code review: the search for the newest packet ended after 64 packets, and nothing behind
// that was protected.
TEST_F(ProtectionCursorsTest, ManyProtectionPacketsDoNotHideTheDataBelow) {
  PacketNumber a = send();
  for (int i = 0; i < 100; ++i) carry({}, SentPacket::Role::kParity);
  EXPECT_EQ(newestUnacked(0), none()) << "too far back for a probe";
  EXPECT_EQ(firstUncopied(0), a);
  EXPECT_EQ(path().uncopied, 1u);
  EXPECT_EQ(path().uncoded, 1u);
}

TEST_F(ProtectionCursorsTest, AllCopiedAndUnackedIsStillUnacked) {
  PacketNumber a = send();
  dataTracker.forbidCopy(unit(a));
  EXPECT_EQ(path().uncopied, 0u);
  EXPECT_EQ(path().uncoded, 0u);
  EXPECT_EQ(path().unacked, 1u);
  EXPECT_EQ(path().newestSent, now);
}

TEST_F(ProtectionCursorsTest, LossesShowInThePath) {
  lose(send());
  RecoveryPath p = path();
  EXPECT_EQ(p.lost, 1u);
  EXPECT_EQ(p.sent, 5u);
  EXPECT_EQ(p.sinceLoss, 1u);
  EXPECT_GT(p.recentRate, 0);
  EXPECT_EQ(p.lastAcked, now);
  SubflowStatus status = s->status(now);
  EXPECT_DOUBLE_EQ(status.lossRate, 0.5 * 1 / 5 + 0.5);
  EXPECT_DOUBLE_EQ(status.lossMetric, 0.5 * 1 / 5 + 0.5);
}

TEST_F(ProtectionCursorsTest, ABurstShowsInThePath) {
  PacketNumber a = send();
  send();
  send();
  lose(a + 2);
  EXPECT_EQ(s->status(now).lostPackets, 3u);
  EXPECT_EQ(path().burst, 3);
}

}  // namespace
}  // namespace braid::cursors_test
