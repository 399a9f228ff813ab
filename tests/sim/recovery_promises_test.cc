// Rules that every recovery policy must keep, flow classes, settings changed at run time, and
// concurrent flows.

#include <gtest/gtest.h>

#include "tests/sim/recovery_lab.h"

namespace braid::sim::recovery_promises_test {
namespace {

// ---- the promises

class Promise : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Policy, Promise,
                         testing::Values("fuso", "cofuso", "redundant", "proactive", "reactive",
                                         "corrective", "adaptive"),
                         [](const auto& i) { return std::string(i.param); });

// Counts all protection: copies, parities, and tails (the rest of a parity that did not fit into
// one datagram).
TEST_P(Promise, NeverAheadOfNewDataAndNeverBeyondTheWindow) {
  const std::string policy = GetParam();
  TunnelOptions o = with(policy);
  o.initialWindow = 10;
  Scenario s(3, o);
  LinkOptions link{.rateBitsPerSecond = 20_Mbit, .delay = 10ms, .loss = 0.02};
  s.path("a", link).path("b", link).start(10s);
  std::map<unsigned, ProtectionCounts> last;
  uint64_t protection = 0;
  uint64_t tails = 0;
  uint64_t ahead = 0;
  s.world.onWire = [&](Path&, bool up, const WireDatagram& d) {
    if (!up) return;
    PeerStatus peer = s.edge.status().peers[0];
    for (const SubflowStatus& f : peer.subflows) {
      ProtectionCounts before = std::exchange(last[f.id], f);
      if (f.protectionBytes == before.protectionBytes) continue;
      bool isTail = f.copies + f.parities == before.copies + before.parities;
      ++protection;
      tails += isTail;
      EXPECT_LE(f.inFlight, f.window + (isTail ? d.bytes.size() : 0))
          << "a tail goes beyond it by itself";
      for (const FlowStatus& flow : peer.flows) ahead += flow.queuedBytes > 0;
    }
  };
  TcpFlow& file = s.upload(600_KB, {.window = 60000});
  for (int i = 0; i < 8; ++i) {
    s.world.after(i * 150ms, [&] { s.upload(20_KB); });
  }
  ASSERT_TRUE(s.finish(file, 30s));
  s.run(1s);
  if (policy != "reactive") {  // which waits for two RTTs of silence
    EXPECT_GT(protection, 5u) << s.report();
  }
  if (policy == "cofuso" || policy == "corrective" || policy == "adaptive") {
    EXPECT_GT(tails, 0u) << s.report();
  } else {
    EXPECT_EQ(tails, 0u);
  }
  if (policy == "redundant" || policy == "proactive") {
    EXPECT_GT(ahead, 0u) << "copies go with new data, whoever waits behind it";
  } else if (policy != "adaptive") {  // which is served like short flows
    EXPECT_EQ(ahead, 0u);
  }
}

class Every : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Policy, Every, testing::ValuesIn(kPolicies),
                         [](const auto& i) { return std::string(i.param); });

// Found by code review: an ACK in front of a repair made the datagram larger than the path MTU.
TEST_P(Every, DatagramsFitTheirPath) {
  Scenario s(4, with(GetParam()));
  LinkOptions link{.rateBitsPerSecond = 50_Mbit, .delay = 10ms, .loss = 0.03};
  s.path("a", link).path("b", link).start(10s);
  size_t largest = 0;
  s.world.onWire = [&](Path&, bool, const WireDatagram& d) {
    largest = std::max(largest, d.bytes.size() + 28);
  };
  TcpFlow& up = s.upload(1_MB);
  TcpFlow& down = s.download(1_MB);
  ASSERT_TRUE(s.finish(up, 30s) && s.finish(down, 30s));
  EXPECT_LE(largest, 1500u);
}

TEST_P(Every, TheSameSeedGivesTheSameBytes) {
  auto run = [&](uint64_t seed) {
    Scenario s(seed, with(GetParam()));
    LinkOptions link{.rateBitsPerSecond = 50_Mbit, .delay = 10ms, .loss = 0.05};
    s.path("a", link).path("b", link).start(10s);
    TcpFlow& up = s.upload(200_KB);
    s.call({.count = 50});
    EXPECT_TRUE(s.finish(up, 30s));
    s.run(1s);
    return s.world.hash();
  };
  uint64_t first = run(5);
  EXPECT_EQ(run(5), first);
  EXPECT_NE(run(6), first);
}

TEST_P(Every, SurvivesPathsThatComeAndGo) {
  Scenario s(7, with(GetParam()));
  LinkOptions link{.rateBitsPerSecond = 20_Mbit, .delay = 10ms, .loss = 0.02};
  s.path("a", link).path("b", link).start(10s);
  TcpFlow& up = s.upload(1_MB);
  UdpFlow& call = s.call({.count = 100});
  s.run(200ms).cut("a").run(500ms).mend("a").run(300ms).unplug("b").run(300ms).plug("b");
  ASSERT_TRUE(s.finish(up, 30s));
  s.run(3s);
  EXPECT_EQ(call.wrong() + call.duplicates(), 0u);
}

// ---- classes and reload

TEST(Recovery, AClassHasAPolicyOfItsOwn) {
  TunnelOptions o = with("fuso");
  o.recoveryClasses = {forPorts(2000, 2009, "none"), forPorts(3000, 3000, "cofuso")};
  Lab lab(o);
  lab.burst(2009, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.copies() + lab.parities(), 0u);
  lab.burst(2010, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.copies(), 10u);
  EXPECT_EQ(lab.parities(), 0u);
  lab.burst(3000, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.copies(), 20u);
  EXPECT_EQ(lab.parities(), 1u);
}

// The policy is chosen by the hosts' DSCP marks, at both gateways and for IPv4 and IPv6.
TEST(Recovery, AClassByDscp) {
  constexpr uint8_t kEf = 46;
  for (bool v6 : {false, true}) {
    for (bool down : {false, true}) {
      TunnelOptions o = with("none");
      o.recoveryClasses = {{.protocol = {}, .dscp = kEf, .policy = "redundant"}};
      Scenario s(5, o);
      s.path("a", kFast).path("b", kSlow).start();
      auto copies = [&] {
        uint64_t sum = 0;
        PeerStatus peer = (down ? s.hub : s.edge).status().peers[0];
        for (const SubflowStatus& f : peer.subflows) sum += f.copies;
        return sum;
      };
      UdpFlow& plain = s.call({.count = 50, .v6 = v6}, down);
      UdpFlow& bulk = s.call({.count = 50, .v6 = v6, .dscp = 8}, down);
      s.run(2s);
      EXPECT_EQ(copies(), 0u);
      UdpFlow& voice = s.call({.count = 50, .v6 = v6, .dscp = kEf}, down);
      s.run(2s);
      EXPECT_EQ(copies(), 50u) << s.report();
      for (UdpFlow* flow : {&plain, &bulk, &voice}) EXPECT_EQ(flow->received(), 50u);
      EXPECT_EQ(voice.duplicates(), 0u);
    }
  }
}

TEST(Recovery, AFlowWithoutProtectionBesideOneWith) {
  TunnelOptions o = with("fuso");
  o.recoveryClasses = {forPorts(2000, 2000, "none")};
  Lab lab(o);
  lab.burst(2000, 10);
  lab.burst(2001, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.copies(), 10u);
  EXPECT_EQ(lab.duplicates(), 10u);
}

// Small packets share a datagram. A packet of a class without protection is not copied with the
// others.
TEST(Recovery, AClassOfItsOwnInASharedDatagram) {
  TunnelOptions o = with("fuso");
  o.recoveryClasses = {forPorts(2000, 2000, "none")};
  Lab lab(o);
  for (uint32_t i = 1; i <= 4; ++i) {
    lab.segment(2000, i, 200, false);
    lab.segment(2001, i, 200, false);
  }
  lab.s.run(1s);
  EXPECT_EQ(lab.duplicates(), 4u);
}

TEST(Recovery, PoliciesAndClassesChangeUnderTraffic) {
  Scenario s(9, with("none"));
  LinkOptions link{.rateBitsPerSecond = 20_Mbit, .delay = 10ms, .loss = 0.02};
  s.path("a", link).path("b", link).start(10s);
  TcpFlow& up = s.upload(4_MB);
  TcpFlow& down = s.download(4_MB);
  UdpFlow& call = s.call({.count = 200});
  size_t turn = 0;
  for (const char* policy : kPolicies) {
    for (Node* node : {&s.edge, &s.hub}) {
      TunnelOptions next = with(policy);
      next.initialWindow = 10;
      next.recoveryOptions.kMax = 1 + 17 * turn % 128;
      for (size_t i = 0; i < (turn * 5) % 8; ++i) {
        auto port = static_cast<uint16_t>(1000 + i);
        next.recoveryClasses.push_back(forPorts(port, port, kPolicies[(turn + i) % 8]));
      }
      node->tunnel().setTunables(next);
    }
    ++turn;
    s.run(250ms);
  }
  ASSERT_TRUE(s.finish(up, 30s) && s.finish(down, 30s));
  s.run(3s);
  EXPECT_EQ(call.wrong() + call.duplicates(), 0u);
  EXPECT_EQ(s.edge.drops(Drop::kBadParity) + s.hub.drops(Drop::kBadParity), 0u);
  EXPECT_EQ(s.edge.drops(Drop::kBadFrame) + s.hub.drops(Drop::kBadFrame), 0u);
}

// ---- datagrams

// The round trip is longer than DataTracker::kTimely: a loss is known too late to send again.
TEST(Recovery, DatagramsAreProtectedThoughTooLateToBeSentAgain) {
  constexpr uint64_t kCount = 1500;
  auto missing = [&](const char* policy) {
    TunnelOptions o = with(policy);
    o.controller = "wan";  // the others take 10 % loss for congestion
    Scenario s(10, o);
    LinkOptions link{.rateBitsPerSecond = 100_Mbit, .delay = 150ms};
    s.path("a", link).path("b", link).start();
    for (const char* path : {"a", "b"}) s.change(path, [](LinkOptions& to) { to.loss = 0.1; });
    UdpFlow& call = s.call({.count = kCount});
    s.run(kCount * 20ms + 2s);
    EXPECT_EQ(call.wrong() + call.duplicates(), 0u) << policy;
    return kCount - call.received();
  };
  uint64_t none = missing("none");
  EXPECT_GE(none, 100u);
  for (const char* policy : {"fuso", "cofuso", "redundant", "proactive", "adaptive"})
    EXPECT_LE(5 * missing(policy), none) << policy;
}

// ---- mice and elephants

struct Beside {
  uint64_t elephant = 0;    ///< bytes that it moved meanwhile
  uint64_t protection = 0;  ///< datagrams
  Duration slowest{};       ///< of the mice
};

Beside miceBesideAnElephant(const char* policy) {
  TunnelOptions o = with(policy);
  o.controller = "bbr";
  o.initialWindow = 10;
  Scenario s(11, o);
  LinkOptions link{.rateBitsPerSecond = 10_Mbit, .delay = 10ms};
  s.path("a", link).path("b", link).start();
  s.change("a", [](LinkOptions& x) { x.loss = 0.02; });
  TcpFlow& elephant = s.upload(100_MB, {.ecn = true});
  s.run(1s);
  std::map<uint16_t, std::set<uint32_t>> mice;
  std::map<uint16_t, Time> begun;
  Beside result;
  for (uint16_t port = 5000; port < 5100; ++port) {
    s.hub.listen(ip::kTcp, port, [&, port](ByteView, const InnerPacket& ip) {
      mice[port].insert(ip.tcp->seq);
      if (mice[port].size() == 12)
        result.slowest = std::max(result.slowest, s.world.now() - begun[port]);
    });
    s.world.after((port - 5000) * 100ms, [&, port] {
      begun[port] = s.world.now();
      IpFields ip{s.edge.host(), s.hub.host(), ip::kTcp, Ecn::kEct0, true};
      for (uint32_t i = 0; i < 12; ++i) {
        auto flags = static_cast<uint8_t>(TcpFields::kAck | (i == 11 ? TcpFields::kPsh : 0));
        s.edge.send(tcpPacket(ip, {port, port, i, 1, flags, 1000, 0, 0, Bytes(1200)}));
      }
    });
  }
  uint64_t before = elephant.received();
  s.run(10s);
  result.elephant = elephant.received() - before;
  s.run(1s);
  for (auto& [port, segments] : mice) EXPECT_EQ(segments.size(), 12u) << policy << port;
  PeerStatus peer = s.edge.status().peers[0];
  for (const SubflowStatus& f : peer.subflows) result.protection += f.copies + f.parities;
  return result;
}

TEST(Recovery, MiceAreProtectedBesideAnElephant) {
  Beside none = miceBesideAnElephant("none");
  Beside adaptive = miceBesideAnElephant("adaptive");
  EXPECT_EQ(none.protection, 0u);
  EXPECT_GE(adaptive.protection, 100u) << "each of them";
  EXPECT_LE(adaptive.slowest, none.slowest);
  // Short flows use 6 % of the links. Even a full copy of them costs at most that much.
  EXPECT_GE(static_cast<double>(adaptive.elephant), 0.9 * static_cast<double>(none.elephant));
}

}  // namespace
}  // namespace braid::sim::recovery_promises_test
