#include "tunnel/peer/handshake_limiter.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace braid::handshake_limiter_test {
namespace {

struct HandshakeLimiterTest : testing::Test {
  HandshakeLimiter limiter{1};
  Time now = Time{} + 1h;

  static Address address(const std::string& text) { return *Address::parse(text); }
  static Pin pin(uint8_t number) { return Pin{number}; }
  /// Hosts of one network: IPv4 addresses of a /16, or IPv6 /64s of a /48.
  static Address hostOf(bool v6, unsigned number, uint8_t network = 0) {
    Address host = address(v6 ? "2001:db8::1" : "10.0.0.0");
    host.bytes[v6 ? 3 : 1] = static_cast<uint8_t>(host.bytes[v6 ? 3 : 1] + network);
    store16(&host.bytes[v6 ? 6 : 2], static_cast<uint16_t>(number));
    return host;
  }
  /// How many tokens there are in this time.
  static size_t in(Duration time, const RateLimit& limit) {
    return limit.burst + static_cast<size_t>(time / limit.period);
  }
  /// How many handshakes begin when `count` hosts try in turn, `perSecond` in all.
  struct Begun {
    size_t known = 0, strangers = 0;
  };
  template <typename HostAt>
  Begun tryFor(Duration time, unsigned perSecond, HostAt&& hostAt) {
    Begun begun;
    const Duration pause = Duration(1s) / perSecond;
    Time end = now + time;
    for (unsigned i = 0; now < end; ++i, now += pause) {
      if (auto origin = limiter.mayBegin(hostAt(i), now))
        ++(origin->isKnown() ? begun.known : begun.strangers);
    }
    return begun;
  }
  /// The key finishes a handshake that this stranger's host began without a ration.
  bool finish(const Address& host, const Pin& key, Time at) {
    return limiter.mayFinish({Address{}, host}, host, key, at);
  }
  bool isKnown(const Address& host) {
    auto origin = limiter.mayBegin(host, now);
    return origin && origin->isKnown();
  }
};

TEST_F(HandshakeLimiterTest, AKeyWithManyHostsHasNoHostOfAnotherForgotten) {
  for (bool v6 : {false, true}) {
    std::vector<Address> others;
    for (uint8_t key = 10; key < 20; ++key) {
      for (unsigned i = 0; i < KnownHosts::kEach; ++i) {
        others.push_back(hostOf(v6, i, key));
        ASSERT_TRUE(finish(others.back(), pin(key), now));
      }
    }
    size_t finished = 0;
    for (unsigned i = 0; i < 20000; ++i, now += 5ms) finished += finish(hostOf(v6, i), pin(1), now);
    EXPECT_GT(finished, 1000u);
    now += 1min;
    size_t ofOthers = 0, own = 0;
    for (const Address& host : others) ofOthers += isKnown(host);
    EXPECT_EQ(ofOthers, others.size());
    for (unsigned i = 0; i < 20000; ++i, now += 20ms) own += isKnown(hostOf(v6, i));
    EXPECT_EQ(own, KnownHosts::kEach);
  }
}

TEST_F(HandshakeLimiterTest, TheHostsOfAKeyHaveOneRation) {
  for (unsigned i = 0; i < KnownHosts::kEach; ++i) limiter.welcome(hostOf(true, i), pin(1));
  Begun begun = tryFor(10s, 5000, [](unsigned i) { return hostOf(true, i % 16); });
  EXPECT_NEAR(static_cast<double>(begun.known),
              static_cast<double>(in(10s, HandshakeLimiter::kKeyBegins)), 1);
  EXPECT_LE(begun.strangers, KnownHosts::kEach * (in(10s, HandshakeLimiter::kHostBegins) + 1));
}

TEST_F(HandshakeLimiterTest, WhoseKeyHasUsedItsRationUpIsAStranger) {
  Address edge = address("198.51.100.1");
  limiter.welcome(edge, pin(1));
  while (isKnown(edge)) continue;
  auto origin = limiter.mayBegin(edge, now);
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->host, edge);
  now += 1s;
  EXPECT_TRUE(isKnown(edge));
}

TEST_F(HandshakeLimiterTest, AllKnownHostsTogetherHaveABound) {
  for (uint8_t key = 1; key <= 100; ++key) limiter.welcome(hostOf(false, 1, key), pin(key));
  Begun begun = tryFor(
      2s, 20000, [](unsigned i) { return hostOf(false, 1, static_cast<uint8_t>(1 + i % 100)); });
  EXPECT_NEAR(static_cast<double>(begun.known),
              static_cast<double>(in(2s, HandshakeLimiter::kKnownBegins)), 1);
}

// A stranger that knows the pin can send hellos with the address of a known host.
TEST_F(HandshakeLimiterTest, CookieRequestsToKnownHostsAreRationed) {
  Address edge = address("198.51.100.1"), other = address("192.0.2.1");
  limiter.welcome(edge, pin(1));
  limiter.welcome(other, pin(2));
  size_t asked = 0, refused = 0;
  for (int i = 0; i < 20000; ++i, now += 100us) {
    for (uint8_t network = 0; network < 8; ++network)
      limiter.mayAsk(hostOf(false, 1, network), now);
    asked += limiter.mayAsk(edge, now);
    if (i % 100 == 0) refused += !limiter.mayAsk(other, now);
  }
  const size_t own = in(2s, HandshakeLimiter::kKeyAnswers);
  EXPECT_GE(asked, own - 1) << "strangers take nothing from it";
  EXPECT_LE(asked, own + own / 2) << "with what it gets of the strangers' ration";
  EXPECT_EQ(refused, 0u) << "nor does it take anything from another known host";
}

TEST_F(HandshakeLimiterTest, CookieRequestsToAllKnownHostsTogetherAreRationed) {
  for (uint8_t key = 1; key <= 100; ++key) limiter.welcome(hostOf(false, 1, key), pin(key));
  size_t asked = 0;
  for (unsigned i = 0; i < 20000; ++i, now += 100us)
    asked += limiter.mayAsk(hostOf(false, 1, static_cast<uint8_t>(1 + i % 100)), now);
  EXPECT_LE(asked, 2 * (in(2s, HandshakeLimiter::kAnswers) + 1)) << "that of strangers included";
}

TEST_F(HandshakeLimiterTest, AFinishedHandshakeCountsForItsKeyWhereverItComesFrom) {
  size_t finished = 0, honest = 0;
  for (unsigned i = 0; i < 40000; ++i, now += 250us) {
    finished += finish(hostOf(i % 2 == 0, i), pin(1), now);
    if (i % 400 == 0) honest += finish(address("198.51.100.1"), pin(2), now);
  }
  EXPECT_LE(finished, in(10s, HandshakeLimiter::kKeyFinishes) + 1);
  EXPECT_EQ(honest, 100u);
}

// The attacker has the pin and 4,096 addresses.
TEST_F(HandshakeLimiterTest, OneNetworkOfStrangersLeavesHalfToOthers) {
  for (bool v6 : {false, true}) {
    Begun begun = tryFor(5s, 5000, [&](unsigned i) { return hostOf(v6, i % 4096); });
    EXPECT_LE(begun.strangers, in(5s, HandshakeLimiter::kNetworkBegins) + 1);
    size_t let = 0;
    for (unsigned i = 0; i < 1000; ++i, now += 25ms) {
      for (unsigned j = 0; j < 125; ++j) limiter.mayBegin(hostOf(v6, (i * 125u + j) % 4096), now);
      let += limiter.mayBegin(hostOf(v6, i, 9), now).has_value();
    }
    EXPECT_EQ(let, 1000u) << "40 newcomers a second from another network";
  }
}

TEST_F(HandshakeLimiterTest, HandshakesThatLeadToNothingAreFew) {
  // Chosen: what one takes whose second flight fails, on a slow processor.
  constexpr Duration kEach = 1300us;
  Begun begun = tryFor(60s, 5000, [](unsigned i) {
    return hostOf(false, i % 4096, static_cast<uint8_t>(i / 4096 % 16));
  });
  EXPECT_GE(begun.strangers, 60u * 50) << "strangers come in";
  EXPECT_LE(static_cast<double>(begun.strangers) * toSeconds(kEach), 0.15 * 60);
}

// The peers of a carrier come at once, from one network or as the known hosts of one key.
TEST_F(HandshakeLimiterTest, WhatIsFinishedIsGivenBack) {
  for (bool isKnownHost : {false, true}) {
    const Address shared = hostOf(false, 7, 40);
    if (isKnownHost) limiter.welcome(shared, pin(1));
    for (unsigned i = 0; i < 5000; ++i) {
      const Address host = isKnownHost ? shared : hostOf(false, i, 20);
      auto origin = limiter.mayBegin(host, now);
      ASSERT_TRUE(origin) << i;
      ASSERT_EQ(origin->isKnown(), isKnownHost);
      Pin key = pin(2);
      store16(&key[4], static_cast<uint16_t>(i));
      ASSERT_TRUE(limiter.mayFinish(*origin, host, key, now));
    }
  }
}

TEST_F(HandshakeLimiterTest, AKeyThatFinishesTooManyGetsNothingBack) {
  size_t begun = 0;
  for (unsigned i = 0; i < 5000; ++i) {
    const Address host = hostOf(false, i, 20);
    auto origin = limiter.mayBegin(host, now);
    if (!origin) break;
    ++begun;
    limiter.mayFinish(*origin, host, pin(1), now);
  }
  EXPECT_EQ(begun, HandshakeLimiter::kKeyFinishes.burst + HandshakeLimiter::kNetworkBegins.burst);
}

TEST_F(HandshakeLimiterTest, OneNetworkDoesNotTakeAllCookieRequests) {
  size_t let = 0;
  for (unsigned i = 0; i < 1000; ++i, now += 1ms) {
    for (unsigned j = 0; j < 20; ++j) limiter.mayAsk(hostOf(true, i * 20u + j), now);
    let += limiter.mayAsk(hostOf(true, i, 9), now);
  }
  EXPECT_EQ(let, 1000u);
}

// So nobody has it forgotten by coming from there, too, and then from many others.
TEST_F(HandshakeLimiterTest, AHostOfTwoKeysCountsForTheFirst) {
  Address shared = address("198.51.100.1");
  ASSERT_TRUE(finish(shared, pin(1), now));
  ASSERT_TRUE(finish(shared, pin(2), now));
  for (unsigned i = 0; i < 2 * KnownHosts::kEach; ++i)
    ASSERT_TRUE(finish(hostOf(false, i), pin(2), now));
  auto origin = limiter.mayBegin(shared, now);
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->group, (std::variant<Address, Pin>(pin(1))));
}

TEST_F(HandshakeLimiterTest, AHostThatComesAgainIsTheNewestOfItsKey) {
  Address first = address("198.51.100.1");
  ASSERT_TRUE(finish(first, pin(1), now));
  for (unsigned i = 1; i < KnownHosts::kEach; ++i) limiter.welcome(hostOf(false, i), pin(1));
  ASSERT_TRUE(finish(first, pin(1), now));
  for (unsigned i = 1; i < KnownHosts::kEach; ++i) limiter.welcome(hostOf(true, i), pin(1));
  EXPECT_TRUE(isKnown(first));
  EXPECT_FALSE(isKnown(hostOf(false, KnownHosts::kEach - 1)));
}

TEST_F(HandshakeLimiterTest, KeysThatLeaveTheConfigurationAreForgotten) {
  Address gone = address("198.51.100.1"), stays = address("192.0.2.1");
  limiter.welcome(gone, pin(1));
  limiter.welcome(stays, pin(2));
  limiter.keepKeys({pin(3), pin(2)});
  EXPECT_FALSE(isKnown(gone));
  EXPECT_TRUE(isKnown(stays));
  ASSERT_TRUE(finish(gone, pin(3), now));
  EXPECT_TRUE(isKnown(gone));
}

TEST_F(HandshakeLimiterTest, AKnownHostHasARationOfItsOwn) {
  Address edge = address("198.51.100.1");
  limiter.welcome(edge, pin(1));
  for (uint32_t host = 0; host < 40000; ++host) {
    Address stranger = edge;
    store32(stranger.bytes.data(), 0x0a000000 + (host << 8));
    for (int i = 0; i < 4; ++i) limiter.mayBegin(stranger, now);
  }
  EXPECT_FALSE(limiter.mayBegin(address("203.0.113.1"), now));
  EXPECT_TRUE(limiter.mayBegin(edge, now));
}

}  // namespace
}  // namespace braid::handshake_limiter_test
