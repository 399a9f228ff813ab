#include "tunnel/forward/icmp_errors.h"

#include <gtest/gtest.h>

#include <string>

#include "inet/frame.h"
#include "tests/unit/inet/packets.h"

namespace braid::icmp_answers_test {
namespace {

using test::addr;
using test::Bytes;

struct IcmpAnswersTest : testing::Test {
  PacketPool pool{2048, 512};
  IcmpErrors answers{pool};
  Time now = Time{} + 1s;

  Packet ask(const Bytes& packet, Unreachable why = Unreachable::kHost, size_t peer = 1) {
    InnerPacket ip = *parseInnerPacket(packet);
    return answers.unreachable({packet, ip, 0, peer}, why, now);
  }
  Packet tooBig(const Bytes& packet, size_t peer = 1) {
    InnerPacket ip = *parseInnerPacket(packet);
    return answers.tooBig({packet, ip, 0, peer}, 1234, now);
  }
  static Bytes from(const std::string& host) {
    return test::v4({.src = host.c_str()}, test::udp(1, 2, test::pattern(10)));
  }
  /// Number of answers to a thousand unreachable packets.
  size_t askOften(const Bytes& packet = test::tcpV4({}), Unreachable why = Unreachable::kHost,
                  size_t peer = 1) {
    size_t answered = 0;
    for (int i = 0; i < 1000; ++i) answered += ask(packet, why, peer) ? 1 : 0;
    return answered;
  }
};

// Not from an address of the device, because the kernel would consider that forged.
TEST_F(IcmpAnswersTest, TheDestinationAnswers) {
  InnerPacket answer = parseInnerPacket(ask(test::tcpV4({})).view()).value();
  EXPECT_EQ(answer.src, addr("10.0.0.2"));
  EXPECT_EQ(answer.dst, addr("10.0.0.1"));
  answer = parseInnerPacket(tooBig(test::tcpV6({})).view()).value();
  EXPECT_EQ(answer.src, addr("2001:db8::2"));
  EXPECT_EQ(answer.dst, addr("2001:db8::1"));
}

TEST_F(IcmpAnswersTest, TooBigNamesTheMtu) {
  Packet answer = tooBig(test::tcpV4({.payload = test::pattern(1400)}));
  InnerPacket ip = parseInnerPacket(answer.view()).value();
  EXPECT_EQ(load16(&answer.view()[ip.l4Offset + 6]), 1234);
}

// The frame's MAC addresses are swapped; VLAN tags and type stay.
TEST_F(IcmpAnswersTest, AFrameIsAnsweredByAFrame) {
  Bytes frame{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 7, 0x08, 0};
  size_t ipOffset = frame.size();
  test::append(frame, test::tcpV4({}));
  Frame parsed = parseFrame(frame).value();
  Packet answer = answers.unreachable({frame, *parsed.ip, ipOffset, 1}, Unreachable::kHost, now);
  Frame back = parseFrame(answer.view()).value();
  EXPECT_EQ(back.dst, parsed.src);
  EXPECT_EQ(back.src, parsed.dst);
  EXPECT_EQ(back.vlans[0], 7);
  ASSERT_TRUE(back.ip);
  EXPECT_EQ(back.ip->dst, addr("10.0.0.1"));
}

TEST_F(IcmpAnswersTest, ABurstIsAnsweredAndThenOnlyTheRate) {
  EXPECT_EQ(askOften(), 50u);
  now += 100ms;
  EXPECT_EQ(askOften(), 10u);
  now += 1h;
  EXPECT_EQ(askOften(), 50u) << "a long pause gives no more";
}

// A host that scans unused addresses, or sends to a peer that is down, must not prevent other
// hosts' path MTU discovery.
TEST_F(IcmpAnswersTest, HostsPeersAndCausesHaveRationsOfTheirOwn) {
  const Bytes neighbour = from("10.0.0.77");
  askOften();
  askOften(test::tcpV4({}), Unreachable::kNoRoute, IcmpErrors::kNoPeer);
  EXPECT_FALSE(ask(test::tcpV4({})));
  EXPECT_TRUE(tooBig(test::tcpV4({}))) << "another cause";
  EXPECT_TRUE(ask(test::tcpV4({}), Unreachable::kHost, 2)) << "another peer";
  EXPECT_TRUE(ask(neighbour)) << "another host";
  EXPECT_TRUE(ask(neighbour, Unreachable::kNoRoute, IcmpErrors::kNoPeer)) << "another host";
}

TEST_F(IcmpAnswersTest, AllHostsBehindAPeerHaveOneRation) {
  TokenBucket first, second;
  auto ask = [&](const std::string& host, TokenBucket& sender, Unreachable why) {
    const Bytes packet = from(host);
    InnerPacket ip = *parseInnerPacket(packet);
    return bool(answers.unreachable({packet, ip, 0, 1, &sender}, why, now));
  };
  size_t answered = 0;
  for (unsigned host = 0; host < 60'000; ++host)
    answered += ask("10.0." + std::to_string(host / 250) + "." + std::to_string(host % 250), first,
                    Unreachable::kSource);
  EXPECT_EQ(answered, 50u);
  EXPECT_FALSE(ask("10.0.0.1", first, Unreachable::kProhibited)) << "whatever the cause";
  EXPECT_TRUE(ask("10.0.0.1", second, Unreachable::kSource)) << "another peer";
}

TEST_F(IcmpAnswersTest, AllTogetherHaveABound) {
  size_t answered = 0;
  for (unsigned host = 0; host < 250; ++host) {
    for (size_t peer = 0; peer < 20; ++peer)
      answered += ask(from("10.0.1." + std::to_string(host)), Unreachable::kHost, peer) ? 1 : 0;
  }
  EXPECT_EQ(answered, 500u);
  EXPECT_TRUE(tooBig(test::tcpV4({})));
  now += 10ms;
  EXPECT_EQ(askOften(from("10.0.2.1")), 10u);
}

}  // namespace
}  // namespace braid::icmp_answers_test
