#include "tunnel/icmp_answers.h"

#include <gtest/gtest.h>

#include "inet/frame.h"
#include "tests/unit/inet/packets.h"

namespace braid::icmp_answers_test {
namespace {

using test::addr;
using test::Bytes;

struct IcmpAnswersTest : testing::Test {
  PacketPool pool{2048, 512};
  IcmpAnswers answers{pool};
  Time now = Time{} + 1s;

  Packet ask(const Bytes& packet) {
    return answers.unreachable(packet, *parseInnerPacket(packet), 0, Unreachable::kHost, now);
  }
  size_t ask(int times) {
    size_t answered = 0;
    while (times-- > 0) answered += ask(test::tcpV4({})) ? 1 : 0;
    return answered;
  }
};

TEST_F(IcmpAnswersTest, WithoutAnOwnAddressTheDestinationAnswers) {
  InnerPacket answer = parseInnerPacket(ask(test::tcpV4({})).view()).value();
  EXPECT_EQ(answer.src, addr("10.0.0.2"));
  EXPECT_EQ(answer.dst, addr("10.0.0.1"));
}

TEST_F(IcmpAnswersTest, OwnAddressesAnswerForTheirFamily) {
  answers.setOwnAddresses(addr("10.99.0.1"), {});
  EXPECT_EQ(parseInnerPacket(ask(test::tcpV4({})).view())->src, addr("10.99.0.1"));
  EXPECT_EQ(parseInnerPacket(ask(test::tcpV6({})).view())->src, addr("2001:db8::2"));
}

TEST_F(IcmpAnswersTest, TooBigNamesTheMtu) {
  Bytes packet = test::tcpV4({.payload = test::pattern(1400)});
  Packet answer = answers.tooBig(packet, *parseInnerPacket(packet), 0, 1234, now);
  InnerPacket ip = parseInnerPacket(answer.view()).value();
  EXPECT_EQ(load16(&answer.view()[ip.l4Offset + 6]), 1234);
}

// The frame's MAC addresses change places; VLAN tags and type stay.
TEST_F(IcmpAnswersTest, AFrameIsAnsweredByAFrame) {
  Bytes frame{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 7, 0x08, 0};
  size_t ipOffset = frame.size();
  test::append(frame, test::tcpV4({}));
  Frame parsed = parseFrame(frame).value();
  Packet answer = answers.unreachable(frame, *parsed.ip, ipOffset, Unreachable::kHost, now);
  Frame back = parseFrame(answer.view()).value();
  EXPECT_EQ(back.dst, parsed.src);
  EXPECT_EQ(back.src, parsed.dst);
  EXPECT_EQ(back.vlans[0], 7);
  ASSERT_TRUE(back.ip);
  EXPECT_EQ(back.ip->dst, addr("10.0.0.1"));
}

TEST_F(IcmpAnswersTest, ABurstIsAnsweredAndThenOnlyTheRate) {
  EXPECT_EQ(ask(1000), static_cast<size_t>(IcmpAnswers::kBurst));
  now += 100ms;
  EXPECT_EQ(ask(1000), static_cast<size_t>(IcmpAnswers::kRate / 10));
  now += 1h;
  EXPECT_EQ(ask(1000), static_cast<size_t>(IcmpAnswers::kBurst)) << "a long pause gives no more";
}

}  // namespace
}  // namespace braid::icmp_answers_test
