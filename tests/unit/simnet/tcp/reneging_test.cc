// A sender whose receiver reneges on a SACK, or for which somebody else forged the SACK.
// recovery_test.cc tests that and when the segment is resent.

#include <gtest/gtest.h>

#include <vector>

#include "simnet/tcp/sender.h"

namespace braid::sim::tcp {
namespace {

constexpr uint32_t kMss = 1000;

class TcpReneging : public testing::Test, private SegmentOutlet {
 protected:
  TcpReneging() : sender(simulation, *this, Options{}) {
    Agreement agreement;
    agreement.mss = kMss;
    agreement.sack = true;
    agreement.peerWindow = 1 << 20;
    agreement.rtt = 20ms;
    sender.open(agreement);
    sender.write(10 * kMss);
  }
  void acknowledge(uint64_t segments, std::vector<Range> sacks = {}) {
    Ack ack;
    ack.upTo = segments * kMss;
    ack.window = 1 << 20;
    for (Range r : sacks) ack.addSack({r.begin * kMss, r.end * kMss});
    sender.onAck(ack);
  }

  Simulation simulation{1};
  std::vector<uint64_t> sent;  // numbers of segments
  Sender sender;

 private:
  void transmit(const DataSegment& segment) override { sent.push_back(segment.bytes.begin / kMss); }
};

TEST_F(TcpReneging, AnAckInTimeLeavesItAlone) {
  simulation.run(20ms);
  acknowledge(8, {{9, 10}});
  simulation.run(20ms);
  sent.clear();
  acknowledge(9);
  simulation.run(5ms);
  acknowledge(10);
  simulation.run(1s);
  EXPECT_TRUE(sent.empty());
  EXPECT_EQ(sender.stats().timeouts, 0u);
}

TEST_F(TcpReneging, AllSacksAreForgotten) {
  simulation.run(20ms);
  acknowledge(0, {{1, 3}, {5, 6}});
  EXPECT_EQ(sender.pipe(), 7u * kMss - kMss * 2)
      << "0, 3 and 4 are lost; 0, in the window, is sent again";
  acknowledge(1);
  simulation.run(11ms);
  EXPECT_EQ(sender.stats().timeouts, 1u);
  EXPECT_EQ(sender.stats().reneged, 1u);
  for (uint64_t segment = 1; segment < 10; ++segment) acknowledge(segment + 1);
  EXPECT_EQ(sender.flight(), 0u);
}

TEST_F(TcpReneging, AnOrdinaryTimeoutIsNoReneging) {
  simulation.run(250ms);
  EXPECT_EQ(sender.stats().timeouts, 1u);
  EXPECT_EQ(sender.stats().reneged, 0u);
}

}  // namespace
}  // namespace braid::sim::tcp
