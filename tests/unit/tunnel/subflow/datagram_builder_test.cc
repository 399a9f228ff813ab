#include "tunnel/subflow/datagram_builder.h"

#include "tests/unit/tunnel/subflow/subflow_bench.h"

namespace braid::datagram_builder_test {
namespace {

struct DatagramBuilderTest : SubflowBench {
  Datagram out;
  bool finish(DatagramBuilder& build) { return build.finish(*sealer, out, now); }
};

TEST_F(DatagramBuilderTest, ANumberIsUsedUpByFinishOnly) {
  Subflow& s = open(0);
  PacketNumber pn = s.sender().sent().next();
  { DatagramBuilder thrownAway(s, pool.allocate()); }
  EXPECT_EQ(s.sender().sent().next(), pn);
  DatagramBuilder build(s, pool.allocate());
  EXPECT_EQ(build.packetNumber(), pn);
  build.addTracked(PingFrame{});
  ASSERT_TRUE(finish(build));
  EXPECT_EQ(s.sender().sent().next(), pn + 1);
  EXPECT_EQ(readHeader(out.bytes.view())->packetNumber, pn.value());
  EXPECT_EQ(s.sender().sent().at(pn).bytes, out.bytes.size());
  EXPECT_EQ(s.sender().sent().at(pn).state, SentPacket::State::kInFlight);
}

TEST_F(DatagramBuilderTest, TheLargestPacketThatFitsFillsThePath) {
  Subflow& s = open(0);
  size_t largest = s.mtu().current() - kDatagramOverhead;
  EXPECT_TRUE(fits(largest, s));
  EXPECT_FALSE(fits(largest + 1, s));
  DatagramBuilder build(s, pool.allocate());
  EXPECT_TRUE(build.fits(largest));
  EXPECT_FALSE(build.fits(largest + 1));
  put(build, make(largest));
  ASSERT_TRUE(finish(build));
  EXPECT_EQ(out.bytes.size(), s.mtu().current());
}

TEST_F(DatagramBuilderTest, APathThatStillSearchesMayCarryMore) {
  Subflow& s = open(0);
  ASSERT_TRUE(s.mtu().searching());
  EXPECT_TRUE(mayFit(s.mtu().current(), s));
  options.outerMtu = 1400;
  Subflow& fixed = open(1);
  ASSERT_FALSE(fixed.mtu().searching());
  EXPECT_FALSE(mayFit(fixed.mtu().current(), fixed));
}

TEST_F(DatagramBuilderTest, FramesArriveInTheirOrder) {
  Subflow& s = open(0);
  s.onPacket(5_pn, true, Ecn::kNotEct, 100, s.route(), now);
  DatagramBuilder build(s, pool.allocate());
  build.addAck(now);
  put(build, make(50));
  build.add(RecoveredFrame{3_subflow, 9_pn, 2});
  put(build, make(80));
  EXPECT_EQ(build.data().size(), 2u);
  ASSERT_TRUE(finish(build));
  std::vector<WireFrame> frames = read(out);
  ASSERT_EQ(frames.size(), 4u);
  EXPECT_EQ(std::get<AckFrame>(frames[0]).ranges[0].last, 5_pn);
  EXPECT_EQ(std::get<DataFrame>(frames[1]).payload.size(), 50u);
  EXPECT_EQ(std::get<RecoveredFrame>(frames[2]).first, 9_pn);
  EXPECT_EQ(std::get<DataFrame>(frames[3]).payload.size(), 80u);
  EXPECT_EQ(s.sender().sent().at(build.packetNumber()).dataCount, 2);
}

TEST_F(DatagramBuilderTest, SixPacketsAtMost) {
  Subflow& s = open(0);
  DatagramBuilder build(s, pool.allocate());
  for (size_t i = 0; i < kMaxDataPerDatagram; ++i) {
    EXPECT_FALSE(build.isFull());
    put(build, make(10));
  }
  EXPECT_TRUE(build.isFull());
  EXPECT_FALSE(build.fits(1));
  ASSERT_TRUE(finish(build));
  EXPECT_EQ(read(out).size(), kMaxDataPerDatagram);
}

TEST_F(DatagramBuilderTest, OnlyWhatAsksForAnAckIsTracked) {
  Subflow& s = open(0);
  DatagramBuilder build(s, pool.allocate());
  build.add(CloseFrame{});
  ASSERT_TRUE(finish(build));
  EXPECT_EQ(s.sender().sent().at(build.packetNumber()).state, SentPacket::State::kUntracked);
  EXPECT_EQ(s.sender().flight().bytes(), 0u);
}

TEST_F(DatagramBuilderTest, CopiesAreMarkedInTheSentMap) {
  Subflow& s = open(0);
  UnitRef d = make();
  send(s, {d});
  DatagramBuilder build(s, pool.allocate());
  build.addCopy(d);
  dataTracker.onCopied(d);
  ASSERT_TRUE(finish(build));
  EXPECT_EQ(s.sender().sent().at(build.packetNumber()).role, SentPacket::Role::kCopy);
}

TEST_F(DatagramBuilderTest, AnMtuProbeHasItsSizeWhateverThePathCarriesNow) {
  Subflow& s = open(0);
  DatagramBuilder build(s, pool.allocate(), s.route(), s.mtu().current() + 100);
  build.makeMtuProbe(s.mtu().current() + 100);
  ASSERT_TRUE(finish(build));
  EXPECT_EQ(out.bytes.size(), s.mtu().current() + 100);
  EXPECT_EQ(out.ecn, Ecn::kNotEct) << "a path may drop what is marked";
  EXPECT_TRUE(s.sender().sent().at(build.packetNumber()).mtuProbe);
  EXPECT_EQ(read(out).size(), 1u);
}

TEST_F(DatagramBuilderTest, APathFrameGoesToItsOwnRoute) {
  Subflow& s = open(0);
  Route other{9, {}, *Endpoint::parse("198.51.100.9:99")};
  DatagramBuilder build(s, pool.allocate(), other, MtuDiscovery::kMinDatagram);
  build.add(PathChallengeFrame{});
  build.padTo(MtuDiscovery::kMinDatagram);
  build.markEct();
  ASSERT_TRUE(finish(build));
  EXPECT_EQ(out.route, other);
  EXPECT_EQ(out.ecn, Ecn::kEct0);
  EXPECT_EQ(out.bytes.size(), MtuDiscovery::kMinDatagram);
}

TEST_F(DatagramBuilderTest, AReserveIsKeptForTheParity) {
  Subflow& s = open(0);
  size_t room = frameRoom(s.mtu().current());
  BlockDescription block;
  block.parities = 1;
  block.symbolSize = static_cast<uint16_t>(room);
  block.ranges[block.rangeCount++] = {0, 1, 2};
  s.onPacket(5_pn, true, Ecn::kNotEct, 100, s.route(), now);
  DatagramBuilder build(s, pool.allocate());
  size_t part = room - 40;
  build.reserve(40 + part);
  build.addAck(now);
  EXPECT_EQ(build.used(), 0u) << "no room for an ACK is left";
  EXPECT_TRUE(s.receiver().acks().pending());
  std::vector<uint8_t> parity(part, 3);
  build.addParity(block, 0, parity);
  ASSERT_TRUE(finish(build));
  EXPECT_EQ(s.sender().sent().at(build.packetNumber()).role, SentPacket::Role::kParity);
  auto frames = read(out);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(std::get<ParityFrame>(frames[0]).part.size(), part);
}

TEST_F(DatagramBuilderTest, WithKeysThatAreUsedUpNothingLeaves) {
  KeyLimits limits;
  limits.maxSealed = 1;
  useKeys(limits);
  Subflow& s = open(0);
  ping(s);
  EXPECT_FALSE(sealer->failed());
  DatagramBuilder build(s, pool.allocate());
  build.addTracked(PingFrame{});
  EXPECT_FALSE(finish(build));
  EXPECT_TRUE(sealer->failed());
}

TEST_F(DatagramBuilderTest, DataOnAPathThatIsNotUsableIsMovedAtOnce) {
  Subflow& s = add(0);
  UnitRef d = make();
  PacketNumber pn = send(s, {d});
  EXPECT_TRUE(s.sender().sent().at(pn).moved);
  EXPECT_EQ(dataTracker.nextRepair(now), d) << "it may arrive; it is sent elsewhere all the same";
}

}  // namespace
}  // namespace braid::datagram_builder_test
