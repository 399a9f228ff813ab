// The roles of a session's subflows at both ends, and how the responder learns them.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/unit/tunnel/session/kept_events.h"
#include "tests/unit/tunnel/session/kept_packets.h"
#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/session/session.h"

namespace braid::session_preference_test {
namespace {

struct End {
  KeptPackets packets;
  KeptEvents events;
  StreamRateLimits rations;
  size_t count(Event::Kind kind) {
    return static_cast<size_t>(std::count_if(events.all().begin(), events.all().end(),
                                             [&](const Event& e) { return e.kind == kind; }));
  }
};

constexpr PathPreference kBackup{PathUse::kBackup, 1, 2};

/// Two sessions with two wires without delay; wire 1 is subflow 0, wire 2 subflow 1.
struct SessionPreferenceTest : testing::Test {
  PacketPool pool{2048, 4096};
  SecretRandom random{knownKey(1)};
  SessionOptions options;
  SharedResources shared;
  End edgeEnd, hubEnd;
  Time now = Time{} + 1s;
  std::unique_ptr<Session> edge, hub;
  bool cut[3] = {};
  std::array<uint64_t, 3> up{}, down{};  ///< bytes carried on each wire
  size_t refused = 0;
  SessionSecrets secrets;
  uint32_t forged = 1000;  ///< packet number

  void make() {
    options.recovery = "none";
    // a controller without a model of rate and delay, since these wires have neither
    options.controller = "newreno";
    secrets.initiatorSecret.fill(1);
    secrets.responderSecret.fill(2);
    secrets.sessionId = 7;
    using Role = KeySchedule::Role;
    auto madeFor = [&](End& end, Role role) {
      SessionContext context{pool, random, end.events.in(), end.packets.in(), end.rations, shared};
      return std::make_unique<Session>(secrets, role, options, context, now);
    };
    edge = madeFor(edgeEnd, Role::kInitiator);
    hub = madeFor(hubEnd, Role::kResponder);
    edge->paths().setKeepalive(1s);
    hub->paths().setKeepalive(1s);
  }
  /// The route by which a datagram of the wire arrives.
  Route atHub(SocketId wire) const {
    Endpoint edgeAt = *Endpoint::parse("198.51.100." + std::to_string(wire) + ":40000");
    return {9, *Address::parse("203.0.113.2"), edgeAt};
  }
  Route atEdge(SocketId wire) const {
    return {wire, atHub(wire).remote.address, *Endpoint::parse("203.0.113.2:4433")};
  }
  void open(SocketId wire, const PathPreference& preference) {
    std::string name = "wire" + std::to_string(wire);
    ASSERT_TRUE(
        edge->openSubflow(name, name, {wire, {}, *Endpoint::parse("203.0.113.2:4433")}, now));
    prefer(wire, preference);
  }
  void prefer(SocketId wire, const PathPreference& preference) {
    std::shared_ptr<Pacer> ceiling;
    if (preference.ceiling > 0) {
      ceiling = std::make_shared<Pacer>();
      ceiling->setRate(static_cast<double>(preference.ceiling));
    }
    edge->setPreference("wire" + std::to_string(wire), preference, preference, ceiling, now);
  }
  void start(const PathPreference& second = kBackup) {
    make();
    open(1, {PathUse::kNormal, 1, 1});
    open(2, second);
    run(100ms);
    ASSERT_EQ(status(*edge, 1).state, "active");
    ASSERT_EQ(status(*hub, 1).state, "active");
  }
  bool carryUp() {
    Datagram d;
    if (!edge->pollDatagram(d, now)) return false;
    SocketId wire = d.route.socket;
    up.at(wire) += d.bytes.size();
    if (cut[wire]) return true;
    auto header = readHeader(d.bytes.view());
    refused += hub->onDatagram(*header, atHub(wire), d.ecn, std::move(d.bytes), now).has_value();
    return true;
  }
  bool carryDown() {
    Datagram d;
    if (!hub->pollDatagram(d, now)) return false;
    auto wire = static_cast<SocketId>(d.route.remote.address.bytes[3]);
    down.at(wire) += d.bytes.size();
    if (cut[wire]) return true;
    auto header = readHeader(d.bytes.view());
    refused += edge->onDatagram(*header, atEdge(wire), d.ecn, std::move(d.bytes), now).has_value();
    return true;
  }
  void run(Duration d) {
    for (Time end = now + d; now < end; now += 1ms) {
      edge->onTimer(now);
      hub->onTimer(now);
      for (bool any = true; any;) {
        any = carryUp();
        any |= carryDown();
      }
      edgeEnd.packets.take();
      hubEnd.packets.take();
    }
  }
  void offer(Session& from, size_t count = 50) {
    for (size_t i = 0; i < count; ++i) {
      Packet packet = pool.allocate();
      packet.append(1000);
      EXPECT_FALSE(from.onInnerPacket(std::move(packet), FlowKey{}, true, false, now));
    }
  }
  /// A forged frame, sealed with the keys of the side with that role.
  void forge(KeySchedule::Role from, const SubflowPreferenceFrame& frame) {
    KeySchedule keys(secrets, from, {}, now);
    std::array<uint8_t, 64> space{};
    Writer writer(space);
    writeFrame(writer, frame);
    ByteView piece = ByteView(space).first(writer.size());
    DatagramHeader header{.session = 7, .subflow = 0_subflow, .packetNumber = ++forged};
    Packet packet = pool.allocate();
    uint8_t* bytes = packet.append(kHeaderSize + piece.size() + kTagSize);
    writeHeader(header, bytes);
    EXPECT_TRUE(keys.seal(0_subflow, PacketNumber(forged), {bytes, kHeaderSize}, {&piece, 1},
                          bytes + kHeaderSize));
    bool toHub = from == KeySchedule::Role::kInitiator;
    Session& to = toHub ? *hub : *edge;
    Route arrival = toHub ? atHub(1) : atEdge(1);
    refused += to.onDatagram(header, arrival, Ecn::kNotEct, std::move(packet), now).has_value();
  }
  SubflowStatus status(const Session& session, size_t subflow) const {
    SessionStatus peer;
    session.fill(peer, now);
    return subflow < peer.subflows.size() ? peer.subflows[subflow] : SubflowStatus{};
  }
};

TEST_F(SessionPreferenceTest, ABackupCarriesNoDataWhileANormalPathIsUsable) {
  start();
  up = down = {};
  offer(*edge, 200);
  offer(*hub, 200);
  run(500ms);
  EXPECT_EQ(hubEnd.packets.delivered() + edgeEnd.packets.delivered(), 400u);
  EXPECT_GE(up[1], 200'000u);
  EXPECT_GE(down[1], 200'000u);
  EXPECT_LE(up[2], 3000u) << "MTU probes";
  EXPECT_LE(down[2], 3000u);
  EXPECT_TRUE(status(*edge, 1).resting && status(*hub, 1).resting);
  EXPECT_FALSE(status(*edge, 0).resting || status(*hub, 0).resting);
}

TEST_F(SessionPreferenceTest, ItIsKeptAliveMeanwhile) {
  start();
  run(3s);
  up = down = {};
  run(5s);
  EXPECT_GT(up[2], 0u);
  EXPECT_GT(down[2], 0u);
  EXPECT_EQ(status(*edge, 1).state, "active");
}

TEST_F(SessionPreferenceTest, ABackupStandsInAtBothEndsAndRestsAgain) {
  start();
  run(1s);
  cut[1] = true;
  offer(*edge);
  offer(*hub);
  run(1s);
  EXPECT_EQ(hubEnd.packets.delivered(), 50u);
  EXPECT_EQ(edgeEnd.packets.delivered(), 50u);
  EXPECT_FALSE(status(*edge, 1).resting);
  EXPECT_FALSE(status(*hub, 1).resting);
  EXPECT_GE(edgeEnd.count(Event::Kind::kSubflowRole), 1u);
  cut[1] = false;
  run(2s);
  EXPECT_TRUE(status(*edge, 1).resting);
  EXPECT_TRUE(status(*hub, 1).resting);
  up = down = {};
  offer(*edge);
  offer(*hub);
  run(500ms);
  EXPECT_LE(up[2], 3000u);
  EXPECT_LE(down[2], 3000u);
}

TEST_F(SessionPreferenceTest, LossesOfABackupAreRepairedOnTheNormalPath) {
  start();
  run(1s);
  cut[1] = true;
  offer(*edge, 5);
  run(1s);
  ASSERT_FALSE(status(*edge, 1).resting);
  cut[2] = true;
  offer(*edge, 5);
  run(1ms);
  EXPECT_GE(up[2], 5000u);
  cut[1] = false;
  for (int i = 0; i < 2000 && status(*edge, 0).state != "active"; ++i) run(1ms);
  up[2] = 0;
  run(3s);
  EXPECT_EQ(hubEnd.packets.delivered(), 10u);
  EXPECT_LE(up[2], 500u) << "probes of the silent one";
}

TEST_F(SessionPreferenceTest, ThePeerKnowsFromTheFirstDatagramOfASubflow) {
  make();
  open(1, {PathUse::kNormal, 1, 1});
  run(10ms);
  open(2, kBackup);
  ASSERT_TRUE(carryUp());
  EXPECT_EQ(status(*hub, 1).state, "validating");
  EXPECT_EQ(status(*hub, 1).preference, kBackup);
  EXPECT_EQ(refused, 0u);
}

TEST_F(SessionPreferenceTest, NothingIsToldOfDefaults) {
  make();
  open(1, {});
  run(10ms);
  EXPECT_EQ(status(*edge, 0).preference, PathPreference{});
  uint64_t before = up[1];
  run(900ms);
  EXPECT_LE(up[1] - before, 40u) << "an ACK at most";
}

TEST_F(SessionPreferenceTest, AChangeIsToldAndALostWordIsRepeated) {
  start();
  run(100ms);
  cut[1] = cut[2] = true;
  prefer(2, {PathUse::kNormal, 7, 2});
  EXPECT_FALSE(status(*edge, 1).resting) << "here it holds at once";
  run(5ms);
  cut[1] = cut[2] = false;
  EXPECT_TRUE(status(*hub, 1).resting);
  run(1s);
  EXPECT_FALSE(status(*hub, 1).resting);
  EXPECT_EQ(status(*hub, 1).preference.weight, 7);
  prefer(2, {});
  run(10ms);
  EXPECT_EQ(status(*hub, 1).preference, PathPreference{})
      << "back to the defaults, which must be told, too";
}

TEST_F(SessionPreferenceTest, TheLargestSequenceCounts) {
  RecordProperty("rule", "preference.sequence");
  start();
  auto say = [&](uint64_t sequence, uint8_t weight) {
    forge(KeySchedule::Role::kInitiator, {1_subflow, sequence, {PathUse::kNormal, weight, 2}});
    return status(*hub, 1).preference.weight;
  };
  EXPECT_EQ(say(100, 5), 5);
  EXPECT_EQ(say(99, 6), 5);
  EXPECT_EQ(say(100, 6), 5);
  EXPECT_EQ(say(101, 6), 6);
  EXPECT_EQ(say((uint64_t{1} << 62) - 1, 8), 8) << "the last one there is";
}

TEST_F(SessionPreferenceTest, OfSubflowsThatAreNotThereNothingIsKept) {
  RecordProperty("rule", "preference.subflow");
  start();
  forge(KeySchedule::Role::kInitiator, {7_subflow, 100, {PathUse::kNormal, 9, 2}});
  EXPECT_EQ(refused, 0u);
  EXPECT_EQ(status(*hub, 0).preference.weight, 1);
  EXPECT_EQ(status(*hub, 1).preference.weight, 1);
}

TEST_F(SessionPreferenceTest, AResponderHasNoSay) {
  RecordProperty("rule", "preference.side");
  start();
  forge(KeySchedule::Role::kResponder, {1_subflow, 100, {PathUse::kNormal, 9, 2}});
  EXPECT_EQ(status(*edge, 1).preference, kBackup);
}

}  // namespace
}  // namespace braid::session_preference_test
