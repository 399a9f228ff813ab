#pragma once

// Scenarios that read like scripts: an edge with uplinks, a hub, traffic between their hosts, and
// events on the paths.
//
//     Scenario s(seed);
//     s.path("dsl", {.rateBitsPerSecond = 50e6, .delay = 10ms});
//     s.path("lte", {.rateBitsPerSecond = 20e6, .delay = 30ms});
//     s.start();
//     TcpFlow& page = s.download(2_MB);
//     s.run(500ms).cut("dsl");
//     ASSERT_TRUE(s.finish(page, 10s)) << s.report();

#include "simnet/tcp/tcp_flow.h"
#include "simnet/udp_flow.h"
#include "simnet/world.h"

namespace braid::sim {

constexpr uint64_t operator""_KB(unsigned long long n) {
  return n * 1000;
}
constexpr uint64_t operator""_MB(unsigned long long n) {
  return n * 1000000;
}
constexpr double operator""_Mbit(unsigned long long n) {
  return static_cast<double>(n) * 1e6;
}

/// The links of most scenarios, one direction. A test that needs others defines its own.
inline const LinkOptions kDsl{.rateBitsPerSecond = 50_Mbit, .delay = 10ms};
inline const LinkOptions kLte{.rateBitsPerSecond = 20_Mbit, .delay = 30ms};

class Scenario {
 public:
  explicit Scenario(uint64_t seed, TunnelOptions options = {}, Duration keepalive = 10s);
  ~Scenario();

  World world;
  Node& edge;
  Node& hub;

  // ---- set up
  Scenario& path(const std::string& name, LinkOptions both, bool v6 = false);
  Scenario& path(const std::string& name, LinkOptions up, LinkOptions down);
  /// Starts both gateways and waits until the tunnel is up.
  Scenario& start(Duration limit = 5s);
  bool isUp() const;

  // ---- what happens
  Scenario& run(Duration d);
  /// cut() makes the path lose everything in both directions without notice; mend() makes it work
  /// again.
  Scenario& cut(std::string_view path);
  Scenario& mend(std::string_view path);
  /// Like cut() and mend(), but the edge is told.
  Scenario& unplug(const std::string& path);
  Scenario& plug(const std::string& path);
  Scenario& change(std::string_view path, const std::function<void(LinkOptions&)>& f);

  // ---- traffic
  TcpFlow& download(uint64_t bytes, TcpOptions options = {});
  TcpFlow& upload(uint64_t bytes, TcpOptions options = {});
  UdpFlow& call(UdpOptions options, bool down = false);
  Ping& ping(Duration interval, unsigned count, bool v6 = false);
  /// Runs until the transfer is complete; false when it is not within the limit.
  bool finish(const TcpFlow& flow, Duration limit);

  // ---- what to look at
  const SubflowStatus* subflow(const Node& node, std::string_view path) const;
  uint64_t sentOn(std::string_view path) const;
  bool isUsed(std::string_view path, Duration within);
  std::string report() const { return world.report(); }

 private:
  uint16_t nextPort_ = 1000;
};

}  // namespace braid::sim
