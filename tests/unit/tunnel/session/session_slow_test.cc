#include <deque>

#include "tests/unit/tunnel/session/session_pair_test.h"

namespace braid::session_slow_test {
namespace {

/// Two sessions with a path of two seconds each way.
struct SessionSlowTest : test::SessionPairTest {
  static constexpr Duration kOneWay = 2s;
  struct OnItsWay {
    Time at;
    Session* to = nullptr;
    Datagram datagram;
  };
  std::deque<OnItsWay> wire;

  void SetUp() override {
    options.recovery = "none";
    SessionSecrets secrets;
    secrets.initiatorSecret.fill(1);
    secrets.responderSecret.fill(2);
    secrets.sessionId = 7;
    edge = make(secrets, Role::kInitiator, edgeEnd);
    hub = make(secrets, Role::kResponder, hubEnd);
    ASSERT_TRUE(edge->openSubflow("a", "satellite", configured, now));
    run(60s);
    ASSERT_TRUE(edge->anyUsable() && hub->anyUsable());
  }
  bool carry(Session& from, Session& to, const Route&) override {
    while (!wire.empty() && wire.front().at <= now) {
      OnItsWay d = std::move(wire.front());
      wire.pop_front();
      std::optional<DatagramHeader> header = readHeader(d.datagram.bytes.view());
      d.to->onDatagram(*header, d.to == hub.get() ? hubRoute : edgeRoute, d.datagram.ecn,
                       std::move(d.datagram.bytes), now);
    }
    Datagram d;
    if (!from.pollDatagram(d, now)) return false;
    if (!cut) wire.push_back({now + kOneWay, &to, std::move(d)});
    return true;
  }
  /// A TCP packet that is lost on its way to the hub.
  void lose(uint16_t flow) {
    cut = true;
    offer(*edge, flow);
    run(1ms);
    cut = false;
  }
};

// While no path was usable, packets were repaired for no longer than on a fast path, and given up
// before the answer to the first probe.
TEST_F(SessionSlowTest, ARepairWaitsForAsLongAsTheSilentPathTakes) {
  lose(1);
  ASSERT_TRUE(edge->onSendError(edgeRoute, now));
  ASSERT_FALSE(edge->anyUsable());
  offer(*edge, 2);  // something new waits, too
  run(4s);
  ASSERT_FALSE(edge->anyUsable());
  EXPECT_EQ(edge->drops()[static_cast<size_t>(Drop::kExpired)], 0u);
  EXPECT_EQ(edge->drops()[static_cast<size_t>(Drop::kPeerDown)], 0u);
}

// And the receiver waited for them no longer, either.
TEST_F(SessionSlowTest, AGapIsWaitedForAsLongAsTheSilentPathTakes) {
  offer(*edge, 1);
  run(10s);
  ASSERT_EQ(hubEnd.delivered(), 1u);
  lose(1);
  offer(*edge, 1);
  run(kOneWay - 10ms);
  ASSERT_TRUE(hub->onSendError(hubRoute, now));
  ASSERT_FALSE(hub->anyUsable());
  run(1500ms);
  SessionStatus status;
  hub->fill(status, now);
  EXPECT_EQ(status.heldPackets, 1u) << "it came a second ago, and the one before it may still come";
  EXPECT_EQ(hubEnd.delivered(), 1u);
}

}  // namespace
}  // namespace braid::session_slow_test
