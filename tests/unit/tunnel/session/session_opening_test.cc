// Datagrams of one batch that are repeated, damaged, late or of new keys.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/unit/tunnel/session/raw_peer_test.h"

namespace braid::session_opening_test {
namespace {

struct SessionOpening : test::RawPeerTest {
  struct Arrival {
    DatagramHeader header;
    Packet bytes;
  };

  SessionOpening() {
    start();
    prove();
  }
  Arrival arrival(PacketNumber pn) {
    std::vector<uint8_t> ping = test::framesOf(PingFrame{});
    return {peer->header(0_subflow, pn), peer->seal(0_subflow, pn, ping, pool)};
  }
  std::optional<Drop> take(Arrival a) {
    return hub->onDatagram(a.header, home, Ecn::kNotEct, std::move(a.bytes), now);
  }
};

TEST_F(SessionOpening, RepeatsAndDamageAreDroppedAndAChangeOfKeysLosesNothing) {
  Arrival damaged = arrival(next + 1), late = arrival(next + 2);
  damaged.bytes.data()[kHeaderSize] ^= 1;
  EXPECT_EQ(take(arrival(next)), std::nullopt);
  EXPECT_EQ(take(arrival(next)), Drop::kReplay);
  EXPECT_EQ(take(std::move(damaged)), Drop::kBadSeal);
  ASSERT_TRUE(peer->rekey(now));
  EXPECT_EQ(take(arrival(next + 3)), std::nullopt);
  EXPECT_EQ(take(std::move(late)), std::nullopt);
  EXPECT_EQ(take(arrival(next + 4)), std::nullopt);
  EXPECT_EQ(take(arrival(next + 3)), Drop::kReplay);
  EXPECT_EQ(status().keyEpoch, 1u);
}

// Datagrams of a generation without keys are refused, and the keys stay valid.
TEST_F(SessionOpening, AGenerationWithoutKeysIsRefused) {
  Arrival strange = arrival(next);
  strange.header.generation = 2;
  EXPECT_EQ(take(std::move(strange)), Drop::kBadSeal);
  EXPECT_EQ(take(arrival(next)), std::nullopt);
}

}  // namespace
}  // namespace braid::session_opening_test
