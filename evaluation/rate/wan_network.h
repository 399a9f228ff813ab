#pragma once

// Tunnels over Internet paths, and how long packets wait in their queues.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "evaluation/models/network.h"
#include "evaluation/rate/rate_experiments.h"
#include "simnet/link/link_options.h"

namespace braid::sim {

class Saturation;

/// Payload share of TCP without a tunnel, with full packets of 1500 bytes: headers and timestamps
/// take 52 bytes.
inline constexpr double kPayloadShare = 1448.0 / 1500;

/// Records the queueing delay of the packets that a link delivers: from arrival at the queue to the
/// begin of transmission.
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
  /// {"p50_ms","p95_ms","max_ms"} of the packets since restart().
  Json json() const;

 private:
  std::vector<double> ms_;
};

/// Options for both gateways of an experiment: datagrams of 1500 bytes without path MTU probes,
/// this controller and, unless the parameters set another, this recovery policy. Everything else is
/// the product's default.
TunnelOptions wanOptions(const RateParams& params, const std::string& controller,
                         const char* recovery);

/// One tunnel with one subflow per line (access link). Data is sent to the client, so `down` is the
/// direction that matters.
class WanTunnel : public Connection {
 public:
  struct Line {
    const char* name;
    LinkOptions up, down;
    double loss = 0;  ///< loss towards the client, once the tunnel is up
  };
  WanTunnel(const RateParams& params, const TunnelOptions& options, std::vector<Line> lines);

  /// Starts the tunnel and the series.
  void start();
  /// Restarts the links' statistics.
  void restart();
  /// For each line: queueing delay, delivered Mbit/s, and packets dropped by the queue or the
  /// policer.
  Json linksJson();

  World& world() { return network.world; }
  SharedLink& down(size_t line) { return *cables_[line].down; }
  LinkStats statsOf(size_t line) { return down(line).stats(network.world.now()); }
  /// Packets and bytes of a line since restart().
  LinkCount delivered(size_t line) {
    return minus(statsOf(line).delivered, before_[line].delivered);
  }
  LinkCount arrived(size_t line) { return minus(statsOf(line).in, before_[line].in); }
  LinkCount policed(size_t line) {
    return minus(statsOf(line).dropPolicer, before_[line].dropPolicer);
  }
  const Waits& waits(size_t line) const { return *waits_[line]; }

 private:
  static LinkCount minus(LinkCount a, LinkCount b) {
    return {a.packets - b.packets, a.bytes - b.bytes};
  }

  std::vector<Line> lines_;
  std::vector<Cable> cables_;
  std::vector<std::unique_ptr<Waits>> waits_;
  std::vector<LinkStats> before_;
  Time since_{};
  Series series_;
};

/// WiFi with 50 Mbit/s and 20 ms RTT, and LTE with 30 Mbit/s and 60 ms RTT, with 200 ms of buffer,
/// as in the lab's target rate.2. The values differ slightly from seed to seed.
std::vector<WanTunnel::Line> wifiAndLte(const RateParams& params, double wifiLoss, double lteLoss);

/// Starts an endless download from the server's host to the client's: an inner TCP (NewReno), or
/// with WanParams::saturate an endless supply of raw segments. Returns a function that tells the
/// bytes received.
std::function<uint64_t()> endlessDownload(const WanParams& params, World& world,
                                          const Network::Pair& pair);
/// Starts the raw segments of endlessDownload().
Saturation& saturate(World& world, const Network::Pair& pair);

/// Throws when the server's gateway has nothing left to send. This can happen because the source
/// does not replace packets that the tunnel gave up.
void requireFed(const Network::Pair& pair);

/// A rate trace like the 4G link of a moving phone: one step per second, between 1 and 50 Mbit/s.
/// The logarithm of the rate is a random walk with normally distributed steps of deviation 0.4,
/// reflected at both ends. Its start is uniformly distributed between the ends, and so are all
/// later values. So the rate changes by a factor of 1.5 per second (one deviation), all orders of
/// magnitude take the same share of time, and the mean is 12.5 Mbit/s.
///
/// The size of the steps is that of Sprout's model of cellular links (Winstein, Sivaraman,
/// Balakrishnan, NSDI 2013; its published receiver): a Brownian motion with a deviation of 200
/// packets/s after a second, in a range up to 1000 packets/s, which is 0.4 of the middle of the
/// range. The range is the one that target rate.3 names (evaluation/internet.md). The 4G logs from
/// Ghent (van der Hooft and others, 2016) show 20 Mbit/s and more for a car, with one value per
/// second.
std::vector<RateStep> cellularTrace(uint64_t seed, size_t seconds);

inline constexpr double kCellularLow = 1e6;    ///< bit/s
inline constexpr double kCellularHigh = 50e6;  ///< bit/s

}  // namespace braid::sim
