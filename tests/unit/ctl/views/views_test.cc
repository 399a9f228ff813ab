#include "ctl/views/views.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/name.h"
#include "ctl/views/format.h"
#include "gateway/control/status_json.h"

namespace braid::views_test {
namespace {

using nlohmann::json;

TunnelStatus exampleTunnel() {
  TunnelStatus tunnel;
  PeerStatus peer;
  peer.name = "hub", peer.up = true, peer.age = 200s, peer.cipher = "aes-128-gcm",
  peer.innerMtu = 1420;
  peer.pin = "sha256:x", peer.sentBytes = 2048, peer.receivedBytes = 20 << 20,
  peer.retransmitted = 3, peer.retransmitDelay = 252, peer.undelivered = 1, peer.keyAge = 40s;
  SubflowStatus subflow;
  subflow.uplink = subflow.path = "wifi", subflow.remote = "192.0.2.1:4433";
  subflow.state = "active", subflow.observed = "198.51.100.9:40001";
  subflow.srtt = 12500us;
  subflow.minRtt = 10ms, subflow.sentPackets = 200, subflow.lostPackets = 3,
  subflow.deliveryRate = 11.65e6;
  subflow.queueDelay = 2500us, subflow.ecn = "capable";
  subflow.timeouts = 6, subflow.window = 65536, subflow.sentBytes = 3000, subflow.mtu = 1500;
  subflow.pacingRate = std::numeric_limits<double>::infinity();
  peer.subflows = {subflow};
  peer.flows = {{{12, 15000, 1, 2}, "tcp 10.0.0.1:443 > 10.0.0.2:5000", "reliable", 1500, 4}};
  peer.flowCount = 1;
  tunnel.peers = {peer};
  tunnel.drops[static_cast<size_t>(Drop::kReplay)] = 7;
  return tunnel;
}

std::string flowsOf(const TunnelStatus& tunnel, bool withIdle = false) {
  return flowsText({1, flowsJson(tunnel)}, {}, HostNames(), withIdle);
}

TEST(Views, Paths) {
  EXPECT_EQ(
      pathsText(pathsJson(exampleTunnel())),
      "PEER  ID  PATH  REMOTE          SEEN AS             STATE       RTT  MIN RTT    QUEUE "
      "   LOST  ECN       WINDOW  IN FLIGHT         RATE     SENT  RECEIVED  TIMEOUTS   MTU\n"
      "hub    0  wifi  192.0.2.1:4433  198.51.100.9:40001  active  12.5 ms  10.0 ms  2.50 ms "
      " 1.50 %  capable  65.5 kB        0 B  93.2 Mbit/s  3.00 kB       0 B         6  1500\n");
}

TEST(Views, Peers) {
  EXPECT_EQ(peersText(peersJson(exampleTunnel())),
            "PEER  STATE         FOR  SUBFLOWS  FLOWS     SENT  RECEIVED       SENT AGAIN  NEVER "
            "DELIVERED  HELD   MTU  CIPHER       KEYS  EPOCH  PIN\n"
            "hub   up     3 min 20 s         1      1  2.05 kB   21.0 MB  3 after 84.0 ms        "
            "        1   0 B  1420  aes-128-gcm  40 s      0  sha256:x\n");
}

TEST(Views, Flows) {
  EXPECT_EQ(
      flowsOf(exampleTunnel()),
      "RATE  FLOW                              PEER  DELIVERY     SENT  RECEIVED  WAITING  "
      "DROPPED  FIRST BYTE\n"
      "   -  tcp 10.0.0.1:443 > 10.0.0.2:5000  hub   reliable  15.0 kB         -  1.50 kB        "
      "1           -\n");
}

TEST(Views, FlowsAndStreamsAreOneListByRate) {
  TunnelStatus before = exampleTunnel(), now = exampleTunnel();
  StreamStatus stream;
  stream.name = "tcp 10.0.0.1:80 > 10.0.0.2:80", stream.state = "open", stream.sentBytes = 7000;
  stream.firstByte = 25ms;
  before.peers[0].streams = {stream};
  stream.receivedBytes = 250'000;
  now.peers[0].streams = {stream};
  now.peers[0].streamCount = 1;
  now.peers[0].flows[0].bytes += 1000;
  const std::string text =
      flowsText({2, flowsJson(now)}, {1, flowsJson(before)}, HostNames(), false);
  EXPECT_EQ(text,
            "       RATE  FLOW                              PEER  DELIVERY         SENT  RECEIVED  "
            "WAITING  DROPPED  FIRST BYTE\n"
            "2.00 Mbit/s  tcp 10.0.0.1:80 > 10.0.0.2:80     hub   stream, open  7.00 kB    250 kB  "
            "    0 B        -     25.0 ms\n"
            "8.00 kbit/s  tcp 10.0.0.1:443 > 10.0.0.2:5000  hub   reliable      16.0 kB         -  "
            "1.50 kB        1           -\n");
}

TEST(Views, IdleFlowsAreFoldedAway) {
  TunnelStatus tunnel = exampleTunnel();
  FlowStatus idle = tunnel.peers[0].flows[0];
  idle.name = "udp 10.0.0.1:53 > 10.0.0.2:53", idle.idle = 5s;
  tunnel.peers[0].flows.push_back(idle);
  tunnel.peers[0].flowCount = 2;
  EXPECT_NE(flowsOf(tunnel).find("5000  hub"), std::string::npos);
  EXPECT_TRUE(flowsOf(tunnel).ends_with("\n1 idle\n")) << flowsOf(tunnel);
  EXPECT_EQ(flowsOf(tunnel).find("udp"), std::string::npos);
  EXPECT_NE(flowsOf(tunnel, true).find("udp"), std::string::npos);
  EXPECT_EQ(flowsOf(tunnel, true).find("idle"), std::string::npos);
}

TEST(Views, Recovery) {
  GatewayStatus gateway;
  gateway.recovery.kMax = 128, gateway.recovery.mMax = 3;
  gateway.recovery.decodeTime = {12500ns, 40us, 4ms};
  gateway.trace = {true, 1234, 5, "No space left on device"};
  TunnelStatus tunnel = exampleTunnel();
  PeerStatus& peer = tunnel.peers[0];
  peer.recovery = "adaptive", peer.blocks = 7, peer.paritiesReceived = 20, peer.blocksDecoded = 5;
  peer.restored = 6, peer.evicted = 1;
  SubflowStatus& s = peer.subflows[0];
  s.lossRate = 0.0125, s.lossMetric = 0.02, s.burst = 1.5, s.protectedPackets = 40, s.recovered = 4;
  s.decoded = 3, s.useless = 30, s.copies = 11, s.parities = 12, s.protectionBytes = 300;
  EXPECT_EQ(recoveryText(recoveryJson(gateway, tunnel)),
            "PEER  POLICY    BLOCKS  PARITIES IN  DECODED  GIVEN BACK  EVICTED  M MAX  DECODING\n"
            "hub   adaptive       7           20        5           6        1      2   40.0 us\n"
            "\n"
            "PEER  ID  PATH    LOSS     C_L  BURST  PROTECTED  RECOVERED  DECODED  USELESS  "
            "COPIES  PARITIES"
            "  PROTECTION   SHARE\n"
            "hub    0  wifi  1.25 %  2.00 %   1.50         40          4        3       30      "
            "11        12"
            "       300 B  10.0 %\n"
            "\n"
            "restoring 1, 2, ... of 128 packets takes 12.5 us, 40.0 us, 4.00 ms\n"
            "trace on: 1234 events written, 5 dropped: No space left on device\n");
}

TEST(Views, RecoveryOfNobody) {
  EXPECT_TRUE(recoveryText(recoveryJson({}, {})).starts_with("no peers\n\nno subflows\n"));
  EXPECT_TRUE(recoveryText(recoveryJson({}, {})).ends_with("takes -, -, -\ntrace off\n"));
  EXPECT_EQ(recoveryText(json::object()), "no peers\n\nno subflows\n\ntrace off\n");
}

TEST(Views, FlowsThatAreNotListedAreCounted) {
  TunnelStatus tunnel = exampleTunnel();
  tunnel.peers[0].flowCount = tunnel.peers[0].flows.size() + 2;
  EXPECT_TRUE(flowsOf(tunnel).ends_with("\nhub: 2 more are not listed\n"));
}

TEST(Views, VerboseStatus) {
  GatewayStatus gateway;
  gateway.version = "0.1.0", gateway.config = "/etc/braid/edge.yaml", gateway.pin = "sha256:y",
  gateway.pid = 812;
  gateway.device = "braid0", gateway.mode = "tun", gateway.deviceMtu = 1420, gateway.uptime = 7500s;
  gateway.uplinks = {{"wifi", "wlan0", true, {"192.0.2.7", "2001:db8::7"}, ""},
                     {"mobile", "wwan0", false, {}, "", "backup"}};
  std::string text = verboseStatusText(statusJson(gateway, exampleTunnel()));
  EXPECT_TRUE(
      text.starts_with("braidd 0.1.0, up 2 h 5 min, process 812\n"
                       "config  /etc/braid/edge.yaml\n"
                       "device  braid0 (tun), MTU 1420\n"
                       "pin     sha256:y\n"
                       "\n"
                       "UPLINK  INTERFACE  STATE  USE     ADDRESSES               GATEWAY\n"
                       "wifi    wlan0      up     normal  192.0.2.7, 2001:db8::7  -\n"
                       "mobile  wwan0      down   backup  -                       -\n"
                       "\n"
                       "UPLINK  SEEN AS       AVAILABLE  TODAY  THIS MONTH  CAP\n"
                       "wifi    198.51.100.9          -      -           -  -\n"
                       "mobile  -                     -      -           -  -\n"
                       "\n"
                       "PEER  STATE"))
      << text;
  EXPECT_TRUE(text.ends_with("\ndropped:  " + std::string(dropName(Drop::kReplay)) + " 7\n"))
      << text;
  gateway.uplinks[0].resolvers = {"192.0.2.53", "2001:db8::53"};
  gateway.uplinks[0].resolversFrom = "systemd-resolved";
  text = verboseStatusText(statusJson(gateway, exampleTunnel()));
  EXPECT_NE(text.find("pin     sha256:y\nnames   over wifi by 192.0.2.53, 2001:db8::53 "
                      "(systemd-resolved)\n\n"),
            std::string::npos)
      << text;
  gateway.drops.overflowed = 3;
  text = verboseStatusText(statusJson(gateway, exampleTunnel()));
  EXPECT_TRUE(text.ends_with("\ndropped between kernel and tunnel:  socket_overflow 3\n")) << text;
}

TEST(Views, StatusIsWhatAnOperatorAsksFirst) {
  GatewayStatus gateway;
  gateway.version = "0.1.0", gateway.device = "braid0", gateway.uptime = 7500s;
  gateway.uplinks = {{"wifi", "wlan0", true, {"192.0.2.7", "2001:db8::7"}, ""},
                     {"mobile", "wwan0", false, {}, "", "backup"}};
  gateway.uplinks[0].carried = {120'000'000, 3'400'000'000, 7};
  gateway.uplinks[0].availability = 0.99988;
  gateway.uplinks[0].meter =
      MeterPeriodStatus{{3'500'000'000, 10'000'000'000, false}, 1'782'864'000};
  TunnelStatus tunnel = exampleTunnel();
  SubflowStatus dead = tunnel.peers[0].subflows[0];
  dead.uplink = dead.path = "mobile", dead.state = "failed", dead.down = 15'900ms;
  dead.recovered = 2;
  tunnel.peers[0].subflows.push_back(dead);
  EXPECT_EQ(statusText(statusJson(gateway, tunnel)),
            "braidd 0.1.0, up 2 h 5 min, device braid0\n"
            "\n"
            "PEER  STATE         FOR  FLOWS     SENT  RECEIVED\n"
            "hub   up     3 min 20 s      1  2.05 kB   21.0 MB\n"
            "\n"
            "PEER  PATH    STATE              RTT    QUEUE    LOST         RATE     SENT  "
            "RECEIVED\n"
            "hub   wifi    active         12.5 ms  2.50 ms  1.50 %  93.2 Mbit/s  3.00 kB       0 "
            "B\n"
            "hub   mobile  down for 15 s        -        -       -            -  3.00 kB       0 "
            "B\n"
            "\n"
            "PEER  LOST ON THE PATH  REPAIRED BEFORE THE SENDER KNEW       SENT AGAIN  NEVER "
            "DELIVERED\n"
            "hub         6 (1.50 %)                                2  3 after 84.0 ms           "
            "     1\n"
            "\n"
            "UPLINK  INTERFACE  STATE  USE\n"
            "wifi    wlan0      up     normal\n"
            "mobile  wwan0      down   backup\n"
            "\n"
            "UPLINK  SEEN AS       AVAILABLE   TODAY  THIS MONTH  CAP\n"
            "wifi    198.51.100.9    99.98 %  120 MB     3.40 GB  35.0 % of 10.0 GB until " +
                formatDate(1'782'864'000) +
                "\n"
                "mobile  -                     -       -           -  -\n");
}

TEST(Views, StatusNamesCaptivePortals) {
  GatewayStatus gateway;
  gateway.uplinks = {{"wifi", "wlan0", true, {"192.0.2.7"}, ""}, {"lte", "wwan0", true, {}, ""}};
  EXPECT_EQ(statusText(statusJson(gateway, {})).find("portal"), std::string::npos);
  gateway.uplinks[0].portal = "http://portal.example/\x1b[2J";
  gateway.uplinks[0].portalOpen = "TCP port 80 of 192.0.2.1; the page is not on the link";
  const std::string text = statusText(statusJson(gateway, {}));
  EXPECT_TRUE(
      text.ends_with("\nwifi: a captive portal waits for a login at "
                     "http://portal.example/?[2J\n"
                     "  hosts of the LAN: TCP port 80 of 192.0.2.1;\n"
                     "    the page is not on the link\n"))
      << text;
}

TEST(Views, StatusSaysWhyAPeerIsRefused) {
  TunnelStatus tunnel;
  tunnel.peers.resize(2);
  tunnel.peers[0].name = "hub";
  tunnel.peers[1].name = "other";
  EXPECT_EQ(statusText(statusJson({}, tunnel)).find("hub: "), std::string::npos);
  tunnel.peers[0].refusal = "pre-shared key differs or is set on one side only";
  const std::string text = statusText(statusJson({}, tunnel));
  EXPECT_NE(text.find("\nhub: pre-shared key differs or is set on one side only\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("other: "), std::string::npos);
}

TEST(Views, StatusHasNoLineOverAHundredColumns) {
  GatewayStatus gateway;
  gateway.version = "0.1.0+1234.gabcdef012", gateway.device = std::string(15, 'd');
  gateway.uptime = 9999h;
  gateway.uplinks = {{std::string(kLongestName, 'u'),
                      std::string(15, 'i'),
                      true,
                      {},
                      "",
                      "metered",
                      100,
                      125'000'000,
                      125'000'000,
                      {{{99'000'000'000, 100'000'000'000, true}, 1'782'864'000}}}};
  TunnelStatus tunnel = exampleTunnel();
  PeerStatus& peer = tunnel.peers[0];
  peer.name = std::string(kLongestName, 'p'), peer.group = "g", peer.inUse = false;
  peer.sentBytes = peer.receivedBytes = uint64_t{1} << 60, peer.retransmitted = 999'999'999'999;
  peer.retransmitDelay = 85e12, peer.undelivered = 999'999'999'999;
  peer.flowCount = 999'999, peer.age = 9999h;
  SubflowStatus& s = peer.subflows[0];
  s.path = std::string(kLongestName, 'u'), s.srtt = 9999ms, s.queueDelay = 9999ms;
  s.deliveryRate = 1.2e9, s.sentBytes = s.receivedBytes = uint64_t{1} << 60;
  peer.subflows.push_back(s);
  peer.subflows[1].path = "[2001:db8:1111:2222:3333:4444:5555:6666]:65535";
  peer.subflows[1].state = "failed", peer.subflows[1].down = 59min;
  const std::string text = statusText(statusJson(gateway, tunnel));
  std::istringstream lines(text);
  size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  EXPECT_EQ(widest, 100u) << text;
  EXPECT_NE(text.find("~"), std::string::npos) << "a cut name says so";
}

TEST(Views, StatusTellsPreferences) {
  GatewayStatus gateway;
  int64_t until = 1'782'864'000;
  gateway.uplinks = {
      {"lte",
       "wwan0",
       true,
       {},
       "",
       "metered",
       1,
       0,
       2'500'000,
       {{{3'500'000'000, 10'000'000'000, false}, until}}},
      {"sat", "eth2", true, {}, "", "metered", 1, 0, 0, {{{10'000'000, 10'000'000, true}, until}}},
      {"dsl", "eth1", true, {}, "", "normal", 3, 625'000, 0, {}}};
  std::string text = verboseStatusText(statusJson(gateway, {}));
  std::string date = formatDate(static_cast<double>(until));
  for (const std::string& part :
       {"  metered, 35.0 % of 10.0 GB until " + date + ", down 20.0 Mbit/s  ",
        "  metered, 100 % of 10.0 MB until " + date + ", cap reached  ",
        std::string("  normal, weight 3, up 5.00 Mbit/s  ")}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Views, PeersOfAGroupSayWhichOneIsInUse) {
  TunnelStatus tunnel = exampleTunnel();
  tunnel.peers.push_back(tunnel.peers[0]);
  tunnel.peers[0].group = tunnel.peers[1].group = "hubs";
  tunnel.peers[1].name = "hub2";
  tunnel.peers[1].inUse = false;
  std::string text = peersText(peersJson(tunnel));
  EXPECT_NE(text.find("\nhub   up, in use "), std::string::npos) << text;
  EXPECT_NE(text.find("\nhub2  up, standby "), std::string::npos) << text;
}

TEST(Views, StatusShowsWhatTheAckShimDid) {
  TunnelStatus tunnel = exampleTunnel();
  EXPECT_EQ(verboseStatusText(statusJson({}, tunnel)).find("ACK SHIM"), std::string::npos) << "off";
  tunnel.shim.on = true;
  tunnel.shim.flows = 12;
  tunnel.shim.cachedPackets = 3;
  tunnel.shim.counters.silent = 5;
  tunnel.shim.counters.helpless = 1;
  tunnel.shim.counters[Actuator::kFarReplay] = {40, 38, 2};
  std::string text = verboseStatusText(statusJson({}, tunnel));
  EXPECT_NE(text.find("\nACK SHIM      FIRED  USEFUL  SPURIOUS\n"
                      "pure_dup_ack      0       0         0\n"
                      "sack_dup_ack      0       0         0\n"
                      "hole              0       0         0\n"
                      "far_replay       40      38         2\n"
                      "near_replay       0       0         0\n"
                      "syn_replay        0       0         0\n"
                      "flows 12, kept packets 3, silent 5, helpless 1\n"),
            std::string::npos)
      << text;
}

TEST(Views, EmptyAndStrangeAnswersDoNotBreakThem) {
  EXPECT_EQ(pathsText(json::object()), "no subflows\n");
  EXPECT_EQ(flowsText({1, json::array()}, {}, HostNames(), false), "no flows\n");
  EXPECT_EQ(peersText(json{{"peers", 7}}), "no peers\n");
  for (
      const char* text :
      {"null", "[1]",
       R"({"peers":[null,1,{"subflows":{}},{"flows":[1],"name":[]}],"gateway":"x","drops":[1]})",
       R"({"decode_us":["x",null,-1],"trace":{"on":true,"written":"x"},"peers":[{"subflows":[{"copies":-1}]}]})",
       R"({"gateway":{"uplinks":[1],"listen":[1]},"drops":{"a":-1},"ack_shim":{"on":true,"actuators":[1]}})",
       R"({"gateway":{"uplinks":[{"use":1,"metered":{"used_bytes":-1,"until_unix_s":1e300},"weight":"x"}]}})"}) {
    json answer = json::parse(text);
    EXPECT_FALSE((statusText(answer) + verboseStatusText(answer)).empty());
    EXPECT_FALSE(recoveryText(answer).empty());
    EXPECT_FALSE((peersText(answer) + pathsText(answer)).empty());
    EXPECT_FALSE(flowsText({1, answer}, {0, answer}, HostNames(), true).empty());
  }
}

}  // namespace
}  // namespace braid::views_test
