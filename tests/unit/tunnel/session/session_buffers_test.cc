// The shared packet buffers that sessions hold.

#include <gtest/gtest.h>

#include "tests/raw_peer.h"
#include "tests/unit/tunnel/session/kept_events.h"
#include "tests/unit/tunnel/session/kept_packets.h"
#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/session/session.h"

namespace braid::session_buffers_test {
namespace {

/// A peer that sends anything, and the hub's session with it.
struct Association {
  PacketPool& pool;
  SessionOptions options;
  SharedResources shared;
  SecretRandom random;
  KeptPackets packets;
  KeptEvents events;
  StreamRateLimits rations;
  Route route{1, *Address::parse("203.0.113.2"), *Endpoint::parse("198.51.100.1:40000")};
  SessionSecrets secrets;
  std::unique_ptr<Session> hub;
  std::optional<test::RawPeer> peer;
  PacketNumber next{};

  Association(PacketPool& buffers, uint8_t id, Time now) : pool(buffers), random(knownKey(id)) {
    secrets.initiatorSecret.fill(id);
    secrets.responderSecret.fill(static_cast<uint8_t>(id + 100));
    secrets.sessionId = id;
    peer.emplace(secrets, KeySchedule::Role::kInitiator, now);
    SessionContext context{pool, random, events.in(), packets.in(), rations, shared};
    hub = std::make_unique<Session>(secrets, KeySchedule::Role::kResponder, options, context, now);
  }
  /// A packet of 20 bytes of a TCP flow.
  void data(uint64_t dsn, Time now) {
    std::vector<uint8_t> frame(kDataFrameHeader + 20);
    writeDataHeader(0_flow, Dsn(dsn), 20, frame.data());
    Packet datagram = peer->seal(0_subflow, next, frame, pool);
    EXPECT_EQ(hub->onDatagram(peer->header(0_subflow, next), route, Ecn::kNotEct,
                              std::move(datagram), now),
              std::nullopt);
    next = next + 1;
  }
  uint64_t held(Time now) const {
    SessionStatus status;
    hub->fill(status, now);
    return status.heldPackets;
  }
};

struct SessionBuffersTest : testing::Test {
  PacketPool pool{2048, 256};
  Time now = Time{} + 1s;
  Association greedy{pool, 1, now}, modest{pool, 2, now};

  size_t held() const { return pool.quota(PacketUse::kHeld).used(); }
};

// Found by review: one peer's tiny packets behind deliberate gaps filled the reordering memory, and
// then all peers' packets were delivered out of order.
TEST_F(SessionBuffersTest, WhoHoldsMostIsDeliveredOutOfOrder) {
  for (uint64_t i = 0; i < 300; ++i) {
    greedy.data(2 * i + 1, now);
    greedy.packets.take();
    ASSERT_LE(held(), 64u) << "a quarter of the buffers";
  }
  EXPECT_EQ(held(), greedy.held(now));
  EXPECT_GE(held(), 32u);
  for (uint64_t dsn = 1; dsn <= 20; ++dsn) modest.data(dsn, now);
  greedy.packets.take();
  EXPECT_EQ(modest.held(now), 20u) << "they wait for the first, whatever the other holds";
  EXPECT_EQ(modest.packets.delivered(), 0u);
  EXPECT_LE(held(), 64u);
  EXPECT_EQ(held(), greedy.held(now) + 20);
  EXPECT_EQ(held(), pool.inUse());
  modest.data(0, now);
  EXPECT_EQ(modest.packets.delivered(), 21u);
  EXPECT_EQ(held(), greedy.held(now));
  greedy.hub->onTimer(now + 1s);
  EXPECT_EQ(greedy.packets.delivered(), 300u);
  EXPECT_EQ(held(), 0u);
}

TEST_F(SessionBuffersTest, ASessionThatEndsGivesBackWhatItHeld) {
  for (uint64_t i = 0; i < 10; ++i) greedy.data(2 * i + 1, now);
  EXPECT_EQ(held(), 10u);
  greedy.hub.reset();
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(pool.inUse(), 0u);
}

}  // namespace
}  // namespace braid::session_buffers_test
