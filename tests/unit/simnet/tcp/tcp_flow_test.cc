// One transfer with the plain TCP of the scenarios.

#include <gtest/gtest.h>

#include <vector>

#include "simnet/tcp/tcp_flow.h"
#include "simnet/wired_pair.h"

namespace braid::sim::tcp_flow_test {
namespace {

const LinkOptions kLink{.delay = 10ms};

TEST(TcpFlow, HasNothingButAcksToLearnFrom) {
  WiredPair net(kLink, kLink, 1);
  unsigned data = 0, acks = 0;
  net.left().onSend = [&](ByteView packet, const InnerPacket& ip) {
    TcpOptionFields options = tcpOptionsOf(packet, ip);
    EXPECT_FALSE(options.sackPermitted || options.timestamps);
    return ip.tcp->payloadLength == 0 || ++data != 3;
  };
  net.right().onSend = [&](ByteView, const InnerPacket& ip) { return ip.tcp->isSyn() || ++acks; };
  TcpFlow flow(net, net.left(), net.right(), 1000, TcpOptions{.bytes = 10 * 1460});
  net.run(45ms);
  EXPECT_FALSE(flow.done());
  net.run(100ms);
  EXPECT_TRUE(flow.done());
  EXPECT_EQ(flow.gaps(), 7u);
  EXPECT_EQ(flow.retransmits(), 1u);
  EXPECT_EQ(flow.timeouts() + flow.repeats() + flow.wrongBytes(), 0u);
  EXPECT_EQ(acks, 10u) << "one for each segment";
  flow.write(1);
  EXPECT_FALSE(flow.done());
  net.run(100ms);
  EXPECT_TRUE(flow.done());
}

TEST(TcpFlow, TriesAgainEveryFourSecondsAtLeast) {
  WiredPair net(kLink, kLink, 1);
  std::vector<Time> sent;
  net.left().onSend = [&](ByteView, const InnerPacket& ip) {
    if (ip.tcp->payloadLength > 0) sent.push_back(net.now());
    return ip.tcp->payloadLength == 0;
  };
  TcpFlow flow(net, net.left(), net.right(), 1000, TcpOptions{.bytes = 1000});
  net.run(30s);
  ASSERT_EQ(sent.size(), 11u);
  EXPECT_EQ(flow.timeouts(), 10u);
  EXPECT_EQ(sent[1] - sent[0], 220ms) << "the round trip and 200 ms";
  for (size_t i = 1; i < sent.size(); ++i) EXPECT_LE(sent[i] - sent[i - 1], 4s);
}

}  // namespace
}  // namespace braid::sim::tcp_flow_test
