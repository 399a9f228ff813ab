#include "inet/segmentation.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/random.h"
#include "inet/ip.h"
#include "tests/unit/inet/packets.h"

namespace braid::packet_run_test {
namespace {

using test::Bytes;

constexpr uint8_t kAck = TcpFields::kAck;
constexpr uint8_t kPush = TcpFields::kAck | TcpFields::kPsh;
const Bytes kTimestamps{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2};

struct Segment {
  uint32_t at = 0;  ///< behind the first
  size_t size = 100;
  uint8_t flags = kAck;
};

struct PacketRunTest : testing::TestWithParam<bool> {
  PacketRun run{0};
  Bytes first;  ///< must stay where it is

  bool begin(const Bytes& packet) {
    first = packet;
    return run.begin(first);
  }

  Bytes packet(const Segment& s, const Bytes& options = kTimestamps) const {
    Bytes payload(s.size);
    for (size_t i = 0; i < s.size; ++i) payload[i] = static_cast<uint8_t>((s.at + i) * 31);
    test::Tcp tcp{
        .seq = 0xffffff80 + s.at, .flags = s.flags, .options = options, .payload = payload};
    return GetParam() ? test::tcpV6(tcp) : test::tcpV4(tcp);
  }
  /// The super-packet that represents all packets, as the kernel gets it.
  Bytes whole(std::vector<Bytes> packets) {
    EXPECT_TRUE(run.begin(packets[0]));
    for (size_t i = 1; i < packets.size(); ++i) EXPECT_TRUE(run.extend(packets[i])) << i;
    EXPECT_EQ(run.count(), packets.size());
    run.finish(packets[0]);
    Bytes all = packets[0];
    for (size_t i = 1; i < packets.size(); ++i)
      all.insert(all.end(), packets[i].begin() + static_cast<ptrdiff_t>(run.headers()),
                 packets[i].end());
    return all;
  }
  /// The packets into which the kernel would split it.
  static std::vector<Bytes> cut(const Bytes& packet, size_t payload) {
    auto segments = PacketSegmenter::of(packet, 0, payload);
    EXPECT_TRUE(segments);
    std::vector<Bytes> all;
    for (size_t size; (size = segments->nextSize()) > 0;) {
      all.emplace_back(size);
      segments->write(all.back().data());
    }
    EXPECT_EQ(all.size(), segments->count());
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Families, PacketRunTest, testing::Bool(),
                         [](const auto& i) { return i.param ? "v6" : "v4"; });

TEST_P(PacketRunTest, SegmentsInARowAreOnePacketAndComeBackAsTheyWere) {
  Random random(1);
  for (int round = 0; round < 100; ++round) {
    size_t each = 1 + random.below(1400), count = 2 + random.below(40);
    std::vector<Bytes> packets;
    for (size_t i = 0; i < count; ++i) {
      bool last = i + 1 == count;
      size_t size = last ? 1 + random.below(each) : each;
      packets.push_back(packet(
          {static_cast<uint32_t>(i * each), size, last && random.chance(0.5) ? kPush : kAck}));
      // Atomic packets may have any identification (RFC 6864); the kernel counts up.
      if (!GetParam()) {
        store16(&packets.back()[4], static_cast<uint16_t>(0x1234 + i));
        test::fixV4Checksum(packets.back());
      }
    }
    ASSERT_EQ(cut(whole(packets), each), packets) << "round " << round;
  }
}

TEST_P(PacketRunTest, TheChecksumIsLeftToTheKernel) {
  Bytes all = whole({packet({0}), packet({100})});
  size_t start = GetParam() ? 40 : 20;
  EXPECT_TRUE(completeChecksum(all, start, ip::kTcpChecksum));
  auto ip = parseInnerPacket(all);
  ASSERT_TRUE(ip && ip->tcp);
  EXPECT_EQ(ip->tcp->payloadLength, 200u);
  uint64_t pseudo = pseudoHeaderSum(ip->src, ip->dst, ip::kTcp, ip->l4Length);
  EXPECT_EQ(foldSum(sumBytes(ByteView(all).subspan(start), pseudo)), 0xffff);
}

TEST_P(PacketRunTest, AShorterSegmentAndPshEndIt) {
  ASSERT_TRUE(begin(packet({0})));
  EXPECT_TRUE(run.extend(packet({100, 50})));
  EXPECT_FALSE(run.extend(packet({150, 50})));
  ASSERT_TRUE(begin(packet({0})));
  EXPECT_TRUE(run.extend(packet({100, 100, kPush})));
  EXPECT_FALSE(run.extend(packet({200})));
  ASSERT_TRUE(begin(packet({0, 100, kPush})));
  EXPECT_FALSE(run.extend(packet({100})));
}

TEST_P(PacketRunTest, WhatDiffersFromTheFirstDoesNotJoin) {
  const Bytes good = packet({100});
  size_t tcp = GetParam() ? 40 : 20;
  struct Change {
    const char* what;
    std::function<void(Bytes&)> make;
  };
  const Change changes[] = {
      {"source port", [&](Bytes& b) { b[tcp + 1] ^= 1; }},
      {"sequence number", [&](Bytes& b) { b[tcp + 7] ^= 1; }},
      {"acknowledgment", [&](Bytes& b) { b[tcp + 11] ^= 1; }},
      {"FIN", [&](Bytes& b) { b[tcp + 13] |= TcpFields::kFin; }},
      {"CWR", [&](Bytes& b) { b[tcp + 13] |= TcpFields::kCwr; }},
      {"ECE", [&](Bytes& b) { b[tcp + 13] |= TcpFields::kEce; }},
      {"accurate ECN", [&](Bytes& b) { b[tcp + 12] |= 1; }},
      {"window", [&](Bytes& b) { b[tcp + 15] ^= 1; }},
      {"timestamp", [&](Bytes& b) { b[tcp + 20 + 7] ^= 1; }},
      {"ECN and class", [&](Bytes& b) { b[1] ^= GetParam() ? 0x10 : 1; }},
      {"hop limit", [&](Bytes& b) { --b[GetParam() ? 7 : 8]; }},
      {"source", [&](Bytes& b) { b[GetParam() ? 23 : 15] ^= 1; }},
  };
  ASSERT_TRUE(begin(packet({0})));
  for (const Change& change : changes) {
    Bytes b = good;
    change.make(b);
    store16(&b[tcp + 16], 0);
    auto ip = parseInnerPacket(b);
    ASSERT_TRUE(ip);
    store16(&b[tcp + 16], transportChecksum(ip->src, ip->dst, ip::kTcp, ByteView(b).subspan(tcp)));
    if (!GetParam()) test::fixV4Checksum(b);
    EXPECT_FALSE(run.extend(b)) << change.what;
  }
  EXPECT_FALSE(run.extend(packet({100, 101}))) << "longer than the first";
  EXPECT_FALSE(run.extend(packet({100, 0}))) << "an ACK alone";
  EXPECT_FALSE(run.extend(packet({100}, {}))) << "no options";
  EXPECT_TRUE(run.extend(good));
}

// The kernel would compute a right checksum for a packet that was damaged on its way.
TEST_P(PacketRunTest, ADamagedPacketIsNoPartOfIt) {
  Bytes bad = packet({100});
  bad.back() ^= 1;
  ASSERT_TRUE(begin(packet({0})));
  EXPECT_FALSE(run.extend(bad));
  EXPECT_TRUE(run.extend(packet({100}))) << "it did not end the run";
  ASSERT_TRUE(begin(bad)) << "alone it goes as it is";
  EXPECT_FALSE(run.extend(packet({200})));
  EXPECT_EQ(run.count(), 1u);
  EXPECT_FALSE(run.extend(packet({200}))) << "asked again";
  if (GetParam()) return;
  bad = packet({100});
  bad[10] ^= 1;  // the IP header's own
  ASSERT_TRUE(begin(packet({0})));
  EXPECT_FALSE(run.extend(bad));
}

TEST_P(PacketRunTest, OnlyPlainSegmentsBeginOne) {
  for (uint8_t flags :
       {TcpFields::kSyn, TcpFields::kFin, TcpFields::kRst, TcpFields::kUrg, TcpFields::kCwr})
    EXPECT_FALSE(begin(packet({0, 100, static_cast<uint8_t>(kAck | flags)}))) << int{flags};
  EXPECT_FALSE(begin(packet({0, 0}))) << "no payload";
  EXPECT_FALSE(begin(test::v4({}, test::udp(1, 2, Bytes(50)))));
  EXPECT_FALSE(begin(Bytes(10)));
  Bytes padded = packet({0});
  padded.push_back(0);
  EXPECT_FALSE(begin(padded)) << "bytes behind the packet";
}

TEST_P(PacketRunTest, AnIdentificationThatMeansSomethingCountsUp) {
  if (GetParam()) return;
  auto fragmentable = [&](uint32_t at, uint16_t id) {
    Bytes b = packet({at});
    store16(&b[4], id);
    store16(&b[6], 0);
    test::fixV4Checksum(b);
    return b;
  };
  ASSERT_TRUE(begin(fragmentable(0, 0xffff)));
  EXPECT_FALSE(run.extend(fragmentable(100, 1)));
  EXPECT_TRUE(run.extend(fragmentable(100, 0)));
  EXPECT_TRUE(run.extend(fragmentable(200, 1)));
}

TEST_P(PacketRunTest, ItIsBounded) {
  ASSERT_TRUE(begin(packet({0, 10})));
  size_t joined = 1;
  while (run.extend(packet({static_cast<uint32_t>(10 * joined), 10}))) ++joined;
  EXPECT_EQ(joined, PacketRun::kMost);
  ASSERT_TRUE(begin(packet({0, 9000})));
  joined = 1;
  while (run.extend(packet({static_cast<uint32_t>(9000 * joined), 9000}))) ++joined;
  EXPECT_EQ(joined, 7u) << "65,535 bytes";
}

TEST_P(PacketRunTest, TheLinkHeaderIsComparedAndKept) {
  PacketRun frames(14);
  auto frame = [&](const Segment& s, uint8_t mac) {
    Bytes b(14, 2);
    b[11] = mac;
    store16(&b[12], GetParam() ? 0x86dd : 0x0800);
    test::append(b, packet(s));
    return b;
  };
  Bytes head = frame({0}, 7);
  ASSERT_TRUE(frames.begin(head));
  EXPECT_FALSE(frames.extend(frame({100}, 8)));
  EXPECT_TRUE(frames.extend(frame({100}, 7)));
  RunOffload offload = frames.finish(head);
  EXPECT_EQ(offload.checksumStart, 14 + (GetParam() ? 40 : 20));
  EXPECT_EQ(offload.headers, frames.headers());
  EXPECT_EQ(offload.payload, 100);
  EXPECT_EQ(offload.isV6, GetParam());
}

// A VLAN tag of 0x4500 and the bytes behind it look like an IPv4 header, in which finish() changes
// the length. That would be the EtherType behind the tag, which the gateway has already checked.
TEST_P(PacketRunTest, WhatTheEtherTypeDoesNotNameBeginsNone) {
  for (uint16_t type : {0x8100, 0x88a8, 0x0806, GetParam() ? 0x0800 : 0x86dd}) {
    Bytes frame(14, 2);
    store16(&frame[12], type);
    test::append(frame, packet({0}));
    EXPECT_FALSE(PacketRun(14).begin(frame)) << type;
  }
}

// ---- datagrams

struct DatagramRunTest : PacketRunTest {
  DatagramRunTest() { run.setTakesUdp(true); }

  Bytes datagram(size_t size, uint8_t from = 0, uint16_t port = 53) const {
    Bytes payload(size);
    for (size_t i = 0; i < size; ++i) payload[i] = static_cast<uint8_t>(from + i * 31);
    Bytes udp = test::udp(port, 4433, payload);
    bool isV6 = GetParam();
    test::V4 v4{.fragment = ip::kV4DontFragment};
    test::V6 v6;
    Address src = test::addr(isV6 ? v6.src : v4.src), dst = test::addr(isV6 ? v6.dst : v4.dst);
    store16(&udp[ip::kUdpChecksum], transportChecksum(src, dst, ip::kUdp, udp));
    return isV6 ? test::v6(v6, udp) : test::v4(v4, udp);
  }
};

INSTANTIATE_TEST_SUITE_P(Families, DatagramRunTest, testing::Bool(),
                         [](const auto& i) { return i.param ? "v6" : "v4"; });

TEST_P(DatagramRunTest, DatagramsOfOneSizeAreOnePacketAndComeBackAsTheyWere) {
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    size_t each = 1 + random.below(1400), count = 2 + random.below(40);
    std::vector<Bytes> packets;
    for (size_t i = 0; i < count; ++i) {
      size_t size = i + 1 == count ? 1 + random.below(each) : each;
      packets.push_back(datagram(size, static_cast<uint8_t>(i)));
      if (!GetParam()) {
        store16(&packets.back()[ip::kV4Identification], static_cast<uint16_t>(0x1234 + i));
        test::fixV4Checksum(packets.back());
      }
    }
    ASSERT_EQ(cut(whole(packets), each), packets) << "round " << round;
  }
}

TEST_P(DatagramRunTest, TheKernelIsToldWhatItIs) {
  Bytes head = datagram(100);
  ASSERT_TRUE(run.begin(head));
  ASSERT_TRUE(run.extend(datagram(100)));
  RunOffload offload = run.finish(head);
  EXPECT_TRUE(offload.isUdp);
  EXPECT_EQ(offload.isV6, GetParam());
  EXPECT_EQ(offload.payload, 100);
  EXPECT_EQ(offload.headers, GetParam() ? 48 : 28);
  EXPECT_EQ(offload.checksumStart, GetParam() ? 40 : 20);
  EXPECT_EQ(offload.checksumOffset, ip::kUdpChecksum);
  EXPECT_EQ(load16(&head[offload.checksumStart + ip::kUdpLength]), 208);
}

TEST_P(DatagramRunTest, AShorterOneEndsIt) {
  ASSERT_TRUE(begin(datagram(100)));
  EXPECT_TRUE(run.extend(datagram(50)));
  EXPECT_FALSE(run.extend(datagram(50)));
  ASSERT_TRUE(begin(datagram(100)));
  EXPECT_FALSE(run.extend(datagram(101)));
}

TEST_P(DatagramRunTest, WhatTheKernelWouldChangeDoesNotJoin) {
  size_t udp = GetParam() ? 40 : 20;
  ASSERT_TRUE(begin(datagram(100)));
  EXPECT_FALSE(run.extend(datagram(100, 0, 54))) << "another port";
  EXPECT_FALSE(run.extend(packet({0}))) << "a TCP segment";
  Bytes without = datagram(100);
  store16(&without[udp + ip::kUdpChecksum], 0);
  EXPECT_FALSE(run.extend(without)) << "it would be given a checksum";
  Bytes damaged = datagram(100);
  damaged.back() ^= 1;
  EXPECT_FALSE(run.extend(damaged));
  Bytes hidden = datagram(100);
  store16(&hidden[udp + ip::kUdpLength], 60);  // bytes behind the datagram, within the IP packet
  EXPECT_FALSE(run.extend(hidden));
  EXPECT_TRUE(run.extend(datagram(100)));
  EXPECT_FALSE(begin(without));
  EXPECT_FALSE(begin(hidden));
  EXPECT_FALSE(begin(datagram(0))) << "no payload";
  ASSERT_TRUE(begin(packet({0})));
  EXPECT_FALSE(run.extend(datagram(100)));
}

TEST_P(DatagramRunTest, ThereIsNoneForAKernelThatDoesNotKnowIt) {
  run.setTakesUdp(false);
  EXPECT_FALSE(begin(datagram(100)));
}

TEST_P(DatagramRunTest, AFlowHasOneNumberAndOthersHaveOthers) {
  auto number = runNumber(datagram(100), 0);
  ASSERT_TRUE(number);
  EXPECT_EQ(runNumber(datagram(1, 9), 0), number);
  EXPECT_NE(runNumber(datagram(100, 0, 54), 0), number);
  EXPECT_EQ(runNumber(packet({0, 0}), 0), runNumber(packet({500, 100, kPush}), 0))
      << "an ACK goes with its flow's data";
  EXPECT_NE(runNumber(packet({0}), 0), number);
  Bytes frame(14, 2);
  test::append(frame, datagram(100));
  EXPECT_EQ(runNumber(frame, 14), number);
}

TEST_P(DatagramRunTest, WhatIsNoWholePacketOfAFlowHasNone) {
  EXPECT_FALSE(runNumber(Bytes(10), 0));
  EXPECT_FALSE(runNumber(Bytes(), 14));
  EXPECT_FALSE(runNumber(ByteView(datagram(100)).first(GetParam() ? 43 : 23), 0));
  EXPECT_FALSE(runNumber(test::v4({.fragment = 100}, Bytes(50)), 0));
  EXPECT_FALSE(runNumber(test::v4({.fragment = ip::kV4MoreFragments}, Bytes(50)), 0));
  EXPECT_FALSE(runNumber(test::v4({.protocol = ip::kIcmp}, Bytes(50)), 0));
  EXPECT_FALSE(runNumber(test::v4({.options = Bytes(4)}, Bytes(50)), 0));
  EXPECT_FALSE(runNumber(test::v6({.nextHeader = ip::kFragment}, Bytes(50)), 0));
}

TEST(MayBeOfSomeRunTest, WholePacketsOfAnotherProtocolAreNot) {
  for (size_t link : {size_t{0}, size_t{14}}) {
    auto may = [&](const Bytes& packet) {
      Bytes frame(link, 2);
      test::append(frame, packet);
      return mayBeOfSomeRun(frame, link);
    };
    EXPECT_FALSE(may(test::v4({.protocol = ip::kEsp}, Bytes(50))));
    EXPECT_FALSE(may(test::v4({.protocol = ip::kIcmp}, Bytes(50))));
    EXPECT_FALSE(may(test::v6({.nextHeader = ip::kEsp}, Bytes(50))));
    EXPECT_FALSE(may(test::v6({.nextHeader = ip::kIcmpV6}, Bytes(50))));
    EXPECT_TRUE(may(test::v4({.protocol = ip::kEsp, .fragment = 100}, Bytes(50))));
    EXPECT_TRUE(may(test::v4({.protocol = ip::kTcp}, Bytes(50))));
    EXPECT_TRUE(may(test::v4({.options = Bytes(4)}, Bytes(50))));
    EXPECT_TRUE(may(test::v6({.nextHeader = ip::kFragment}, Bytes(50))));
    EXPECT_TRUE(may(Bytes(10)));
  }
}

// ---- the segmenter's own rules

TEST_P(PacketRunTest, FinAndPshAreOnTheLastSegmentCwrOnTheFirst) {
  uint8_t all = kPush | TcpFields::kFin | TcpFields::kCwr;
  std::vector<Bytes> segments = cut(packet({0, 250, all}), 100);
  ASSERT_EQ(segments.size(), 3u);
  size_t flags = GetParam() ? 53 : 33;
  EXPECT_EQ(segments[0][flags], kAck | TcpFields::kCwr);
  EXPECT_EQ(segments[1][flags], kAck);
  EXPECT_EQ(segments[2][flags], kPush | TcpFields::kFin);
  for (const Bytes& segment : segments) {
    auto ip = parseInnerPacket(segment);
    ASSERT_TRUE(ip && ip->tcp);
    uint64_t pseudo = pseudoHeaderSum(ip->src, ip->dst, ip::kTcp, ip->l4Length);
    EXPECT_EQ(foldSum(sumBytes(ByteView(segment).subspan(ip->l4Offset), pseudo)), 0xffff);
    if (!GetParam()) {
      EXPECT_EQ(foldSum(sumBytes(ByteView(segment).first(20))), 0xffff);
    }
  }
}

TEST_P(PacketRunTest, WhatIsNoWholePacketWithPayloadIsNotCut) {
  EXPECT_FALSE(PacketSegmenter::of(packet({0}), 0, 0));
  EXPECT_FALSE(PacketSegmenter::of(packet({0, 0}), 0, 100));
  EXPECT_FALSE(PacketSegmenter::of(packet({0}), 2000, 100));
  EXPECT_FALSE(PacketSegmenter::of(test::v4({.protocol = ip::kEsp}, Bytes(50)), 0, 10));
  EXPECT_FALSE(PacketSegmenter::of(test::v4({}, test::udp(1, 2, {})), 0, 10));
  EXPECT_FALSE(PacketSegmenter::of(
      test::v4({.fragment = ip::kV4MoreFragments}, test::udp(1, 2, Bytes(50))), 0, 10));
  Bytes cutOff = packet({0});
  cutOff.resize(30);
  EXPECT_FALSE(PacketSegmenter::of(cutOff, 0, 10));
}

// The sender of a frame with a virtio header on a bridge may put any values into that header.
TEST(PacketSegmenterTest, AUdpPacketShorterThanItsHeaderIsNotCut) {
  for (size_t l4 = 0; l4 <= ip::kUdpHeader; ++l4) {
    for (size_t behind : {size_t{0}, size_t{30}}) {  // padding of the frame
      std::vector<uint8_t> packet(ip::kV4Header + l4 + behind, 1);
      std::vector<uint8_t> header{0x45, 0,        0, static_cast<uint8_t>(ip::kV4Header + l4),
                                  0,    0,        0, 0,
                                  64,   ip::kUdp, 0, 0,
                                  10,   9,        0, 1,
                                  10,   9,        0, 2};
      store16(&header[ip::kV4Checksum], internetChecksum(header));
      std::copy(header.begin(), header.end(), packet.begin());
      EXPECT_FALSE(PacketSegmenter::of(packet, 0, 1)) << l4;
    }
  }
}

// Found by review. With a Routing header, the checksum is computed with the address in that header
// (RFC 8200 section 8.1).
TEST(PacketSegmenterTest, BehindARoutingHeaderTheChecksumIsForTheLastDestination) {
  constexpr uint8_t kRouting = 43;
  constexpr size_t kHeader = 24, kTcpChecksum = ip::kV6Header + kHeader + ip::kTcpChecksum;
  Bytes payload(250, 7);
  Bytes packet = test::tcpV6({.seq = 5, .flags = kAck, .payload = payload});
  Address source = parseInnerPacket(packet)->src, last = *Address::parse("2001:db8:77::1");
  Bytes routing{ip::kTcp, 2, 4, 1, 0, 0, 0, 0};
  routing.insert(routing.end(), last.bytes.begin(), last.bytes.end());
  packet.insert(packet.begin() + ip::kV6Header, routing.begin(), routing.end());
  packet[6] = kRouting;
  store16(&packet[ip::kV6PayloadLength], static_cast<uint16_t>(packet.size() - ip::kV6Header));
  // The value that the kernel leaves in the checksum field: the sum of the pseudo header.
  size_t length = packet.size() - ip::kV6Header - kHeader;
  store16(&packet[kTcpChecksum],
          foldSum(sumBytes(source.bytes) + sumBytes(last.bytes) + length + ip::kTcp));
  auto segments = PacketSegmenter::of(packet, 0, 100);
  ASSERT_TRUE(segments);
  ASSERT_EQ(segments->count(), 3u);
  for (size_t size; (size = segments->nextSize()) > 0;) {
    Bytes segment(size);
    segments->write(segment.data());
    EXPECT_EQ(transportChecksum(source, last, ip::kTcp,
                                ByteView(segment).subspan(ip::kV6Header + kHeader)),
              0);
  }
}

TEST_P(PacketRunTest, OneReadDoesNotTakeAllBuffers) {
  constexpr size_t kSize = 3 * PacketSegmenter::kMost;
  Bytes large = packet({.size = kSize});
  EXPECT_FALSE(PacketSegmenter::of(large, 0, 1));
  EXPECT_FALSE(PacketSegmenter::of(large, 0, 2));
  EXPECT_EQ(cut(large, 3).size(), PacketSegmenter::kMost);
}

TEST(CompleteChecksumTest, StaysWithinThePacketAndIsNeverZero) {
  Bytes bytes(20);
  EXPECT_FALSE(completeChecksum(bytes, 19, 0));
  EXPECT_FALSE(completeChecksum(bytes, 21, 0));
  EXPECT_FALSE(completeChecksum(bytes, 10, 9));
  Bytes ones{0xff, 0xff, 0, 0};
  EXPECT_TRUE(completeChecksum(ones, 0, 2));
  EXPECT_EQ(load16(&ones[2]), 0xffff);
}

}  // namespace
}  // namespace braid::packet_run_test
