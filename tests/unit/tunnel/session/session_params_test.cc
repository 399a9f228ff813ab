// The parameters that a session sends at its start, and its handling of the peer's parameters. The
// peer may be a later release.

#include <gtest/gtest.h>

#include "tests/unit/tunnel/session/kept_packets.h"
#include "tests/unit/tunnel/session/raw_peer_test.h"

namespace braid::session_params_test {
namespace {

/// The peer answers challenges and acknowledges what arrives.
struct SessionParams : test::RawPeerTest {
  bool arrives = true;
  std::vector<ParamsFrame> params;           ///< that came
  std::vector<OptionalAskingFrame> greased;  ///< the same
  std::vector<OptionalFrame> challenged;     ///< beside a PATH_CHALLENGE
  std::vector<size_t> sizes;                 ///< of what came
  size_t acks = 0;
  PacketNumber largestAcked{};

  SessionParams() : RawPeerTest(9216) {}
  void start() {
    RawPeerTest::start();
    say(std::vector<uint8_t>(1200 - kHeaderSize - kTagSize, 0));
  }
  void onDatagram(const test::RawPeer::Opened& opened, size_t size) override {
    sizes.push_back(size);
    if (!opened.eliciting || !arrives) return;
    AckFrame ack;
    ack.count = 1;
    ack.ranges[0] = {opened.pn, opened.pn};
    say(test::framesOf(ack));
  }
  void onFrame(const WireFrame& frame) override {
    if (const auto* f = std::get_if<ParamsFrame>(&frame)) params.push_back(*f);
    if (const auto* f = std::get_if<OptionalAskingFrame>(&frame)) greased.push_back(*f);
    if (const auto* f = std::get_if<OptionalFrame>(&frame)) challenged.push_back(*f);
    if (const auto* f = std::get_if<PathChallengeFrame>(&frame))
      say(test::framesOf(PathResponseFrame{f->token}));
    if (const auto* f = std::get_if<AckFrame>(&frame)) {
      ++acks;
      largestAcked = std::max(largestAcked, f->ranges[0].last);
    }
  }
  void run(Duration d) {
    for (Time end = now + d; now < end;) step(1ms);
  }
  static std::vector<uint8_t> largestIs(uint16_t bytes) {
    return {kFrame<ParamsFrame>.number, 0, 4, 1, 2, static_cast<uint8_t>(0x40 | bytes >> 8),
            static_cast<uint8_t>(bytes)};
  }
};

TEST_F(SessionParams, AreToldOnceAtTheStartWithGrease) {
  options.decodeBuffer = 512;
  start();
  run(2s);
  ASSERT_EQ(params.size(), 1u);
  EXPECT_EQ(params[0].params.largestDatagram, pool.payload());
  EXPECT_EQ(params[0].params.symbols, 512u);
  EXPECT_EQ(params[0].params.heldSpan, kGuaranteedSpan);
  EXPECT_EQ(params[0].params.lanes, Params::kPacketLane);
  EXPECT_EQ(greased.size(), 1u) << "and nobody can forget to skip such frames";
  EXPECT_EQ(challenged.size(), 1u) << "of either kind";
  EXPECT_EQ(sizes.at(0), MtuDiscovery::kMinDatagram) << "it takes the place of padding";
}

TEST_F(SessionParams, AreToldAgainUntilTheyHaveArrived) {
  start();
  arrives = false;
  run(3s);
  EXPECT_GE(params.size(), 1u);
  size_t before = params.size();
  arrives = true;
  run(3s);
  EXPECT_GT(params.size(), before);
  before = params.size();
  run(3s);
  EXPECT_EQ(params.size(), before);
}

// A peer of a later release: it sends a parameter and frames that this release does not know.
TEST_F(SessionParams, WhatIsNotKnownIsSkippedAndAcknowledged) {
  RecordProperty("rule", "optional.ack");
  start();
  run(1s);
  acks = 0;
  EXPECT_FALSE(say(std::vector<uint8_t>{0x45, 0, 2, 0xff, 0xff}));
  run(100ms);
  EXPECT_EQ(acks, 1u);
  EXPECT_EQ(largestAcked, next - 1);
  EXPECT_FALSE(
      say(std::vector<uint8_t>{kFrame<ParamsFrame>.number, 0, 3, 0x21, 1, 0xff, 0x61, 0, 1, 0xff}));
  run(100ms);
  EXPECT_EQ(largestAcked, next - 1) << "PARAMS asks for an ACK";
  acks = 0;
  EXPECT_FALSE(say(std::vector<uint8_t>{0x65, 0, 2, 0xff, 0xff}));
  run(100ms);
  EXPECT_EQ(acks, 0u) << "frames of this range do not";
  EXPECT_FALSE(hub->over());
}

TEST_F(SessionParams, NoDatagramIsLargerThanThePeerTakes) {
  RecordProperty("rule", "params.datagram");
  options.maxOuterMtu = 9000;
  start();
  say(largestIs(1400));
  run(5s);
  EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), 1400u);
  EXPECT_GT(status().innerMtu, 1300u) << "and the search ends close to it";
  EXPECT_LE(status().innerMtu, 1400u - kDatagramOverhead);
}

TEST_F(SessionParams, TheFirstWordCounts) {
  RecordProperty("rule", "params.first");
  options.maxOuterMtu = 9000;
  start();
  say(largestIs(1400));
  say(largestIs(1250));
  run(5s);
  EXPECT_GT(status().innerMtu, 1300u);
}

}  // namespace
}  // namespace braid::session_params_test
