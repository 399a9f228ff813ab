#include "tunnel/wire/key_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/wire/hex.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::key_ring_test {
namespace {

using Bytes = std::vector<uint8_t>;
using test::fromHex;
using Role = KeyRing::Role;

constexpr Time kStart{1s};
constexpr Duration kKeep = 300ms;

Bytes bytesOf(const TrafficSecret& secret) {
  return {secret.begin(), secret.end()};
}

/// The secrets of the handshake with this number.
SessionSecrets secretsOf(uint8_t handshake, AeadKind kind = AeadKind::kAes128Gcm) {
  SessionSecrets s;
  s.aead = kind;
  std::iota(s.initiatorSecret.begin(), s.initiatorSecret.end(),
            static_cast<uint8_t>(100 * handshake));
  std::iota(s.responderSecret.begin(), s.responderSecret.end(),
            static_cast<uint8_t>(100 * handshake + 50));
  s.sessionId = handshake;
  return s;
}

KeyLimits limits() {
  KeyLimits l;
  l.keepPrevious = kKeep;
  l.rekeyPackets = 20;
  return l;
}

struct Sealed {
  uint8_t generation = 0, epoch = 0;
  PacketNumber pn{};
  Bytes header, bytes;
};

struct Side {
  KeyRing keys;
  PacketNumber pn{};

  explicit Side(Role role, const KeyLimits& l = limits()) : keys(secretsOf(0), role, l, kStart) {}
  Sealed send() {
    Sealed s{keys.generationBits(), keys.epochBits(), pn++, {0x40, 9}, Bytes(50 + kTagSize)};
    Bytes plain(50, static_cast<uint8_t>(s.pn.value()));
    ByteView piece = plain;
    EXPECT_TRUE(keys.seal(2_subflow, s.pn, s.header, {&piece, 1}, s.bytes.data()));
    return s;
  }
  bool receive(Sealed s, Time now) {
    if (!keys.open(s.generation, s.epoch, 2_subflow, s.pn, s.header, s.bytes, now)) return false;
    return std::count(s.bytes.begin(), s.bytes.begin() + 50, static_cast<uint8_t>(s.pn.value())) ==
           50;
  }
};

struct KeyRingTest : testing::Test {
  Side a{Role::kInitiator}, b{Role::kResponder};
  Time now = kStart;

  bool aToB() { return b.receive(a.send(), now); }
  bool bToA() { return a.receive(b.send(), now); }
  /// Makes both sides finish this handshake, and the responder report it.
  void prepare(uint8_t handshake, AeadKind kind = AeadKind::kAes128Gcm) {
    for (Side* side : {&a, &b}) side->keys.prepare(KeyRoot(secretsOf(handshake, kind)), now);
  }
  void settle() {
    now += kKeep;
    for (Side* side : {&a, &b}) side->keys.onTimer(now);
  }
  /// A complete key change without packet loss.
  void renew(uint8_t handshake) {
    prepare(handshake);
    a.keys.takeNext(now);
    ASSERT_TRUE(aToB() && bToA());
    settle();
  }
};

// RFC 5869 appendix A.1.
TEST(HkdfExtract, Rfc5869) {
  Bytes salt(13), material(22, 0x0b);
  std::iota(salt.begin(), salt.end(), uint8_t{0});
  TrafficSecret out;
  hkdfExtract(salt, material, out);
  EXPECT_EQ(bytesOf(out),
            fromHex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"));
}

// Computed by Python's hmac with the secrets 00 01 .. 1f and 64 65 .. 83.
TEST(KeyRoot, FollowsTheLabels) {
  KeyRoot present(secretsOf(0)), fresh(secretsOf(1));
  EXPECT_EQ(bytesOf(present.initiator),
            fromHex("2ce62b23cf4dbeb9e1ac4973d250b0af7293a0b77610ddb36817ef310eed4172"));
  EXPECT_EQ(bytesOf(fresh.initiator),
            fromHex("0e7abad75c90d28dbf6e96a3ec7d3a1a3e142adbe9a28d6ec64a71df1b28ea25"));
  SessionSecrets next = present.followedBy(fresh);
  EXPECT_EQ(bytesOf(next.initiatorSecret),
            fromHex("6d56fa7aa4c29584586f9035f09c7f52571f9312d79ecad9960042ea1a7c159b"));
  EXPECT_EQ(next.sessionId, 1u);
}

// The next keys need both the session's keys and those of the handshake. An attacker with only one
// of them learns nothing.
TEST(KeyRoot, BothAreNeeded) {
  KeyRoot present(secretsOf(0)), fresh(secretsOf(1)), other(secretsOf(2));
  auto next = [](const KeyRoot& of, const KeyRoot& with) {
    SessionSecrets secrets = of.followedBy(with);
    return std::pair(secrets.initiatorSecret, secrets.responderSecret);
  };
  EXPECT_EQ(next(present, fresh), next(KeyRoot(secretsOf(0)), KeyRoot(secretsOf(1))));
  EXPECT_NE(next(present, fresh), next(present, other));
  EXPECT_NE(next(present, fresh), next(other, fresh));
  EXPECT_NE(next(present, fresh), next(fresh, present));
}

TEST_F(KeyRingTest, TheResponderFollowsTheFirstDatagramOfTheNextGeneration) {
  ASSERT_TRUE(aToB() && bToA());
  prepare(1);
  EXPECT_EQ(a.keys.next(), 1u);
  EXPECT_TRUE(aToB() && bToA()) << "nothing has changed yet";
  EXPECT_EQ(a.keys.generation() + b.keys.generation(), 0u);
  now += 1s;
  a.keys.takeNext(now);
  EXPECT_EQ(a.keys.renewedAt(), now);
  EXPECT_TRUE(bToA()) << "the responder has not heard of it";
  EXPECT_EQ(b.keys.generation(), 0u);
  EXPECT_TRUE(aToB());
  EXPECT_EQ(b.keys.generation(), 1u);
  EXPECT_EQ(b.keys.renewedAt(), now);
  EXPECT_FALSE(b.keys.next());
  EXPECT_TRUE(bToA());
}

TEST_F(KeyRingTest, KeysThatAreReadyAndNotUsedChangeNothing) {
  prepare(1);
  a.keys.dropNext();
  EXPECT_FALSE(a.keys.next());
  EXPECT_FALSE(a.keys.isChanging());
  prepare(2);
  a.keys.takeNext(now);
  EXPECT_TRUE(aToB()) << "those that were ready last";
  EXPECT_TRUE(b.keys.holds(2) && b.keys.holds(0));
  EXPECT_FALSE(b.keys.holds(1));
}

TEST_F(KeyRingTest, WhatIsLateOpensForAWhileAndThenNoMore) {
  ASSERT_TRUE(aToB() && bToA());
  prepare(1);
  Sealed late = a.send(), later = a.send(), answer = b.send(), lateAnswer = b.send();
  a.keys.takeNext(now);
  EXPECT_EQ(a.keys.deadline(), kNever) << "the old keys stay until the peer has changed";
  ASSERT_TRUE(aToB());
  EXPECT_EQ(b.keys.deadline(), now + kKeep);
  EXPECT_TRUE(b.receive(late, now));
  EXPECT_TRUE(a.receive(answer, now + 10 * kKeep)) << "the peer has not changed as far as is known";
  ASSERT_TRUE(bToA());
  EXPECT_EQ(a.keys.deadline(), now + kKeep);
  EXPECT_TRUE(a.keys.isChanging());
  settle();
  EXPECT_FALSE(a.keys.isChanging());
  EXPECT_FALSE(b.receive(later, now));
  EXPECT_FALSE(a.receive(lateAnswer, now));
  EXPECT_EQ(a.keys.deadline(), kNever);
}

TEST_F(KeyRingTest, AForgedDatagramOfTheNextGenerationMovesNothing) {
  prepare(1);
  for (uint8_t generation = 0; generation < 4; ++generation) {
    for (uint8_t epoch = 0; epoch < 4; ++epoch) {
      Sealed forged = a.send();
      forged.generation = generation, forged.epoch = epoch;
      forged.bytes[3] ^= 1;
      EXPECT_FALSE(b.receive(forged, now));
    }
  }
  EXPECT_EQ(b.keys.generation() + b.keys.epoch(), 0u);
  EXPECT_EQ(b.keys.next(), 1u);
  EXPECT_TRUE(aToB() && bToA());
}

TEST_F(KeyRingTest, TheNamedGenerationDecides) {
  RecordProperty("rule", "header.generation");
  renew(1);
  for (uint8_t other : {0, 2, 3}) {
    Sealed s = a.send();
    s.generation = other;
    EXPECT_FALSE(b.receive(s, now)) << int{other};
  }
  EXPECT_TRUE(aToB());
}

// Generation numbers repeat after four generations; their keys do not.
TEST_F(KeyRingTest, GenerationsFollowEachOtherWithoutEnd) {
  for (uint8_t handshake = 1; handshake <= 20; ++handshake) {
    Sealed old = a.send();
    renew(handshake);
    EXPECT_EQ(a.keys.generation(), unsigned{handshake});
    EXPECT_EQ(b.keys.generation(), unsigned{handshake});
    EXPECT_EQ(a.keys.epoch(), 0u);
    for (uint8_t bits = 0; bits < 4; ++bits) {
      old.generation = bits;
      EXPECT_FALSE(b.receive(old, now));
    }
    EXPECT_TRUE(aToB() && bToA());
  }
}

TEST_F(KeyRingTest, TheCipherMayChange) {
  prepare(1, AeadKind::kChaCha20Poly1305);
  a.keys.takeNext(now);
  EXPECT_TRUE(aToB() && bToA());
  EXPECT_EQ(b.keys.aead(), AeadKind::kChaCha20Poly1305);
}

// Each side may start an epoch while a generation begins. The two are independent.
TEST_F(KeyRingTest, EpochsMayChangeMeanwhile) {
  ASSERT_TRUE(aToB() && bToA());
  prepare(1);
  ASSERT_TRUE(b.keys.rekey(now));
  Sealed newEpoch = b.send();
  a.keys.takeNext(now);
  EXPECT_TRUE(a.receive(newEpoch, now))
      << "of the generation that was, in the epoch after its last one";
  EXPECT_EQ(a.keys.epoch(), 0u);
  EXPECT_TRUE(aToB() && bToA());
  EXPECT_EQ(b.keys.epoch(), 0u);
  settle();
  EXPECT_TRUE(a.keys.rekey(now));
  EXPECT_TRUE(aToB() && bToA());
  EXPECT_EQ(b.keys.epoch(), 1u);
}

// ---- everything at once

TEST_F(KeyRingTest, ReorderingAcrossChangesLosesNothing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    std::vector<std::pair<Time, Sealed>> toA, toB;
    auto arrive = [&](Side& side, std::vector<std::pair<Time, Sealed>>& flying) {
      for (auto it = flying.begin(); it != flying.end();) {
        if (it->first > now) {
          ++it;
          continue;
        }
        ASSERT_TRUE(side.receive(it->second, now)) << "seed " << seed;
        it = flying.erase(it);
      }
    };
    uint8_t handshake = static_cast<uint8_t>(a.keys.generation());
    for (int i = 0; i < 5000; ++i, now += 1ms) {
      for (Side* side : {&a, &b}) {
        side->keys.onTimer(now);
        if (side->keys.wantsRekey(now)) side->keys.rekey(now);
      }
      Duration flight = std::chrono::milliseconds(1 + random.below(140));
      if (random.chance(0.5)) toB.emplace_back(now + flight, a.send());
      if (random.chance(0.5)) toA.emplace_back(now + flight, b.send());
      if (i % 700 == 300 && !a.keys.isChanging() && !b.keys.isChanging()) {
        prepare(++handshake);
        a.keys.takeNext(now);
      }
      arrive(b, toB);
      arrive(a, toA);
    }
    EXPECT_GE(a.keys.generation(), 3u * seed);
    for (; !toA.empty() || !toB.empty(); now += 1ms) {
      arrive(b, toB);
      arrive(a, toA);
    }
    ASSERT_TRUE(aToB() && bToA());
    settle();
  }
}

// The limit applies to the session as a whole (RFC 9001 section 6.6), over all generations.
TEST(KeyRingLimits, FailedOpensAreCountedThroughGenerations) {
  KeyLimits few = limits();
  few.maxFailedOpens = 12;
  Side a(Role::kInitiator), b(Role::kResponder, few);
  Time now = kStart;
  auto forge = [&](int count) {
    for (int i = 0; i < count; ++i) {
      Sealed forged = a.send();
      forged.generation = static_cast<uint8_t>(i % 4);
      forged.bytes[0] ^= 1;
      EXPECT_FALSE(b.receive(forged, now));
    }
  };
  forge(8);
  for (Side* side : {&a, &b}) side->keys.prepare(KeyRoot(secretsOf(1)), now);
  a.keys.takeNext(now);
  ASSERT_TRUE(b.receive(a.send(), now));
  EXPECT_FALSE(b.keys.spent());
  forge(3);
  EXPECT_FALSE(b.keys.spent());
  forge(1);
  EXPECT_TRUE(b.keys.spent());
  EXPECT_FALSE(b.receive(a.send(), now));
}

TEST(KeyRingLimits, SettingsReachTheNextGeneration) {
  Side a(Role::kInitiator), b(Role::kResponder);
  for (Side* side : {&a, &b}) {
    side->keys.setRekey(3, 0s);
    side->keys.prepare(KeyRoot(secretsOf(1)), kStart);
  }
  a.keys.takeNext(kStart);
  ASSERT_TRUE(b.receive(a.send(), kStart) && a.receive(b.send(), kStart));
  EXPECT_FALSE(a.keys.wantsRekey(kStart + 1000h)) << "not by time";
  a.send();
  EXPECT_FALSE(a.keys.wantsRekey(kStart));
  a.send();
  EXPECT_TRUE(a.keys.wantsRekey(kStart));
}

// ---- what is left in memory

/// The memory of an object, inspected after the object's destruction.
template <typename T>
class Cell {
 public:
  template <typename... Args>
  T& make(Args&&... args) {
    return *(object_ = new (bytes_.data()) T(std::forward<Args>(args)...));
  }
  void end() { std::exchange(object_, nullptr)->~T(); }
  /// The compiler may assume anything about the bytes of a destroyed object, so they are read as
  /// volatile.
  bool has(ByteView secret) const {
    const volatile uint8_t* memory = bytes_.data();
    Bytes seen(sizeof(T));
    for (size_t i = 0; i < seen.size(); ++i) seen[i] = memory[i];
    return std::search(seen.begin(), seen.end(), secret.begin(), secret.end()) != seen.end();
  }
  ~Cell() {
    if (object_) end();
  }

 private:
  alignas(T) std::array<uint8_t, sizeof(T)> bytes_{};
  T* object_ = nullptr;
};

TEST(Secrets, AreErasedWithTheirHolders) {
  SessionSecrets given = secretsOf(1);
  Cell<SessionSecrets> secrets;
  secrets.make(given);
  EXPECT_TRUE(secrets.has(given.initiatorSecret) && secrets.has(given.responderSecret));
  secrets.end();
  EXPECT_FALSE(secrets.has(given.initiatorSecret) || secrets.has(given.responderSecret));

  KeyRoot root(given);
  Cell<KeyRoot> roots;
  roots.make(given);
  EXPECT_TRUE(roots.has(root.initiator) && roots.has(root.responder));
  EXPECT_FALSE(roots.has(given.initiatorSecret)) << "the secrets themselves are not kept";
  roots.end();
  EXPECT_FALSE(roots.has(root.initiator) || roots.has(root.responder));
}

TEST(Secrets, OfAHandshakeAreErasedWhenTheyHaveBeenTaken) {
  SessionSecrets given = secretsOf(1), kept = given;
  kept.erase();
  EXPECT_EQ(kept.initiatorSecret, TrafficSecret{});
  EXPECT_EQ(kept.responderSecret, TrafficSecret{});
  EXPECT_EQ(kept.sessionId, given.sessionId);
}

// The key is in the library's own memory.
TEST(Secrets, TheIvOfACipherIsErasedWithIt) {
  Bytes key = fromHex("000102030405060708090a0b0c0d0e0f"), iv = fromHex("101112131415161718191a1b");
  Cell<Aead> cell;
  Aead& aead = cell.make(AeadKind::kAes128Gcm, Aead::Use::kOpen, key, iv);
  EXPECT_TRUE(cell.has(iv));
  Aead moved = std::move(aead);
  EXPECT_FALSE(cell.has(iv));
  aead = std::move(moved);
  EXPECT_TRUE(cell.has(iv));
  cell.end();
  EXPECT_FALSE(cell.has(iv));
}

// The schedule keeps only the secret of the next epoch, and of earlier epochs only the cipher for
// late packets.
TEST(Secrets, OfEarlierEpochsAreNotInTheSchedule) {
  SessionSecrets given = secretsOf(1);
  TrafficSecret epochs[3] = {given.initiatorSecret};
  for (int i = 1; i < 3; ++i) hkdfExpandLabel(epochs[i - 1], "braid ku", epochs[i]);
  Time now = kStart;
  Cell<KeySchedule> cell;
  KeySchedule& responder = cell.make(given, Role::kResponder, limits(), now);
  KeySchedule initiator(given, Role::kInitiator, limits(), now);
  auto exchange = [&](KeySchedule& from, KeySchedule& to, uint64_t pn) {
    Bytes header{0x40}, plain(20, 7), out(20 + kTagSize);
    ByteView piece = plain;
    ASSERT_TRUE(from.seal(1_subflow, PacketNumber(pn), header, {&piece, 1}, out.data()));
    ASSERT_TRUE(to.open(from.epochBits(), 1_subflow, PacketNumber(pn), header, out, now));
  };
  // The IV of an epoch is there as long as its cipher is.
  Bytes first(Aead::kIvSize), second(Aead::kIvSize);
  hkdfExpandLabel(epochs[0], "braid iv", first);
  hkdfExpandLabel(epochs[1], "braid iv", second);
  EXPECT_FALSE(cell.has(epochs[0]));
  EXPECT_TRUE(cell.has(epochs[1]));
  EXPECT_TRUE(cell.has(first));
  exchange(initiator, responder, 0);
  exchange(responder, initiator, 1);
  ASSERT_TRUE(initiator.rekey(now));
  exchange(initiator, responder, 2);
  EXPECT_TRUE(cell.has(first)) << "for what is late";
  EXPECT_TRUE(cell.has(epochs[2]));
  EXPECT_FALSE(cell.has(epochs[1]));
  responder.onTimer(now + kKeep);
  EXPECT_FALSE(cell.has(first));
  EXPECT_TRUE(cell.has(second));
  cell.end();
  EXPECT_FALSE(cell.has(second));
  for (const TrafficSecret& secret : epochs) EXPECT_FALSE(cell.has(secret));
}

}  // namespace
}  // namespace braid::key_ring_test
