// The names of the uplinks: what an initiator tells, and what a responder makes of it.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/tunnel/session/raw_peer_test.h"

namespace braid::path_names_test {
namespace {

// ---- the responder

struct PathNamesTest : test::RawPeerTest {
  /// The frame as a peer may write it, with any content.
  static std::vector<uint8_t> nameFrame(const std::string& content) {
    std::vector<uint8_t> out{kFrame<SubflowNameFrame>.number,
                             static_cast<uint8_t>(content.size() >> 8),
                             static_cast<uint8_t>(content.size())};
    out.insert(out.end(), content.begin(), content.end());
    return out;
  }
  void name(const std::string& content) { EXPECT_FALSE(say(nameFrame(content))); }
  void onFrame(const WireFrame& frame) override {
    acks += std::holds_alternative<AckFrame>(frame);
    if (const auto* seen = std::get_if<ObservedAddressFrame>(&frame)) observedAt = seen->address;
  }
  std::string path() { return status().subflows.at(0).path; }
  std::string observed() { return status().subflows.at(0).observed; }
  std::string address() const { return home.remote.toString(); }
  size_t acks = 0;                     ///< that the hub has sent
  std::optional<Endpoint> observedAt;  ///< that the hub has told
};

TEST_F(PathNamesTest, APathHasTheNameFromItsFirstDatagramOn) {
  start();
  std::vector<uint8_t> first = nameFrame("lte");
  first.resize(1200 - kHeaderSize - kTagSize);
  EXPECT_FALSE(say(first));
  listen();
  ASSERT_EQ(challenges.size(), 1u);
  say(test::framesOf(PathResponseFrame{challenges[0]}));
  EXPECT_EQ(path(), "lte");
  EXPECT_EQ(status().subflows.at(0).uplink, "") << "it is not an uplink of this side";
  std::vector<Event> told = events.all();
  auto up = std::ranges::find(told, Event::Kind::kSubflowUp, &Event::kind);
  ASSERT_NE(up, told.end());
  EXPECT_EQ(up->path, "lte");
  EXPECT_EQ(up->text, "lte (" + address() + ") is in use");
}

TEST_F(PathNamesTest, WithoutANameThePathIsTheAddress) {
  start();
  prove();
  EXPECT_EQ(path(), address());
}

TEST_F(PathNamesTest, AnotherNameTakesThePlaceOfTheFirst) {
  RecordProperty("rule", "name.again");
  start();
  prove();
  name("lte");
  EXPECT_EQ(path(), "lte");
  name("mobile");
  EXPECT_EQ(path(), "mobile");
}

// A peer may be hostile, and names go to logs, terminals, pages and labels of metrics.
TEST_F(PathNamesTest, WhatIsNoNameIsSkipped) {
  RecordProperty("rule", "name.text");
  start();
  prove();
  const std::vector<std::string> hostile{"",
                                         "lte\n",
                                         "\x1b[2J",
                                         "<script>",
                                         "a\"b",
                                         "a b",
                                         std::string(1, 0),
                                         "l\xc3\xb6t",
                                         ".hidden",
                                         "-rf",
                                         "../../etc",
                                         "a{b=\"c\"}",
                                         "%s%n",
                                         "192.0.2.1:4433",
                                         std::string(33, 'x'),
                                         std::string(1000, 'x')};
  for (const std::string& content : hostile) {
    name(content);
    EXPECT_EQ(path(), address()) << content;
  }
  name(std::string(kLongestName, 'x'));
  EXPECT_EQ(path(), std::string(32, 'x'));
  for (const std::string& content : hostile) name(content);
  EXPECT_EQ(path(), std::string(32, 'x')) << "the name before stays";
  EXPECT_FALSE(hub->over());
}

TEST_F(PathNamesTest, ANameAsksForNoAcknowledgment) {
  start();
  prove();
  name("lte");
  step(100ms);
  EXPECT_EQ(acks, 0u);
  say(test::framesOf(PingFrame{}));
  step(100ms);
  EXPECT_GE(acks, 1u) << "as a PING does";
}

TEST_F(PathNamesTest, APaddedChallengeSaysWhereItIsSent) {
  start();
  EXPECT_EQ(observedAt, std::nullopt);
  prove();
  EXPECT_EQ(observedAt, home.remote);
  EXPECT_EQ(observed(), "") << "the peer has not told";
}

TEST_F(PathNamesTest, TheAddressThatThePeerSeesIsShownAndNothingElse) {
  RecordProperty("rule", "observed.address");
  start();
  prove();
  auto told = [&](std::vector<uint8_t> content) {
    content.insert(content.begin(),
                   {kFrame<ObservedAddressFrame>.number, 0, static_cast<uint8_t>(content.size())});
    EXPECT_FALSE(say(content));
    return observed();
  };
  EXPECT_EQ(told({}), "");
  EXPECT_EQ(told({192, 0, 2, 7, 0x9c}), "");
  EXPECT_EQ(told({192, 0, 2, 7, 0x9c, 0x40}), "192.0.2.7:40000");
  EXPECT_EQ(told({192, 0, 2, 7, 0x9c, 0x40, 0}), "192.0.2.7:40000") << "what came before stays";
  std::vector<uint8_t> six(18, 0);
  six[15] = 1, six[17] = 80;
  EXPECT_EQ(told(six), "[::1]:80");
  EXPECT_EQ(told(std::vector<uint8_t>(19, 1)), "[::1]:80");
  EXPECT_EQ(status().subflows.at(0).remote, address()) << "it is shown, and not used";
}

// ---- the initiator

/// A real initiator session, and a responder played by the test.
struct PathNamesOfEdge : testing::Test {
  PacketPool pool{2048, 4096};
  SecretRandom secretRandom{knownKey(1)};
  SessionOptions options;
  SharedResources shared;
  KeptEvents events;
  KeptPackets packets;
  StreamRateLimits rations;
  Time now = Time{} + 1s;
  Route route{1, {}, *Endpoint::parse("203.0.113.2:4433")};
  std::optional<test::RawPeer> peer;
  std::unique_ptr<Session> edge;
  PacketNumber next{};
  std::vector<std::string> names;  ///< of each datagram with a challenge; "": it had none

  void open(const std::string& uplink) {
    SessionSecrets secrets;
    secrets.initiatorSecret.fill(1);
    secrets.responderSecret.fill(2);
    secrets.sessionId = 7;
    using Role = KeySchedule::Role;
    peer.emplace(secrets, Role::kResponder, now);
    SessionContext context{pool, secretRandom, events.in(), packets.in(), rations, shared};
    edge = std::make_unique<Session>(secrets, Role::kInitiator, options, context, now);
    ASSERT_TRUE(edge->openSubflow("route", uplink, route, now));
  }
  /// Reads what the edge sends within `d`, and answers challenges if `answers`.
  void run(Duration d, bool answers) {
    for (Time end = now + d; now < end; now += 1ms) {
      edge->onTimer(now);
      Datagram out;
      while (edge->pollDatagram(out, now)) read(out, answers);
    }
  }
  void read(Datagram& out, bool answers) {
    std::optional<test::RawPeer::Opened> opened = peer->open(out, now);
    ASSERT_TRUE(opened);
    std::string name;
    for (const WireFrame& frame : opened->frames) {
      if (const auto* told = std::get_if<SubflowNameFrame>(&frame)) name = told->name;
      const auto* challenge = std::get_if<PathChallengeFrame>(&frame);
      if (!challenge) continue;
      names.push_back(name);
      EXPECT_FALSE(opened->eliciting) << "a challenge is answered by its response alone";
      if (answers) say(test::framesOf(PathResponseFrame{challenge->token}));
    }
    out.bytes.reset();
  }
  void say(ByteView frames) {
    PacketNumber pn = next++;
    Packet datagram = peer->seal(0_subflow, pn, frames, pool);
    EXPECT_FALSE(edge->onDatagram(peer->header(0_subflow, pn), route, Ecn::kNotEct,
                                  std::move(datagram), now));
  }
  std::string path() {
    SessionStatus s;
    edge->fill(s, now);
    return s.subflows.at(0).path;
  }
};

// The answer proves that a datagram with the name has arrived. So nothing else need be told.
TEST_F(PathNamesOfEdge, EveryChallengeHasTheNameUntilOneIsAnswered) {
  open("lte");
  run(5s, false);
  EXPECT_GE(names.size(), 3u);
  while (!edge->anyUsable() && names.size() < 9) run(10ms, true);
  EXPECT_TRUE(edge->anyUsable());
  for (const std::string& name : names) EXPECT_EQ(name, "lte");
}

TEST_F(PathNamesOfEdge, WithoutTheSettingNothingIsTold) {
  options.tellNames = false;
  open("lte");
  run(1s, true);
  EXPECT_EQ(names, std::vector<std::string>{""});
  EXPECT_EQ(path(), "lte") << "this side has it all the same";
}

// An uplink without a name has that of its interface, which may be any bytes.
TEST_F(PathNamesOfEdge, WhatThePeerWouldSkipIsNotTold) {
  open("wl@n");
  run(1s, true);
  EXPECT_EQ(names, std::vector<std::string>{""});
}

TEST_F(PathNamesOfEdge, TheResponderDoesNotNameTheInitiatorsUplinks) {
  RecordProperty("rule", "name.side");
  open("lte");
  run(1s, true);
  say(test::framesOf(SubflowNameFrame{"mine"}));
  EXPECT_EQ(path(), "lte");
}

}  // namespace
}  // namespace braid::path_names_test
