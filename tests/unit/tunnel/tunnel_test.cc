#include "tunnel/tunnel.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/puppets.h"

namespace braid::tunnel_test {
namespace {

/// Handshakes that say one thing and then wait for good.
struct SlowHandshake final : Handshake {
  explicit SlowHandshake(int& polls) : polls_(polls) {}
  void onDatagram(ByteView, Time) override {}
  void onTimer(Time) override {}
  bool pollDatagram(Packet& out) override {
    ++polls_;
    if (said_) return false;
    out.append(60);
    return said_ = true;
  }
  Time deadline() const override { return kNever; }
  State state() const override { return State::kRunning; }
  const SessionSecrets& secrets() const override { return secrets_; }
  std::string_view error() const override { return {}; }

 private:
  int& polls_;
  bool said_ = false;
  SessionSecrets secrets_;
};

struct SlowProvider final : HandshakeProvider {
  int polls = 0;
  int accepted = 0;
  Pin pin{7};
  Random random{1};
  const Pin& ownPin() const override { return pin; }
  std::unique_ptr<Handshake> initiate(const Pin&, Time) override {
    return std::make_unique<SlowHandshake>(polls);
  }
  std::unique_ptr<Handshake> accept(Time) override {
    ++accepted;
    return std::make_unique<SlowHandshake>(polls);
  }
  void setAcceptedPins(std::vector<Pin>) override {}
  void drawSecret(ByteSpan out) override {
    for (uint8_t& byte : out) byte = static_cast<uint8_t>(random.next());
  }
};

struct TunnelTest : testing::Test {
  PacketPool pool{2048, 256};
  SlowProvider handshakes;
  test::Knocker knocker{handshakes.pin};
  Tunnel tunnel{{}, pool, handshakes, knownKey(1)};
  Time now = Time{} + 1s;

  void put(const Route& from, ByteView bytes) {
    tunnel.onDatagram(from, Ecn::kNotEct, pool.copy(bytes), now);
  }
  /// A handshake begins: a hello, and one with the cookie that was asked for.
  void hello(const std::string& from, uint16_t port) {
    Route route{1, {}, {*Address::parse(from), port}};
    knocker.header = {};
    put(route, knocker.datagram(test::Knocker::hello()));
    for (Datagram d; tunnel.pollDatagram(d, now);) knocker.takeCookie(d.bytes.span());
    put(route, knocker.datagram(test::Knocker::hello()));
  }
  size_t drain() {
    size_t n = 0;
    for (Datagram d; tunnel.pollDatagram(d, now); ++n) {
    }
    return n;
  }
};

TEST_F(TunnelTest, OneStrangerDoesNotTakeAllHandshakes) {
  for (const char* host : {"192.0.2.66", "2001:db8::66"}) {
    for (uint16_t port = 1; port <= 1000; ++port) hello(host, port);
  }
  for (int i = 1; i < 1000; ++i) hello("2001:db8::" + std::to_string(i), 1);  // all of one link
  EXPECT_LE(handshakes.accepted, 64) << "nor is he worth the work of more";
  uint64_t before = tunnel.status(now).handshakes;
  now += 1s;
  hello("198.51.100.1", 40000);
  hello("2001:db8:0:1::1", 40000);
  EXPECT_EQ(tunnel.status(now).handshakes, before + 2);
}

TEST_F(TunnelTest, ADatagramOfAnotherHeaderVersionIsDropped) {
  RecordProperty("rule", "header.version");
  for (uint8_t version = 0; version < 4; ++version) {
    std::array<uint8_t, kMinDatagram> bytes{};
    writeHeader({.version = version}, bytes.data());
    put({1, {}, {*Address::parse("192.0.2.1"), 4433}}, bytes);
  }
  DropCounts drops = tunnel.status(now).drops;
  EXPECT_EQ(drops[static_cast<size_t>(Drop::kUnknownVersion)], 3u);
  EXPECT_EQ(drops[static_cast<size_t>(Drop::kUnknownSession)], 1u) << "version 0";
}

TEST_F(TunnelTest, HandshakesWithNothingToSayAreNotAskedForEachDatagram) {
  for (int i = 1; i <= 100; ++i) hello("192.0.2." + std::to_string(i), 1);
  drain();
  handshakes.polls = 0;
  for (int i = 0; i < 100; ++i) drain();
  EXPECT_EQ(handshakes.polls, 0);
  hello("192.0.2.101", 1);
  EXPECT_EQ(drain(), 1u);
}

}  // namespace
}  // namespace braid::tunnel_test
