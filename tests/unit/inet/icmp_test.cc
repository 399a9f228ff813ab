#include "inet/icmp.h"

#include <gtest/gtest.h>

#include "tests/unit/inet/packets.h"

namespace braid::icmp_test {
namespace {

using test::Bytes;
using test::V4;
using test::V6;

class IcmpTest : public testing::Test {
 protected:
  PacketPool pool_{2000, 4};

  Packet tooBig(const Bytes& offender) { return buildTooBig(pool_, offender, 1400); }
  bool answered(const Bytes& offender) {
    Packet p = tooBig(offender);
    Packet q = buildUnreachable(pool_, offender, Unreachable::kNoRoute);
    EXPECT_EQ(static_cast<bool>(p), static_cast<bool>(q));
    return static_cast<bool>(p);
  }
};

void expectQuote(ByteView answer, size_t headers, ByteView offender) {
  ByteView quote = answer.subspan(headers);
  ASSERT_LE(quote.size(), offender.size());
  EXPECT_TRUE(std::equal(quote.begin(), quote.end(), offender.begin()));
}

TEST_F(IcmpTest, TooBigIpv4) {
  Bytes offender = test::tcpV4({.payload = test::pattern(1460)});
  Packet answer = tooBig(offender);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer.size(), 576u);
  EXPECT_TRUE(test::v4ChecksumValid(answer.view()));
  InnerPacket p = parseInnerPacket(answer.view()).value();
  EXPECT_EQ(p.size, 576u);
  EXPECT_EQ(p.src, test::addr("10.0.0.2")) << "where the offender was to go";
  EXPECT_EQ(p.dst, test::addr("10.0.0.1"));
  EXPECT_EQ(p.protocol, ip::kIcmp);
  EXPECT_EQ(p.hopLimit, 64);
  EXPECT_EQ(p.dscp, 48) << "internetwork control";
  ByteView icmp = answer.view().subspan(20);
  EXPECT_EQ(icmp[0], 3);
  EXPECT_EQ(icmp[1], 4);
  EXPECT_EQ(load32(&icmp[4]), 1400u);
  EXPECT_EQ(foldSum(sumBytes(icmp)), 0xffff);
  expectQuote(answer.view(), 28, offender);
}

TEST_F(IcmpTest, TooBigIpv6) {
  Bytes offender = test::tcpV6({.payload = test::pattern(1440)});
  Packet answer = tooBig(offender);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer.size(), 1280u);
  InnerPacket p = parseInnerPacket(answer.view()).value();
  EXPECT_EQ(p.size, 1280u);
  EXPECT_EQ(p.src, test::addr("2001:db8::2")) << "where the offender was to go";
  EXPECT_EQ(p.dst, test::addr("2001:db8::1"));
  EXPECT_EQ(p.protocol, ip::kIcmpV6);
  EXPECT_EQ(p.hopLimit, 64);
  ByteView icmp = answer.view().subspan(40);
  EXPECT_EQ(icmp[0], 2);
  EXPECT_EQ(icmp[1], 0);
  EXPECT_EQ(load32(&icmp[4]), 1400u);
  EXPECT_TRUE(test::transportChecksumValid(answer.view()));
  expectQuote(answer.view(), 48, offender);
}

TEST_F(IcmpTest, SmallOffenderIsQuotedWholeWithoutTrailingBytes) {
  for (Bytes offender :
       {test::tcpV4({.payload = {1, 2, 3}}), test::tcpV6({.payload = {1, 2, 3}})}) {
    size_t size = offender.size();
    bool isV4 = size == 43;
    offender.resize(size + 9);
    Packet answer = tooBig(offender);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer.size(), size + (isV4 ? 28 : 48));
    if (isV4) {
      EXPECT_EQ(foldSum(sumBytes(answer.view().subspan(20))), 0xffff);
    } else {
      EXPECT_TRUE(test::transportChecksumValid(answer.view()));
    }
  }
}

TEST_F(IcmpTest, UnreachableCodes) {
  struct Row {
    Unreachable why;
    uint8_t code4, code6;
  };
  for (Row row : {Row{Unreachable::kNoRoute, 0, 0}, Row{Unreachable::kHost, 1, 3},
                  Row{Unreachable::kProhibited, 13, 1}, Row{Unreachable::kSource, 13, 5}}) {
    Packet four = buildUnreachable(pool_, test::tcpV4({}), row.why);
    ASSERT_TRUE(four);
    EXPECT_EQ(four.data()[20], 3);
    EXPECT_EQ(four.data()[21], row.code4);
    EXPECT_EQ(load32(four.data() + 24), 0u);
    EXPECT_EQ(foldSum(sumBytes(four.view().subspan(20))), 0xffff);
    Packet six = buildUnreachable(pool_, test::tcpV6({}), row.why);
    ASSERT_TRUE(six);
    EXPECT_EQ(six.data()[40], 1);
    EXPECT_EQ(six.data()[41], row.code6);
    EXPECT_EQ(load32(six.data() + 44), 0u);
    EXPECT_TRUE(test::transportChecksumValid(six.view()));
  }
}

TEST_F(IcmpTest, IcmpErrorsAreNotAnswered) {
  for (int type = 0; type < 256; ++type) {
    Bytes message(8);
    message[0] = static_cast<uint8_t>(type);
    bool error4 = type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
    EXPECT_EQ(answered(test::v4({.protocol = ip::kIcmp}, message)), !error4) << type;
    bool error6 = type < 128 || type == 137;
    EXPECT_EQ(answered(test::v6({.nextHeader = ip::kIcmpV6}, message)), !error6) << type;
    EXPECT_TRUE(answered(test::v4({.protocol = ip::kIcmpV6}, message)));
  }
  EXPECT_FALSE(answered(test::v4({.protocol = ip::kIcmp}, {})));
  EXPECT_FALSE(answered(test::v6({.nextHeader = ip::kIcmpV6}, {})));
}

TEST_F(IcmpTest, IcmpV6ErrorBehindExtensionHeadersIsNotAnswered) {
  Bytes payload = {ip::kIcmpV6, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_FALSE(answered(test::v6({.nextHeader = ip::kDestinationOptions}, payload)));
}

TEST_F(IcmpTest, OnlyTheFirstFragmentIsAnswered) {
  EXPECT_TRUE(answered(test::v4({.fragment = ip::kV4MoreFragments}, test::pattern(16))));
  EXPECT_FALSE(answered(test::v4({.fragment = ip::kV4MoreFragments | 2}, test::pattern(16))));
  EXPECT_FALSE(answered(test::v4({.fragment = 2}, test::pattern(16))));
}

// The source address that the answer would have.
TEST_F(IcmpTest, DestinationsThatNameNoHostAreNotAnswered) {
  for (const char* dst :
       {"0.0.0.0", "127.0.0.1", "224.0.0.1", "239.255.255.255", "255.255.255.255"}) {
    EXPECT_FALSE(answered(test::v4({.dst = dst}, test::udp(1, 2, {})))) << dst;
  }
  EXPECT_TRUE(answered(test::v4({.dst = "223.255.255.255"}, test::udp(1, 2, {}))));
  for (const char* dst : {"::", "::1", "ff02::1"}) {
    EXPECT_FALSE(answered(test::v6({.dst = dst}, test::udp(1, 2, {})))) << dst;
  }
  EXPECT_TRUE(answered(test::v6({.dst = "fe80::1"}, test::udp(1, 2, {}))));
}

TEST_F(IcmpTest, SourcesThatNameNoHostAreNotAnswered) {
  for (const char* src :
       {"0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"}) {
    EXPECT_FALSE(answered(test::v4({.src = src}, test::udp(1, 2, {})))) << src;
  }
  for (const char* src : {"::", "::1", "ff02::1"}) {
    EXPECT_FALSE(answered(test::v6({.src = src}, test::udp(1, 2, {})))) << src;
  }
  EXPECT_TRUE(answered(test::v4({.src = "223.0.0.1"}, test::udp(1, 2, {}))));
  EXPECT_TRUE(answered(test::v6({.src = "::2"}, test::udp(1, 2, {}))));
}

TEST_F(IcmpTest, MalformedGivesNothing) {
  EXPECT_FALSE(answered(Bytes{}));
  EXPECT_FALSE(answered(Bytes(40, 0x45)));
  EXPECT_EQ(pool_.inUse(), 0u);
}

TEST_F(IcmpTest, PoolBoundsTheAnswer) {
  PacketPool small(100, 1);
  Bytes offender = test::tcpV4({.payload = test::pattern(1000)});
  Packet answer = buildTooBig(small, offender, 1400);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer.size(), 100u);
  EXPECT_FALSE(buildTooBig(small, offender, 1400)) << "exhausted";
  PacketPool tiny(27, 1);
  EXPECT_FALSE(buildTooBig(tiny, offender, 1400));
}

TEST_F(IcmpTest, AnErrorTellsWhichTcpConnectionItIsAbout) {
  for (const Bytes& segment : {test::tcpV4({}), test::tcpV6({})}) {
    const FlowKey key = parseInnerPacket(segment)->flowKey();
    for (Unreachable why : {Unreachable::kNoRoute, Unreachable::kHost, Unreachable::kProhibited}) {
      Packet error = buildUnreachable(pool_, segment, why);
      ASSERT_TRUE(error);
      EXPECT_EQ(unreachableTcp(error.view()), key);
    }
    EXPECT_FALSE(unreachableTcp(segment)) << "no error";
    Packet error = buildUnreachable(pool_, segment, Unreachable::kHost);
    const size_t headers = error.size() - segment.size();
    for (size_t n = 0; n < headers + (key.family == Address::Family::kV6 ? 40 : 20) + 4; ++n)
      EXPECT_FALSE(unreachableTcp(error.view().first(n))) << n << " bytes of it";
  }
}

TEST_F(IcmpTest, OtherErrorsAreAboutNoTcpConnection) {
  EXPECT_FALSE(unreachableTcp(tooBig(test::tcpV4({})).view()));
  EXPECT_FALSE(unreachableTcp(tooBig(test::tcpV6({})).view()));
  for (size_t version : {0, 1}) {
    Packet error =
        buildUnreachable(pool_, version ? test::tcpV6({}) : test::tcpV4({}), Unreachable::kHost);
    const size_t quote = version ? 48 : 28, protocol = version ? 6 : 9;
    error.data()[quote + protocol] = ip::kUdp;
    EXPECT_FALSE(unreachableTcp(error.view()));
    error.data()[quote + protocol] = ip::kTcp;
    EXPECT_TRUE(unreachableTcp(error.view()));
    error.data()[quote] = 0x51;
    EXPECT_FALSE(unreachableTcp(error.view())) << "of another version";
  }
}

// The forwarder's tests have what passes; here is what could be read wrongly.
TEST_F(IcmpTest, ARoutersErrorTellsTheFlowOfWhatItQuotes) {
  for (const Bytes& segment : {test::tcpV4({.payload = test::pattern(1400)}),
                               test::tcpV6({.payload = test::pattern(1400)})}) {
    Packet error = tooBig(segment);
    InnerPacket p = parseInnerPacket(error.view()).value();
    FlowKey key = parseInnerPacket(segment)->flowKey();
    EXPECT_EQ(flowOfRouterError(error.view(), p), key);
    const size_t ports = p.l4Offset + 8 + (p.isV6() ? 40 : 20) + 4;
    for (size_t size = p.l4Offset; size < ports; ++size) {
      InnerPacket cut = p;
      cut.size = static_cast<uint32_t>(size);
      cut.l4Length = cut.size - cut.l4Offset;
      EXPECT_NE(flowOfRouterError(error.view().first(size), cut), key) << size;
    }
    InnerPacket fragment = p;
    fragment.isFragment = true;
    EXPECT_FALSE(flowOfRouterError(error.view(), fragment));
    EXPECT_FALSE(flowOfRouterError(segment, *parseInnerPacket(segment))) << "no error";
  }
}

TEST_F(IcmpTest, ARoutersErrorAboutAFragmentIsOfTheFragmentsFlow) {
  for (bool v6 : {false, true}) {
    Bytes ports{0, 5, 0, 6, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    Bytes extension{ip::kUdp, 0, 0, 1, 0, 0, 0, 9};  // the first fragment
    if (v6) ports.insert(ports.begin(), extension.begin(), extension.end());
    Bytes fragment = v6 ? test::v6({.nextHeader = ip::kFragment}, ports)
                        : test::v4({.fragment = ip::kV4MoreFragments}, ports);
    Packet error = tooBig(fragment);
    ASSERT_TRUE(error);
    FlowKey key = parseInnerPacket(fragment)->flowKey();
    EXPECT_EQ(key.sport, 0);
    EXPECT_EQ(flowOfRouterError(error.view(), *parseInnerPacket(error.view())), key);
  }
}

}  // namespace
}  // namespace braid::icmp_test
