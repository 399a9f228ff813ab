// Peers that have the session's keys and break the protocol.

#include <gtest/gtest.h>

#include "tests/unit/tunnel/session/kept_packets.h"
#include "tests/unit/tunnel/session/raw_peer_test.h"

namespace braid::session_liar_test {
namespace {

struct SessionLiarTest : test::RawPeerTest {
  Route away{1, *Address::parse("203.0.113.2"), *Endpoint::parse("192.0.2.66:6666")};
  std::vector<uint64_t> closes;  ///< reasons of the CLOSE frames received
  uint64_t pings = 0;
  std::vector<PacketNumber> unanswered;  ///< packets of the hub's subflow 0 that ask for an ACK

  void SetUp() override { start(); }
  void onDatagram(const test::RawPeer::Opened& opened, size_t) override {
    if (opened.eliciting) unanswered.push_back(opened.pn);
  }
  void onFrame(const WireFrame& frame) override {
    if (const auto* close = std::get_if<CloseFrame>(&frame)) closes.push_back(close->reason);
    pings += std::holds_alternative<PingFrame>(frame);
  }
  static AckFrame ackOf(PacketNumber first, PacketNumber last, SubflowId subflow = 0_subflow) {
    AckFrame ack;
    ack.subflow = subflow;
    ack.count = 1;
    ack.ranges[0] = {first, last};
    return ack;
  }
  void expectEnd() {
    EXPECT_TRUE(hub->over());
    EXPECT_EQ(drops(Drop::kForgedAck), 1u);
    EXPECT_EQ(events.all().back().kind, Event::Kind::kForgedAck);
    listen();
    EXPECT_EQ(closes, std::vector<uint64_t>{CloseFrame::kForgedAck});
    step(1s);
    EXPECT_EQ(closes.size(), 1u) << "nothing more is said";
  }
};

// ---- ACKs of what was not sent (RFC 9000 sections 13.1 and 21.4)

TEST_F(SessionLiarTest, AnAckOfWhatIsToComeEndsTheSession) {
  RecordProperty("rule", "ack.largest");
  prove();
  say(test::framesOf(ackOf(PacketNumber{}, largest)));
  EXPECT_FALSE(hub->over());
  say(test::framesOf(ackOf(PacketNumber{}, largest + 100)));
  expectEnd();
}

TEST_F(SessionLiarTest, AnAckOnASubflowThatIsNotThereEndsTheSession) {
  RecordProperty("rule", "ack.subflow");
  prove();
  say(test::framesOf(ackOf(0_pn, 0_pn, 9_subflow)));
  expectEnd();
}

// A peer that acknowledges everything in order, including lost packets, will acknowledge a packet
// number that was skipped on purpose.
TEST_F(SessionLiarTest, AnOptimisticPeerIsFoundOut) {
  RecordProperty("rule", "ack.number");
  prove();
  uint64_t rounds = 0;
  for (; rounds < 2 * PacketNumberFilter::kMost && !hub->over(); ++rounds) {
    step(10s);  // longer than any pause; the hub keeps the path alive or probes it
    FlowKey key;
    Packet packet = pool.allocate();
    packet.append(100);
    hub->onInnerPacket(std::move(packet), key, true, false, now);
    listen();
    say(test::framesOf(ackOf(PacketNumber{}, largest)));
  }
  EXPECT_GT(rounds, 0u);
  expectEnd();
}

// ---- unproven addresses

TEST_F(SessionLiarTest, AnAnswerFromElsewhereIsCountedAndMovesNothing) {
  RecordProperty("rule", "response.route");
  prove();
  say(test::framesOf(PingFrame{}), away);
  listen();
  ASSERT_EQ(challenges.size(), 2u);
  say(test::framesOf(PathResponseFrame{challenges[1]}), home);
  EXPECT_EQ(drops(Drop::kStrayResponse), 1u);
  EXPECT_EQ(status().subflows.at(0).remote, home.remote.toString());
}

// Found by review: each small out-of-order packet caused an ACK with all ranges.
TEST_F(SessionLiarTest, AcksToAnUnprovenAddressStayWithinThreeTimesWhatCame) {
  for (uint64_t i = 0; i < 2000; ++i) {
    say(test::framesOf(PingFrame{}), away, PacketNumber(2 * i));
    if (i % 7 == 0) listen();
    step(i % 3 == 0 ? 20ms : 0ms);
    ASSERT_LE(sent[away], 3 * received[away]) << i;
    ASSERT_GT(hub->nextDeadline(now), now) << "nothing is due that must not leave";
  }
  EXPECT_GT(sent[away], received[away]) << "it is answered all the same";
}

TEST_F(SessionLiarTest, ResponsesCountAsWell) {
  PathToken token{};
  for (uint64_t i = 0; i < 200; ++i) {
    say(test::framesOf(PathChallengeFrame{token}), away);
    step(20ms);
    ASSERT_LE(sent[away], 3 * received[away]) << i;
  }
}

TEST_F(SessionLiarTest, AnAnswerToNothingIsIgnored) {
  RecordProperty("rule", "response.token");
  prove();
  EXPECT_FALSE(say(test::framesOf(PathResponseFrame{PathToken{1, 2, 3}})));
  EXPECT_FALSE(say(test::framesOf(PathResponseFrame{PathToken{1, 2, 3}}), away));
  EXPECT_EQ(drops(Drop::kStrayResponse), 0u);
  EXPECT_EQ(status().subflows.at(0).remote, home.remote.toString());
}

// ---- words on what is not there, old words, last words

TEST_F(SessionLiarTest, AStatusOfASubflowThatIsNotThereIsIgnored) {
  RecordProperty("rule", "status.subflow");
  prove();
  EXPECT_FALSE(say(test::framesOf(SubflowStatusFrame{9_subflow, 1, false})));
  EXPECT_TRUE(hub->anyUsable());
  EXPECT_EQ(status().subflows.size(), 1u);
}

TEST_F(SessionLiarTest, OfTheStatusTheLargestSequenceCounts) {
  RecordProperty("rule", "status.sequence");
  prove();
  say(test::framesOf(SubflowStatusFrame{0_subflow, 5, true}));
  for (uint64_t old : {5, 4, 0}) {
    say(test::framesOf(SubflowStatusFrame{0_subflow, old, false}));
    EXPECT_TRUE(hub->anyUsable()) << old;
  }
  say(test::framesOf(SubflowStatusFrame{0_subflow, 6, false}));
  EXPECT_FALSE(hub->anyUsable());
}

TEST_F(SessionLiarTest, ACloseEndsTheSessionWhateverItsReason) {
  RecordProperty("rule", "close.reason");
  for (uint64_t reason : {uint64_t{0}, uint64_t{1}, uint64_t{77}, (uint64_t{1} << 62) - 1}) {
    next = {};
    challenges.clear();
    SetUp();
    prove();
    EXPECT_FALSE(say(test::framesOf(CloseFrame{reason})));
    EXPECT_TRUE(hub->over()) << reason;
    listen();
    EXPECT_TRUE(closes.empty()) << "nothing is answered";
  }
}

// ---- SUBFLOW_STATUS

// Found by review: 1,050 to 1,840 PINGs per second. The peer reports on a subflow that this subflow
// is unavailable, but continues to acknowledge on it.
TEST_F(SessionLiarTest, ARefusedSubflowIsNotProbedHoweverOftenItAcknowledges) {
  prove();
  say(test::framesOf(SubflowStatusFrame{0_subflow, 1, false}));
  auto talk = [&](Duration d) {
    for (Time end = now + d; now < end;) {
      step(1ms);
      for (PacketNumber pn : std::exchange(unanswered, {})) say(test::framesOf(ackOf(pn, pn)));
    }
  };
  talk(100ms);
  pings = 0;
  talk(10s);
  EXPECT_EQ(pings, 0u);
  EXPECT_FALSE(hub->anyUsable());
  for (int i = 0; i < 1000; ++i) {
    say(test::framesOf(PingFrame{}));
    talk(1ms);
  }
  EXPECT_EQ(pings, 0u) << "whatever is heard there";
  say(test::framesOf(SubflowStatusFrame{0_subflow, 2, true}));
  talk(10ms);
  EXPECT_GE(pings, 1u) << "MTU probes have one, too";
  EXPECT_TRUE(hub->anyUsable());
}

}  // namespace
}  // namespace braid::session_liar_test
