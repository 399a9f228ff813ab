#include <gtest/gtest.h>

#include "tunnel/lane/flow_queue.h"
#include "tunnel/subflow/subflow.h"

namespace braid {
namespace {

constexpr Duration kRtt = 40ms;

struct Owner final : SubflowOwner {
  struct Loss {
    uint8_t subflow;
    uint64_t pn;
    double recentRate;
    Time at;
  };
  std::vector<Loss> losses;
  void onControlFate(Subflow&, uint64_t, bool) override {}
  void onPacketLost(const Subflow& s, uint64_t pn, double recentRate, Time now) override {
    losses.push_back({s.id(), pn, recentRate, now});
  }
  void onStateChange(Subflow&) override {}
  void onAddressChange(Subflow&) override {}
};

/// An active subflow that has sent one PING.
struct SubflowProtectTest : testing::Test {
  PacketPool pool{1500, 4000};
  Flow flow, other;  // of no class, and of class 2
  SubflowOptions options;
  DataLedger ledger{3s};
  ControllerGroup group;
  Owner owner;
  Random random{3};
  Time now = Time{} + 1s;
  Route home{1, {}, *Endpoint::parse("192.0.2.1:4433")};
  std::unique_ptr<Subflow> s;

  void SetUp() override {
    other.recoveryClass = 2;
    s = std::make_unique<Subflow>(3, "wifi", home, true, options, owner, ledger, group, random, now);
    auto frame = s->takePathFrame(now);
    now += kRtt;
    s->onPathResponse(frame->challenge->token, now);
    ASSERT_TRUE(s->usable());
    ping();
    now += kRtt;
    ack(0);
  }
  Datum* make(Flow& f) {
    return ledger.create(f, f.recoveryClass, f.nextDsn++, true, pool.copy(std::array<uint8_t, 1>{}), now);
  }
  uint64_t carry(std::initializer_list<Datum*> data, SentPacket::Role role = SentPacket::Role::kOrdinary) {
    uint64_t pn = s->nextPacketNumber();
    SentPacket& p = s->onSent(1200, true, now);
    p.role = role;
    for (Datum* d : data) {
      p.data[p.dataCount++] = d;
      if (role == SentPacket::Role::kCopy) {
        ledger.onCopied(d);
      } else {
        ledger.onSent(d, s->id(), pn);
      }
    }
    return pn;
  }
  uint64_t send(Flow& f) { return carry({make(f)}); }
  uint64_t send() { return send(flow); }
  uint64_t ping() {
    s->onSent(40, true, now);
    return s->nextPacketNumber() - 1;
  }
  void ack(uint64_t first, uint64_t last) {
    AckFrame frame;
    frame.subflow = s->id();
    frame.count = 1;
    frame.ranges[0] = {first, last};
    s->onAck(frame, true, now);
  }
  void ack(uint64_t pn) { ack(pn, pn); }
  Datum& datum(uint64_t pn, size_t i = 0) { return *s->sentPacket(pn).data[i]; }
  /// It is lost, by packet threshold.
  void lose(uint64_t pn) {
    uint64_t first = ping();
    ping();
    ping();
    now += kRtt;
    ack(std::max(first, pn + 1), first + 2);
  }
  uint64_t none() { return s->nextPacketNumber(); }
  RecoveryPath path(uint8_t recoveryClass = 0, size_t most = 128) {
    RecoveryPath p = s->recoveryPath(recoveryClass, now);
    s->countUnacked(p, recoveryClass, most);
    return p;
  }
};

// ---- which packets

TEST_F(SubflowProtectTest, NothingBeforeDataIsInFlight) {
  EXPECT_EQ(s->firstUncopied(0), none());
  EXPECT_EQ(s->firstUncoded(0), none());
  EXPECT_EQ(s->newestUnacked(0), none());
  ping();
  EXPECT_EQ(s->firstUncopied(0), none());
  EXPECT_EQ(s->newestUnacked(0), none());
}

TEST_F(SubflowProtectTest, TheOldestInFlightIsFirst) {
  uint64_t a = send();
  uint64_t b = send();
  EXPECT_EQ(s->firstUncopied(0), a);
  EXPECT_EQ(s->firstUncoded(0), a);
  EXPECT_EQ(s->firstUncoded(0, a + 1), b);
  EXPECT_EQ(s->firstUncoded(0, b + 1), none());
  EXPECT_EQ(s->firstUncoded(0), a) << "a look ahead does not move the cursor";
  EXPECT_EQ(s->newestUnacked(0), b);
}

TEST_F(SubflowProtectTest, AcknowledgedPacketsNeedNothing) {
  uint64_t a = send();
  uint64_t b = send();
  ack(a);
  EXPECT_EQ(s->firstUncopied(0), b);
  EXPECT_EQ(s->firstUncoded(0), b);
  ack(b);
  EXPECT_EQ(s->firstUncopied(0), none());
  EXPECT_EQ(s->newestUnacked(0), none());
}

TEST_F(SubflowProtectTest, WhatIsCopiedIsNeitherCopiedNorCodedAgain) {
  uint64_t a = send();
  uint64_t b = send();
  datum(a).copied = true;
  EXPECT_EQ(s->firstUncopied(0), b);
  EXPECT_EQ(s->firstUncoded(0), b);
  EXPECT_FALSE(s->isCodable(a));
  EXPECT_EQ(s->newestUnacked(0), b);
  datum(b).copied = true;
  EXPECT_EQ(s->newestUnacked(0), b) << "a probe copies it all the same";
}

TEST_F(SubflowProtectTest, WhatIsCodedMayBeCopied) {
  uint64_t a = send();
  uint64_t b = send();
  datum(a).coded = true;
  EXPECT_EQ(s->firstUncoded(0), b);
  EXPECT_EQ(s->firstUncopied(0), a);
}

TEST_F(SubflowProtectTest, CopiesAndParitiesAreNotProtected) {
  uint64_t a = send();
  datum(a).copied = true;
  uint64_t copy = carry({&datum(a)}, SentPacket::Role::kCopy);
  carry({}, SentPacket::Role::kParity);
  EXPECT_EQ(s->firstUncopied(0), none());
  EXPECT_EQ(s->firstUncoded(0), none());
  EXPECT_FALSE(s->isCodable(copy));
  EXPECT_EQ(s->newestUnacked(0), a);
}

TEST_F(SubflowProtectTest, LostPacketsAreRepairedNotProtected) {
  uint64_t a = send();
  lose(a);
  ASSERT_NE(ledger.nextRepair(now), nullptr);
  EXPECT_EQ(s->firstUncopied(0), none());
  EXPECT_EQ(s->newestUnacked(0), none());
}

TEST_F(SubflowProtectTest, MovedPacketsAreNot) {
  uint64_t a = send();
  s->moveData(const_cast<SentPacket&>(s->sentPacket(a)), now);
  EXPECT_EQ(s->firstUncopied(0), none());
  EXPECT_EQ(s->firstUncoded(0), none());
  EXPECT_FALSE(s->isCodable(a));
}

TEST_F(SubflowProtectTest, RecoveredDataNeedsNothing) {
  uint64_t a = send();
  ASSERT_TRUE(s->onRecovered(a));
  EXPECT_EQ(s->firstUncopied(0), none());
  EXPECT_EQ(s->newestUnacked(0), none());
}

TEST_F(SubflowProtectTest, ADatagramIsCodedWholeOrNotAtAll) {
  uint64_t a = carry({make(flow), make(flow)});
  EXPECT_TRUE(s->isCodable(a));
  ledger.onRecovered(&datum(a));
  EXPECT_FALSE(s->isCodable(a)) << "its symbol can not be made any more";
  EXPECT_EQ(s->firstUncoded(0), none());
  EXPECT_EQ(s->firstUncopied(0), a) << "what is left of it can be copied";
}

TEST_F(SubflowProtectTest, SixPacketsOfOneDatagram) {
  uint64_t a = carry({make(flow), make(flow), make(flow), make(flow), make(flow), make(flow)});
  EXPECT_TRUE(s->isCodable(a));
  EXPECT_TRUE(s->isDataMissing(a));
  for (size_t i = 0; i < 5; ++i) ledger.onRecovered(&datum(a, i));
  EXPECT_TRUE(s->isDataMissing(a));
  ledger.onRecovered(&datum(a, 5));
  EXPECT_FALSE(s->isDataMissing(a));
}

TEST_F(SubflowProtectTest, EachClassSeesItsOwn) {
  uint64_t a = send();
  uint64_t b = send(other);
  uint64_t both = carry({make(flow), make(other)});
  EXPECT_EQ(s->firstUncopied(0), a);
  EXPECT_EQ(s->firstUncopied(2), b);
  EXPECT_EQ(s->firstUncoded(2, b + 1), both);
  EXPECT_EQ(s->firstUncopied(1), none());
  EXPECT_EQ(s->newestUnacked(0), both);
  EXPECT_EQ(s->newestUnacked(1), none());
  EXPECT_EQ(path(0).uncoded, 2u);
  EXPECT_EQ(path(2).uncoded, 2u);
}

TEST_F(SubflowProtectTest, NumbersThatAreForgottenAreNotMissing) {
  uint64_t a = send();
  ack(a);
  EXPECT_FALSE(s->isDataMissing(a));
  EXPECT_FALSE(s->isCodable(a));
  EXPECT_FALSE(s->isDataMissing(none() + 100));
  EXPECT_FALSE(s->onRecovered(none() + 100));
}

// ---- what a policy sees

TEST_F(SubflowProtectTest, APathTellsWhatIsUnprotected) {
  Time first = now;
  uint64_t a = send();
  now += 1ms;
  uint64_t b = send();
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
  datum(a).coded = true;
  EXPECT_EQ(path().oldestUncoded, first + 1ms);
  datum(a).copied = datum(b).copied = true;
  EXPECT_EQ(path().oldestUncoded, first + 2ms);
  EXPECT_EQ(path().uncoded, 1u);
  EXPECT_EQ(path(0, 2).uncoded, 1u);
}

TEST_F(SubflowProtectTest, AGlanceAtAPathCountsNothing) {
  send();
  RecoveryPath p = s->recoveryPath(0, now);
  EXPECT_TRUE(p.usable && p.open);
  EXPECT_LE(p.opensAt, now);
  EXPECT_EQ(p.uncopied + p.uncoded + p.unacked, 0u);
}

TEST_F(SubflowProtectTest, APathThatIsNotOpenTellsWhenItIs) {
  while (s->isOpen(now)) send();
  RecoveryPath full = s->recoveryPath(0, now);
  EXPECT_FALSE(full.open);
  EXPECT_EQ(full.opensAt, s->opensAt());
}

TEST_F(SubflowProtectTest, EachClassHasItsLastData) {
  EXPECT_EQ(path(0).lastSent, Time::min());
  s->noteData(0, now);
  now += 1ms;
  s->noteData(2, now);
  EXPECT_EQ(path(0).lastSent, now - 1ms);
  EXPECT_EQ(path(1).lastSent, Time::min());
  EXPECT_EQ(path(2).lastSent, now);
}

TEST_F(SubflowProtectTest, UnprotectedPacketsAreCountedUpToTheMost) {
  for (int i = 0; i < 9; ++i) send();
  EXPECT_EQ(path(0, 5).uncoded, 5u);
  EXPECT_EQ(path(0, 9).uncoded, 9u);
}

// Found by reading: the search for the newest packet ends after 64, and nothing was protected behind that.
TEST_F(SubflowProtectTest, ManyProtectionPacketsDoNotHideTheDataBelow) {
  uint64_t a = send();
  for (int i = 0; i < 100; ++i) carry({}, SentPacket::Role::kParity);
  EXPECT_EQ(s->newestUnacked(0), none()) << "too far back for a probe";
  EXPECT_EQ(s->firstUncopied(0), a);
  EXPECT_EQ(path().uncopied, 1u);
  EXPECT_EQ(path().uncoded, 1u);
}

TEST_F(SubflowProtectTest, AllCopiedAndUnackedIsStillUnacked) {
  uint64_t a = send();
  datum(a).copied = true;
  EXPECT_EQ(path().uncopied, 0u);
  EXPECT_EQ(path().uncoded, 0u);
  EXPECT_EQ(path().unacked, 1u);
  EXPECT_EQ(path().newestSent, now);
}

TEST_F(SubflowProtectTest, LossesShowInThePath) {
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

TEST_F(SubflowProtectTest, ABurstShowsInThePath) {
  uint64_t a = send();
  send();
  send();
  lose(a + 2);
  EXPECT_EQ(s->status(now).lostPackets, 3u);
  EXPECT_EQ(path().burst, 3);
}

// ---- what became of it

TEST_F(SubflowProtectTest, ProtectionIsUselessWhenThePacketArrives) {
  uint64_t a = send();
  uint64_t b = send();
  datum(a).copied = true;
  datum(b).coded = true;
  uint64_t c = send();
  now += kRtt;
  ack(a, c);
  EXPECT_EQ(s->status(now).useless, 2u);
  EXPECT_EQ(s->status(now).recovered, 0u);
}

TEST_F(SubflowProtectTest, ProtectionIsUsefulWhenThePacketIsLostAndItsDataIsThere) {
  for (bool coded : {false, true}) {
    SetUp();
    uint64_t a = send();
    (coded ? datum(a).coded : datum(a).copied) = true;
    if (coded) {
      EXPECT_TRUE(s->onRecovered(a));
    } else {
      ledger.onDelivered(&datum(a), false);
    }
    lose(a);
    EXPECT_EQ(s->status(now).recovered, 1u);
    EXPECT_EQ(s->status(now).useless, 0u);
    EXPECT_EQ(s->status(now).decoded, coded ? 1u : 0u);
    EXPECT_EQ(s->status(now).lostPackets, 1u) << "the loss counts all the same";
    EXPECT_EQ(path().lost, 1u);
    EXPECT_EQ(ledger.nextRepair(now), nullptr);
  }
}

TEST_F(SubflowProtectTest, ProtectionThatCameTooLateIsNeither) {
  uint64_t a = send();
  datum(a).copied = true;
  lose(a);
  EXPECT_EQ(s->status(now).recovered, 0u);
  EXPECT_EQ(s->status(now).useless, 0u);
}

TEST_F(SubflowProtectTest, WhatIsRecoveredTwiceIsNewsOnce) {
  uint64_t a = send();
  EXPECT_TRUE(s->onRecovered(a));
  EXPECT_FALSE(s->onRecovered(a));
  EXPECT_EQ(s->status(now).decoded, 1u);
}

TEST_F(SubflowProtectTest, ALateWordOfRecoveryIsNoNews) {
  uint64_t a = send();
  send();
  ack(a);
  EXPECT_FALSE(s->onRecovered(a));
  EXPECT_EQ(s->status(now).decoded, 0u);
}

TEST_F(SubflowProtectTest, ARecoveredPacketStaysInFlightUntilItsFateIsKnown) {
  uint64_t a = send();
  uint64_t before = path().inFlight;
  s->onRecovered(a);
  EXPECT_EQ(path().inFlight, before);
  ack(a);
  EXPECT_EQ(path().inFlight, before - 1200);
  EXPECT_EQ(path().lost, 0u);
}

TEST_F(SubflowProtectTest, CopiesAndParitiesAreCounted) {
  s->countProtection(SentPacket::Role::kCopy, 100);
  s->countProtection(SentPacket::Role::kParity, 1000);
  s->countTail(10);
  s->countProtected();
  SubflowStatus status = s->status(now);
  EXPECT_EQ(status.copies, 1u);
  EXPECT_EQ(status.parities, 1u);
  EXPECT_EQ(status.protectionBytes, 1110u);
  EXPECT_EQ(status.protectedPackets, 1u);
}

TEST_F(SubflowProtectTest, ALossIsTold) {
  uint64_t a = send();
  lose(a);
  ASSERT_EQ(owner.losses.size(), 1u);
  EXPECT_EQ(owner.losses[0].pn, a);
  EXPECT_EQ(owner.losses[0].subflow, 3);
  EXPECT_EQ(owner.losses[0].recentRate, path().recentRate);
  EXPECT_EQ(owner.losses[0].at, now);
}

// ---- timeouts

TEST_F(SubflowProtectTest, ATimeoutCountsOnlyWhenDataIsMissing) {
  for (bool recovered : {false, true}) {
    SetUp();
    uint64_t a = send();
    if (recovered) s->onRecovered(a);
    now += 1s;
    s->onTimer(now);
    EXPECT_TRUE(s->mustSend()) << "it is probed either way";
    EXPECT_EQ(s->status(now).timeouts, recovered ? 0u : 1u);
  }
}

TEST_F(SubflowProtectTest, ALeastRtoPutsTheTimeoutOff) {
  options.minRto = 200ms;
  SetUp();
  Time sent = now;
  send();
  EXPECT_GE(s->nextDeadline(), sent + kRtt + 200ms);
  options.minRto = {};
  SetUp();
  sent = now;
  send();
  EXPECT_LT(s->nextDeadline(), sent + kRtt + 200ms);
}

TEST_F(SubflowProtectTest, ALossyPathIsExpectedToDeliverLater) {
  Duration clean = s->expectedDelay();
  EXPECT_EQ(clean, kRtt / 2);
  lose(send());
  EXPECT_GT(s->expectedDelay(), clean);
}

}  // namespace
}  // namespace braid
