#include "tunnel/wire/key_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/wire/hex.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid {
/// Gives a test the sealing keys, to replace them.
struct KeyScheduleAccess {
  static Aead& sealingKeys(KeySchedule& keys) { return keys.seal_; }
};
}  // namespace braid

namespace braid::key_schedule_test {
namespace {

using Bytes = std::vector<uint8_t>;
using test::fromHex;
using Role = KeySchedule::Role;

constexpr Time kStart{1s};
constexpr Duration kKeep = 300ms;

Bytes expanded(ByteView secret, std::string_view label, size_t n) {
  Bytes out(n);
  hkdfExpandLabel(secret, label, out);
  return out;
}

SessionSecrets secretsOf(AeadKind kind) {
  SessionSecrets s;
  s.aead = kind;
  std::iota(s.initiatorSecret.begin(), s.initiatorSecret.end(), uint8_t{0});
  std::iota(s.responderSecret.begin(), s.responderSecret.end(), uint8_t{100});
  s.sessionId = 1;
  return s;
}

struct Sealed {
  uint8_t bits = 0;
  PacketNumber pn{};
  Bytes header, bytes;
};

class Side {
 public:
  Side(AeadKind kind, Role role, const KeyLimits& limits)
      : keys(secretsOf(kind), role, limits, kStart) {}

  Sealed send() {
    Sealed s{keys.epochBits(), pn++, {0x40, keys.epochBits(), 9}, Bytes(50 + kTagSize)};
    Bytes plain(50, static_cast<uint8_t>(s.pn.value()));
    ByteView piece = plain;
    sealedOk = keys.seal(2_subflow, s.pn, s.header, {&piece, 1}, s.bytes.data());
    return s;
  }
  bool receive(Sealed s, Time now) {
    if (!keys.open(s.bits, 2_subflow, s.pn, s.header, s.bytes, now)) return false;
    return std::count(s.bytes.begin(), s.bytes.begin() + 50, static_cast<uint8_t>(s.pn.value())) ==
           50;
  }

  KeySchedule keys;
  PacketNumber pn{};
  bool sealedOk = true;
};

class KeyScheduleTest : public testing::TestWithParam<AeadKind> {
 protected:
  static KeyLimits limits() {
    KeyLimits l;
    l.keepPrevious = kKeep;
    l.rekeyPackets = 10;
    l.rekeyAfter = 60s;
    return l;
  }
  Side a{GetParam(), Role::kInitiator, limits()};
  Side b{GetParam(), Role::kResponder, limits()};
  Time now = kStart;

  bool aToB() { return b.receive(a.send(), now); }
  bool bToA() { return a.receive(b.send(), now); }
  void confirmBoth() {
    ASSERT_TRUE(aToB());
    ASSERT_TRUE(bToA());
  }
  // Brings both sides to the same confirmed epoch and drops the old keys.
  void settle() {
    confirmBoth();
    now += kKeep;
    a.keys.onTimer(now);
    b.keys.onTimer(now);
  }
};

INSTANTIATE_TEST_SUITE_P(Ciphers, KeyScheduleTest,
                         testing::Values(AeadKind::kAes128Gcm, AeadKind::kAes256Gcm,
                                         AeadKind::kChaCha20Poly1305),
                         [](const auto& p) {
                           std::string name = aeadName(p.param);
                           std::erase(name, '-');
                           return name;
                         });

// RFC 9001 appendix A.1: the client's initial secret gives these.
TEST(HkdfExpandLabel, rfc9001) {
  Bytes secret = fromHex("c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea");
  EXPECT_EQ(expanded(secret, "quic key", 16), fromHex("1f369613dd76d5467730efcbe3b1a22d"));
  EXPECT_EQ(expanded(secret, "quic iv", 12), fromHex("fa044b2f42a3fd3b46fb255c"));
}

// Computed by Python's hmac with the secret 00 01 .. 1f.
TEST(HkdfExpandLabel, ownLabels) {
  Bytes secret(32);
  std::iota(secret.begin(), secret.end(), uint8_t{0});
  EXPECT_EQ(expanded(secret, "braid key", 16), fromHex("ca930ffa30ae4c6442334a0732559591"));
  EXPECT_EQ(expanded(secret, "braid key", 32),
            fromHex("4e4979551ca71c4c2693048fe6c1cc20a3ff9362df261ff351eaa6b82ae77033"));
  EXPECT_EQ(expanded(secret, "braid iv", 12), fromHex("ba9302de229b507c26e2fd4d"));
  EXPECT_EQ(expanded(secret, "braid ku", 32),
            fromHex("be69fe2764dad8a42f6d30a8dd73f391a80893bc36cdab7247903b55a720c652"));
}

TEST(HkdfExpandLabel, tooLongLabelIsAnError) {
  Bytes secret(32), out(16);
  EXPECT_THROW(hkdfExpandLabel(secret, std::string(100, 'x'), out), std::runtime_error);
}

// Datagrams of epochs 0 and 1 are protected with the constants above.
TEST(KeyScheduleWire, keysFollowTheLabels) {
  KeySchedule keys(secretsOf(AeadKind::kAes128Gcm), Role::kInitiator, {}, kStart);
  KeySchedule peer(secretsOf(AeadKind::kAes128Gcm), Role::kResponder, {}, kStart);
  Bytes header{0x40}, plain(20, 7), out(20 + kTagSize);
  ByteView piece = plain;
  auto opensWith = [&](const std::string& key, const Bytes& iv) {
    Aead reference(AeadKind::kAes128Gcm, Aead::Use::kOpen, fromHex(key), iv);
    EXPECT_TRUE(keys.seal(1_subflow, 5_pn, header, {&piece, 1}, out.data()));
    Bytes copy = out;
    return reference.open(1, 5, header, copy);
  };
  EXPECT_TRUE(opensWith("ca930ffa30ae4c6442334a0732559591", fromHex("ba9302de229b507c26e2fd4d")));
  ASSERT_TRUE(peer.seal(1_subflow, 0_pn, header, {&piece, 1}, out.data()));
  ASSERT_TRUE(keys.open(0, 1_subflow, 0_pn, header, out, kStart));
  ASSERT_TRUE(keys.rekey(kStart));
  Bytes nextSecret = fromHex("be69fe2764dad8a42f6d30a8dd73f391a80893bc36cdab7247903b55a720c652");
  EXPECT_TRUE(opensWith("ccb79a22f208cdaedbfabf9963072dec", expanded(nextSecret, "braid iv", 12)));
}

TEST_P(KeyScheduleTest, bothDirectionsRoundTrip) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(aToB());
    EXPECT_TRUE(bToA());
  }
  EXPECT_EQ(a.keys.failedOpens() + b.keys.failedOpens(), 0u);
}

TEST_P(KeyScheduleTest, aReflectedPacketDoesNotOpen) {
  Sealed s = a.send();
  EXPECT_FALSE(a.receive(s, now));
  EXPECT_EQ(a.keys.failedOpens(), 1u);
}

TEST_P(KeyScheduleTest, noRekeyBeforeThePeerIsHeard) {
  for (int i = 0; i < 20; ++i) a.send();
  EXPECT_FALSE(a.keys.wantsRekey(now));
  EXPECT_FALSE(a.keys.rekey(now));
  EXPECT_EQ(a.keys.epoch(), 0u);
  ASSERT_TRUE(bToA());
  EXPECT_TRUE(a.keys.wantsRekey(now));
  EXPECT_TRUE(a.keys.rekey(now));
  EXPECT_EQ(a.keys.epoch(), 1u);
}

TEST_P(KeyScheduleTest, wantsRekeyByPackets) {
  confirmBoth();
  for (uint64_t n = a.keys.sealedInEpoch(); n < 9; ++n) a.send();
  EXPECT_FALSE(a.keys.wantsRekey(now));
  a.send();
  EXPECT_TRUE(a.keys.wantsRekey(now));
}

TEST_P(KeyScheduleTest, wantsRekeyByTime) {
  confirmBoth();
  EXPECT_FALSE(a.keys.wantsRekey(kStart + 60s - 1ns));
  EXPECT_TRUE(a.keys.wantsRekey(kStart + 60s));
  a.keys.setRekey(1000, 120s);
  EXPECT_FALSE(a.keys.wantsRekey(kStart + 60s));
}

TEST_P(KeyScheduleTest, theOtherSideFollowsBothWays) {
  settle();
  ASSERT_TRUE(a.keys.rekey(now));
  EXPECT_EQ(a.keys.sealedInEpoch(), 0u);
  EXPECT_TRUE(aToB());
  EXPECT_EQ(b.keys.epoch(), 1u);
  Sealed answer = b.send();
  EXPECT_EQ(answer.bits, 1);
  EXPECT_TRUE(a.receive(answer, now));
}

TEST_P(KeyScheduleTest, noSecondRekeyBeforeTheFirstIsConfirmedAndItsOldKeysGone) {
  settle();
  ASSERT_TRUE(a.keys.rekey(now));
  Sealed late = b.send();
  for (int i = 0; i < 20; ++i) a.send();
  EXPECT_FALSE(a.keys.wantsRekey(now));
  EXPECT_TRUE(a.receive(late, now));  // of the old epoch: no confirmation
  EXPECT_FALSE(a.keys.rekey(now));
  confirmBoth();
  EXPECT_FALSE(a.keys.rekey(now));
  now += kKeep;
  a.keys.onTimer(now);
  EXPECT_TRUE(a.keys.wantsRekey(now));
  EXPECT_TRUE(a.keys.rekey(now));
}

TEST_P(KeyScheduleTest, oldKeysGoAfterTheirTime) {
  settle();
  Sealed early = b.send(), onTime = b.send(), late = b.send();
  ASSERT_TRUE(a.keys.rekey(now));
  EXPECT_EQ(a.keys.deadline(), kNever);  // the peer may have learnt of the change only recently
  EXPECT_TRUE(a.receive(early, now + 10s));
  now += 10s;
  confirmBoth();
  EXPECT_EQ(a.keys.deadline(), now + kKeep);
  EXPECT_TRUE(a.receive(onTime, now + kKeep - 1ns));
  EXPECT_FALSE(a.receive(late, now + kKeep));
  EXPECT_EQ(a.keys.deadline(), kNever);
  EXPECT_EQ(a.keys.epoch(), 1u);
  EXPECT_TRUE(bToA());
}

TEST_P(KeyScheduleTest, onTimerErasesOldKeys) {
  settle();
  Sealed late = a.send();
  ASSERT_TRUE(a.keys.rekey(now));
  EXPECT_TRUE(aToB());
  Time deadline = b.keys.deadline();
  EXPECT_EQ(deadline, now + kKeep);
  b.keys.onTimer(deadline);
  EXPECT_TRUE(b.keys.mayRekey());
  EXPECT_FALSE(b.receive(late, now));  // even with a time before: the keys are gone
}

TEST_P(KeyScheduleTest, twoEpochsAheadIsRefused) {
  RecordProperty("rule", "header.epoch");
  Side far(GetParam(), Role::kInitiator, limits());
  Side farPeer(GetParam(), Role::kResponder, limits());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(farPeer.receive(far.send(), now));
    ASSERT_TRUE(far.receive(farPeer.send(), now));
    now += kKeep;
    far.keys.onTimer(now);
    farPeer.keys.onTimer(now);
    ASSERT_TRUE(far.keys.rekey(now));
  }
  Sealed s = far.send();
  ASSERT_EQ(s.bits, 2);
  EXPECT_FALSE(b.receive(s, now));
  EXPECT_EQ(b.keys.epoch(), 0u);
  EXPECT_EQ(b.keys.failedOpens(), 1u);
}

// A datagram sealed with the next keys but with another epoch's bits is rejected and does not
// change the receiver's epoch.
TEST_P(KeyScheduleTest, theNamedEpochDecides) {
  settle();
  ASSERT_TRUE(a.keys.rekey(now));
  for (uint8_t bits : {0, 2, 3}) {
    Sealed s = a.send();
    s.bits = bits;
    EXPECT_FALSE(b.receive(s, now)) << int{bits};
    EXPECT_EQ(b.keys.epoch(), 0u);
  }
  EXPECT_TRUE(aToB());
}

TEST_P(KeyScheduleTest, aForgedNextEpochMovesNothing) {
  Sealed s = a.send();
  s.bits = 1;
  EXPECT_FALSE(b.receive(s, now));
  EXPECT_EQ(b.keys.epoch(), 0u);
  EXPECT_TRUE(aToB());
}

TEST_P(KeyScheduleTest, bothSidesMayChangeAtOnce) {
  settle();
  Sealed oldA = a.send(), oldB = b.send();
  ASSERT_TRUE(a.keys.rekey(now));
  ASSERT_TRUE(b.keys.rekey(now));
  EXPECT_TRUE(aToB());
  EXPECT_TRUE(bToA());
  EXPECT_TRUE(b.receive(oldA, now));
  EXPECT_TRUE(a.receive(oldB, now));
  EXPECT_EQ(a.keys.epoch(), 1u);
  EXPECT_EQ(b.keys.epoch(), 1u);
}

/// A peer with the keys that seals each datagram in any epoch.
class Hasty {
 public:
  explicit Hasty(AeadKind kind) : kind_(kind) {
    SessionSecrets s = secretsOf(kind);
    secret_.assign(s.initiatorSecret.begin(), s.initiatorSecret.end());
  }
  void nextEpoch() {
    secret_ = expanded(secret_, "braid ku", 32);
    ++epoch_;
  }
  Sealed send() {
    auto bits = static_cast<uint8_t>(epoch_ & 3);
    Sealed s{bits, pn_++, {0x40, bits, 9}, Bytes(50 + kTagSize)};
    Aead aead(kind_, Aead::Use::kSeal, expanded(secret_, "braid key", aeadKeySize(kind_)),
              expanded(secret_, "braid iv", Aead::kIvSize));
    Bytes plain(50, static_cast<uint8_t>(s.pn.value()));
    ByteView piece = plain;
    EXPECT_TRUE(aead.seal(2, s.pn.value(), s.header, {&piece, 1}, s.bytes.data()));
    return s;
  }

 private:
  AeadKind kind_;
  Bytes secret_;
  unsigned epoch_ = 0;
  PacketNumber pn_{};
};

// Each epoch derives six keys, so a peer may not start one with each datagram.
TEST_P(KeyScheduleTest, anEpochStormIsNotFollowed) {
  Hasty peer(GetParam());
  EXPECT_TRUE(b.receive(peer.send(), now));
  peer.nextEpoch();
  EXPECT_TRUE(b.receive(peer.send(), now));
  ASSERT_EQ(b.keys.epoch(), 1u);
  peer.nextEpoch();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(b.receive(peer.send(), now + kKeep / 2 - 1ns));
  EXPECT_EQ(b.keys.epoch(), 1u) << "100 datagrams of the next epoch derive nothing";
  EXPECT_TRUE(b.receive(peer.send(), now + kKeep / 2)) << "and what comes in time is opened";
  EXPECT_EQ(b.keys.epoch(), 2u);
}

TEST_P(KeyScheduleTest, epochsAreAsManyAsTheirTimeAllows) {
  Hasty peer(GetParam());
  for (Duration t{}; t < 10 * kKeep; t += 1ms) {
    peer.nextEpoch();
    while (!b.receive(peer.send(), now + t) && t < 10 * kKeep) t += 1ms;
  }
  EXPECT_EQ(b.keys.epoch(), 21u)
      << "one at once, and one each half of the keep time, the last at its end";
}

// A side that has just changed its epoch waits for the peer to follow. It does not follow a further
// change of the peer in that time.
TEST_P(KeyScheduleTest, anEpochRightAfterOursIsNotFollowed) {
  settle();
  Hasty peer(GetParam());
  ASSERT_TRUE(b.keys.rekey(now));
  peer.nextEpoch();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(b.receive(peer.send(), now));
  peer.nextEpoch();
  EXPECT_FALSE(b.receive(peer.send(), now));
  EXPECT_EQ(b.keys.epoch(), 1u);
}

// Many key changes, started by either side at random. Every packet is delayed at random by less
// than the keep time, and each can be opened.
TEST_P(KeyScheduleTest, reorderingAcrossChangesLosesNothing) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    Side one(GetParam(), Role::kInitiator, limits()), two(GetParam(), Role::kResponder, limits());
    struct Flying {
      Time at;
      bool toTwo;
      Sealed packet;
    };
    std::vector<Flying> air;
    Time t = kStart;
    for (int step = 0; step < 3000; ++step, t += 5ms) {
      bool first = r.chance(0.5);
      Side& from = first ? one : two;
      if (from.keys.wantsRekey(t)) from.keys.rekey(t);
      Duration delay = std::chrono::milliseconds(r.below(kKeep / 1ms / 2));
      air.push_back({t + delay, first, from.send()});
      ASSERT_TRUE(from.sealedOk);
      std::erase_if(air, [&](Flying& f) {
        if (f.at > t) return false;
        EXPECT_TRUE((f.toTwo ? two : one).receive(f.packet, t)) << step;
        return true;
      });
      one.keys.onTimer(t);
      two.keys.onTimer(t);
    }
    EXPECT_GT(one.keys.epoch(), 20u);
    EXPECT_LE(one.keys.epoch() - two.keys.epoch() + 1, 2u);
  }
}

// ---- limits

TEST_P(KeyScheduleTest, aCipherThatFailsEndsTheKeys) {
  EXPECT_FALSE(a.keys.spent());
  // Keys that only open cannot seal, as if OpenSSL had failed.
  KeyScheduleAccess::sealingKeys(a.keys) =
      Aead(GetParam(), Aead::Use::kOpen, Bytes(aeadKeySize(GetParam())), Bytes(Aead::kIvSize));
  EXPECT_FALSE(a.keys.spent());
  Sealed fromB = b.send();
  a.send();
  EXPECT_FALSE(a.sealedOk);
  EXPECT_TRUE(a.keys.spent());
  EXPECT_FALSE(a.receive(fromB, now));
}

TEST_P(KeyScheduleTest, failedOpensReachTheIntegrityLimit) {
  KeyLimits l = limits();
  l.maxFailedOpens = 3;
  Side c(GetParam(), Role::kResponder, l);
  Sealed bad = a.send();
  bad.bytes[0] ^= 1;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(c.keys.spent());
    EXPECT_FALSE(c.receive(bad, now));
  }
  EXPECT_TRUE(c.keys.spent());
  EXPECT_FALSE(c.receive(a.send(), now));
  c.send();
  EXPECT_FALSE(c.sealedOk);
}

TEST_P(KeyScheduleTest, sealingStopsAtTheConfidentialityLimit) {
  KeyLimits l = limits();
  l.maxSealed = 12;
  Side c(GetParam(), Role::kInitiator, l);
  ASSERT_TRUE(b.receive(c.send(), now));
  ASSERT_TRUE(c.receive(b.send(), now));
  for (int i = 0; i < 11; ++i) {
    c.send();
    ASSERT_TRUE(c.sealedOk) << i;
  }
  c.send();
  EXPECT_FALSE(c.sealedOk);
  EXPECT_TRUE(c.keys.spent());
}

TEST_P(KeyScheduleTest, aChangeStartsTheCountAnew) {
  KeyLimits l = limits();
  l.maxSealed = 12;
  Side c(GetParam(), Role::kInitiator, l);
  ASSERT_TRUE(b.receive(c.send(), now));
  ASSERT_TRUE(c.receive(b.send(), now));
  for (int i = 0; i < 10; ++i) c.send();
  ASSERT_TRUE(c.keys.rekey(now));
  for (int i = 0; i < 12; ++i) {
    c.send();
    ASSERT_TRUE(c.sealedOk) << i;
  }
}

}  // namespace
}  // namespace braid::key_schedule_test
