#include "ackshim/segment.h"

#include <gtest/gtest.h>

#include "inet/ip.h"
#include "tests/unit/ackshim/rig.h"

namespace braid::outbox_test {
namespace {

using test::packetOf;
using test::Seg;

TEST(ShimOutbox, ReplaysAreNotEcnCapable) {
  PacketPool pool(2000, 4);
  ShimCounters counters;
  ShimOutbox outbox(pool, counters);
  EXPECT_TRUE(outbox.replayToHost(packetOf(Seg{.length = 10}, false, false, 2)));
  EXPECT_TRUE(outbox.replayToPeer(packetOf(Seg{.length = 10}, true, false, 3)));
  EXPECT_EQ(readEcn(outbox.pollToHost().view()), Ecn::kNotEct);
  EXPECT_EQ(readEcn(outbox.pollToPeer().view()), Ecn::kCe);  // a mark stays
}

TEST(ShimOutbox, GivesTheOldestFirst) {
  PacketPool pool(2000, 4);
  ShimCounters counters;
  ShimOutbox outbox(pool, counters);
  for (size_t length : {10, 20}) outbox.replayToHost(packetOf(Seg{.length = length}, false));
  EXPECT_EQ(outbox.pollToHost().size(), packetOf(Seg{.length = 10}, false).size());
  EXPECT_EQ(outbox.pollToHost().size(), packetOf(Seg{.length = 20}, false).size());
  EXPECT_FALSE(outbox.pollToHost());
  EXPECT_FALSE(outbox.pollToPeer());
}

TEST(ShimOutbox, CountsWhatFoundNoBuffer) {
  PacketPool pool(2000, 1);
  ShimCounters counters;
  ShimOutbox outbox(pool, counters);
  TcpAck ack;
  ack.key = FlowKey{Address::Family::kV4, ip::kTcp, 1, 2, {}, {}};
  EXPECT_TRUE(outbox.acknowledge(ack));
  EXPECT_FALSE(outbox.acknowledge(ack));
  EXPECT_FALSE(outbox.replayToPeer(packetOf(Seg{.length = 10}, true)));
  EXPECT_EQ(counters.noBuffer, 2u);
  EXPECT_TRUE(outbox.pollToHost());
  EXPECT_TRUE(outbox.replayToPeer(packetOf(Seg{.length = 10}, true)));
}

}  // namespace
}  // namespace braid::outbox_test
