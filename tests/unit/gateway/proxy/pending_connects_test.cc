// Connections that wait until their destination has accepted.

#include "gateway/proxy/pending_connects.h"

#include <gtest/gtest.h>

#include <string>

#include "inet/inner_packet.h"
#include "inet/ip.h"
#include "inet/tcp.h"
#include "simnet/inner_packets.h"

namespace braid::pending_connects_test {
namespace {

using Way = PendingConnects::Way;

class PendingConnectsTest : public testing::Test {
 protected:
  static StreamEnds ends(uint16_t port = 50'000) {
    return {{*Address::parse("10.1.0.7"), port}, *Endpoint::parse("10.2.0.9:443")};
  }
  Packet syn(uint32_t number = 7, uint16_t port = 50'000) {
    const StreamEnds e = ends(port);
    sim::TcpSegment segment{.sport = port,
                            .dport = e.destination.port,
                            .seq = number,
                            .flags = TcpFields::kSyn,
                            .window = 1000,
                            .mss = 1460};
    return pool_.copy(sim::tcpPacket({e.source.address, e.destination.address, ip::kTcp}, segment));
  }
  static StreamHandle stream(uint16_t port = 50'000) { return {port, 1}; }
  void add(uint16_t port = 50'000) {
    connects_.add(stream(port), {ends(port), 7}, syn(7, port), now_);
  }
  bool repeat(uint32_t number = 7) {
    Packet packet = syn(number);
    return connects_.repeat({ends(), number}, packet, now_);
  }
  void wait(Duration time) { now_ += time; }
  /// The next output: "listener 7" (the SYN with this number), "host reset", "host icmp"; "" none.
  std::string next() {
    auto out = connects_.poll();
    if (!out) return "";
    auto ip = parseInnerPacket(out->packet.view());
    std::string what = !ip->tcp           ? "icmp"
                       : ip->tcp->isRst() ? "reset"
                                          : std::to_string(ip->tcp->seq);
    return (out->way == Way::kListener ? "listener "
            : out->way == Way::kHost   ? "host "
                                       : "tunnel ") +
           what;
  }
  bool expires() { return connects_.expire(now_).has_value(); }
  /// The stream of the connection that expires now; empty: none does, or it has none.
  StreamHandle expired(bool isAnswered) {
    auto out = connects_.expire(now_);
    EXPECT_TRUE(!out || out->isAnswered == isAnswered);
    return out ? out->stream : StreamHandle{};
  }

  PacketPool pool_{2048, 16};
  PendingConnects connects_{pool_};
  Time now_{1h};
};

TEST_F(PendingConnectsTest, TheListenerGetsTheSynWhenTheDestinationHasAccepted) {
  add();
  EXPECT_EQ(next(), "");
  connects_.onAnswer(stream(), now_);
  EXPECT_EQ(next(), "listener 7");
  EXPECT_EQ(next(), "");
  EXPECT_EQ(connects_.join(ends()), stream());
  EXPECT_EQ(connects_.size(), 0u);
  EXPECT_EQ(connects_.join(ends()), std::nullopt) << "only once";
}

TEST_F(PendingConnectsTest, ARepeatedSynIsTakenAndTheNewestIsGivenBack) {
  EXPECT_FALSE(repeat());
  add();
  EXPECT_TRUE(connects_.isCopy({ends(), 7}));
  EXPECT_FALSE(connects_.isCopy({ends(), 8}));
  EXPECT_FALSE(connects_.isCopy({ends(1), 7}));
  EXPECT_TRUE(repeat(8)) << "the client has begun anew, with the same port";
  EXPECT_EQ(next(), "");
  connects_.onAnswer(stream(), now_);
  connects_.onAnswer(stream(), now_);
  EXPECT_EQ(next(), "listener 8");
  EXPECT_EQ(next(), "");
  wait(1s);
  EXPECT_TRUE(repeat(8)) << "the listener's answer was lost";
  EXPECT_EQ(next(), "listener 8");
}

TEST_F(PendingConnectsTest, TheClientIsToldWhatBecameOfIt) {
  for (auto [cause, told] : {std::pair{StreamCause::kRefused, "host reset"},
                             {StreamCause::kReset, "host reset"},
                             {StreamCause::kUnreachable, "host icmp"},
                             {StreamCause::kTimedOut, ""},
                             {StreamCause::kGone, "tunnel 7"},
                             {StreamCause::kLimit, "tunnel 7"},
                             {StreamCause::kForbidden, "tunnel 7"}}) {
    add();
    bool isRefused = connects_.onReset(stream(), cause, now_);
    EXPECT_EQ(next(), told) << static_cast<int>(cause);
    EXPECT_EQ(isRefused, told != std::string("tunnel 7"));
    EXPECT_EQ(next(), "");
    EXPECT_EQ(connects_.size(), 0u);
    EXPECT_FALSE(repeat()) << "its next SYN is a new one";
  }
}

TEST_F(PendingConnectsTest, AConnectionWhoseStreamHasEndedBeforeItWasAcceptedIsKnown) {
  add();
  connects_.onAnswer(stream(), now_);
  EXPECT_EQ(next(), "listener 7");
  connects_.onReset(stream(), StreamCause::kReset, now_);
  EXPECT_EQ(connects_.find(stream()), nullptr);
  EXPECT_EQ(next(), "") << "the client knows it as accepted";
  EXPECT_EQ(connects_.join(ends()), StreamHandle{});
}

TEST_F(PendingConnectsTest, AClientThatRepeatsNothingHasGivenUp) {
  add();
  EXPECT_EQ(connects_.deadline(), now_ + PendingConnects::kPause);
  wait(PendingConnects::kPause - 1ms);
  EXPECT_FALSE(expires());
  wait(1ms);
  EXPECT_EQ(expired(false), stream());
  EXPECT_FALSE(expires());
  EXPECT_EQ(next(), "");
}

// The pauses of Linux until 6.5, and of many others.
TEST_F(PendingConnectsTest, AClientThatDoublesItsPausesIsWaitedFor) {
  add();
  for (Duration pause : {1s, 2s, 4s, 8s}) {
    wait(pause);
    EXPECT_FALSE(expires());
    EXPECT_TRUE(repeat());
  }
  wait(PendingConnects::kLongest - 15s);
  EXPECT_TRUE(expires()) << "but not for ever";
}

TEST_F(PendingConnectsTest, AHostThatNeverCompletesItsConnectionIsGivenUp) {
  add();
  wait(3s);
  connects_.onAnswer(stream(), now_);
  wait(PendingConnects::kJoin - 1ms);
  EXPECT_FALSE(expires());
  EXPECT_TRUE(repeat());
  wait(PendingConnects::kJoin - 1ms);
  EXPECT_FALSE(expires());
  wait(1ms);
  EXPECT_EQ(expired(true), stream());
}

TEST_F(PendingConnectsTest, EachConnectionHasItsOwnTime) {
  add(1);
  wait(1s);
  add(2);
  wait(1s);
  connects_.onAnswer(stream(1), now_);
  wait(2s + 1ms);
  EXPECT_FALSE(expires());
  wait(1s);
  EXPECT_EQ(expired(false), stream(2));
  EXPECT_FALSE(expires());
  EXPECT_EQ(connects_.find(stream(1))->source.port, 1);
}

TEST_F(PendingConnectsTest, WithoutABufferTheClientHearsNothing) {
  add();
  std::vector<Packet> all;
  while (Packet packet = pool_.allocate()) all.push_back(std::move(packet));
  connects_.onReset(stream(), StreamCause::kRefused, now_);
  EXPECT_EQ(next(), "");
  EXPECT_EQ(connects_.size(), 0u);
}

TEST_F(PendingConnectsTest, AnUnknownStreamIsLeftAlone) {
  connects_.onAnswer(stream(), now_);
  connects_.onReset(stream(), StreamCause::kRefused, now_);
  EXPECT_EQ(next(), "");
  EXPECT_FALSE(expires());
}

}  // namespace
}  // namespace braid::pending_connects_test
