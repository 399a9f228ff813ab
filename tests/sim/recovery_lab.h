#pragma once

// The fixture of the recovery tests: bursts of segments over two paths, on which a test can lose
// any datagram.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "inet/ip.h"
#include "tests/sim/scenario.h"

namespace braid::sim {

inline constexpr const char* kPolicies[] = {"none",      "fuso",     "cofuso",     "redundant",
                                            "proactive", "reactive", "corrective", "adaptive"};

/// New data takes the first path as long as its window is open. Both paths have room for all data
/// of these tests.
inline const LinkOptions kFast{.rateBitsPerSecond = 1000_Mbit, .delay = 20ms};
inline const LinkOptions kSlow{.rateBitsPerSecond = 1000_Mbit, .delay = 21ms};

inline TunnelOptions with(const std::string& policy) {
  TunnelOptions o;
  o.recovery = policy;
  o.controller = "newreno";
  o.initialWindow = 200;
  o.outerMtu = o.maxOuterMtu = 1500;
  return o;
}

inline RecoveryClass forPorts(uint16_t first, uint16_t last, const char* policy) {
  RecoveryClass c;
  c.firstPort = first;
  c.lastPort = last;
  c.policy = policy;
  return c;
}

/// An edge that sends bursts of TCP segments over paths a and b, and a record of those that arrive
/// at the hub. Ports 1000 to 1099 are reserved for the scenario's own flows.
struct Lab {
  Scenario s;
  std::map<uint16_t, std::map<uint32_t, std::vector<Time>>> arrived;  // by port and segment
  std::set<std::pair<std::string, uint64_t>> lost;  // path and number of the data datagram
  std::map<std::string, uint64_t> seen;
  PeerStatus before;
  uint64_t duplicatesBefore = 0;

  explicit Lab(const TunnelOptions& o, const LinkOptions& a = kFast, const LinkOptions& b = kSlow,
               uint64_t seed = 1)
      : s(seed, o) {
    s.path("a", a).path("b", b);
    s.hub.tap = [this](ByteView packet) {
      std::optional<InnerPacket> ip = parseInnerPacket(packet);
      if (!ip || !ip->tcp || (ip->dport >= 1000 && ip->dport < 1100)) return false;
      arrived[ip->dport][ip->tcp->seq].push_back(s.world.now());
      return true;
    };
    s.start(30s);
    burst(999, 10);  // the paths know their RTT, nothing has been lost
    s.run(1s);
    s.world.onWire = [this](Path& path, bool up, const WireDatagram& d) {
      if (!up) return;
      bool drop = d.bytes.size() >= 300 && lost.contains({path.name(), ++seen[path.name()]});
      path.changeUp([&](LinkOptions& l) { l.loss = drop ? 1 : 0; }, s.world.now());
    };
    mark();
  }
  void mark() {
    before = s.edge.status().peers[0];
    duplicatesBefore = s.hub.drops(Drop::kDuplicate);
    seen.clear();
  }
  void segment(uint16_t port, uint32_t number, size_t size, bool push) {
    IpFields ip{s.edge.host(), s.hub.host(), ip::kTcp, Ecn::kEct0, true};
    auto flags = static_cast<uint8_t>(TcpFields::kAck | (push ? TcpFields::kPsh : 0));
    s.edge.send(tcpPacket(ip, {port, port, number, 1, flags, 1000, 0, 0, Bytes(size, 0x33)}));
  }
  /// Sends `count` segments at once, with PSH on the last.
  void burst(uint16_t port, uint32_t count, size_t size = 1200) {
    for (uint32_t i = 1; i <= count; ++i) segment(port, i, size, i == count);
  }
  /// The time until all `count` segments have arrived; Duration::max() when that takes more than 5
  /// s.
  Duration completion(uint16_t port, uint32_t count) {
    Time begin = s.world.now();
    bool all = s.world.runUntil([&] { return arrived[port].size() == count; }, 5s);
    return all ? s.world.now() - begin : Duration::max();
  }
  PeerStatus peer() { return s.edge.status().peers[0]; }
  /// The edge's subflow on that path; its counters start at the last mark().
  SubflowStatus on(const std::string& path) {
    SubflowStatus now;
    for (const SubflowStatus& f : peer().subflows) {
      if (f.uplink == path) now = f;
    }
    for (const SubflowStatus& f : before.subflows) {
      if (f.uplink == path) subtractCounters(now, f);
    }
    return now;
  }
  uint64_t copies() { return on("a").copies + on("b").copies; }
  uint64_t parities() { return on("a").parities + on("b").parities; }
  uint64_t repaired() { return peer().retransmitted - before.retransmitted; }
  uint64_t duplicates() { return s.hub.drops(Drop::kDuplicate) - duplicatesBefore; }
};

}  // namespace braid::sim
