#pragma once

// Tunnels over paths of the Internet, and how long packets wait there.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/network.h"
#include "sim/rate_params.h"

namespace braid::sim {

class Saturation;

/// How long the packets waited that a link delivers: from arriving at its queue until their transmission
/// began.
class Waits {
 public:
  explicit Waits(SharedLink& link) {
    link.onBegin = [this](Duration waited, bool arrives) {
      if (arrives) ms_.push_back(toMilliseconds(waited));
    };
  }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;
  void restart() { ms_.clear(); }
  /// {"p50_ms","p95_ms","max_ms"} since restart().
  Json json() const;

 private:
  std::vector<double> ms_;
};

/// Options for both gateways of an experiment with datagrams of 1500 bytes, never probed for; everything else
/// is the product's default but the controller and, unless the parameters say otherwise, this recovery
/// policy.
TunnelOptions wanOptions(const RateParams& params, const std::string& controller, const char* recovery);

/// One tunnel with one subflow a line. Data goes to the client, so `down` is what matters.
class WanTunnel : public Connection {
 public:
  struct Line {
    const char* name;
    LinkOptions up, down;
    double loss = 0;  ///< of what goes to the client, once the tunnel is up
  };
  WanTunnel(const RateParams& params, const TunnelOptions& options, std::vector<Line> lines);

  /// Starts the tunnel and the series.
  void start();
  /// Figures of the links are of what follows.
  void restart();
  /// By line: wait at the queue, share of the rate that arrived, packets lost for lack of room or of tokens.
  Json linksJson();

  World& world() { return network.world; }
  SharedLink& down(size_t line) { return *cables_[line].down; }
  LinkStats statsOf(size_t line) { return down(line).stats(network.world.now()); }
  /// What line `i` did since restart().
  LinkCount delivered(size_t line) { return minus(statsOf(line).delivered, before_[line].delivered); }
  LinkCount arrived(size_t line) { return minus(statsOf(line).in, before_[line].in); }
  LinkCount policed(size_t line) { return minus(statsOf(line).dropPolicer, before_[line].dropPolicer); }
  const Waits& waits(size_t line) const { return *waits_[line]; }

 private:
  static LinkCount minus(LinkCount a, LinkCount b) { return {a.packets - b.packets, a.bytes - b.bytes}; }

  std::vector<Line> lines_;
  std::vector<Cable> cables_;
  std::vector<std::unique_ptr<Waits>> waits_;
  std::vector<LinkStats> before_;
  Time since_{};
  Series series_;
};

/// WiFi 50 Mbit/s, 20 ms RTT and LTE 30 Mbit/s, 60 ms RTT with 200 ms of buffer, as in the lab's target
/// rate.2. A hair of difference from seed to seed.
std::vector<WanTunnel::Line> wifiAndLte(const RateParams& params, double wifiLoss, double lteLoss);

/// A download from the server's host to the client's that never ends: an inner TCP (NewReno), or with
/// WanParams::saturate raw segments that are always there. Returns what tells the bytes received.
std::function<uint64_t()> endlessDownload(const WanParams& params, World& world, const Network::Pair& pair);
/// The latter.
Saturation& saturate(World& world, const Network::Pair& pair);

/// Throws when the server's gateway has nothing left to send: what repair gave up, the source does not
/// replace.
void requireFed(const Network::Pair& pair);

}  // namespace braid::sim
