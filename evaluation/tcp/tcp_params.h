#pragma once

// Parameters of the plain TCP experiments, which braid-sim runs with Braid's models and ns3_check
// with ns-3's.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/random.h"
#include "base/time.h"

namespace braid::sim {

/// Unset: the experiment's default.
struct TcpParams {
  std::string control = "newreno";   ///< tcp::controlNames()
  std::string recovery = "current";  ///< tcp::recoveryNames(); Braid's models alone
  uint64_t seed = 1;
  std::optional<double> rate;  ///< bit/s, of every link
  /// Us, without queues and transmission; permutation: of paths over the core
  std::optional<double> rtt;
  std::optional<double> seconds;  ///< lossy-path, dctcp-queue, permutation: from the first SYN on
  std::optional<size_t> senders;  ///< dctcp-queue, incast
  std::optional<size_t>
      queue;              ///< packets that wait at a port of a switch; lossy-path: at the sender's
  double loss = 0.01;     ///< lossy-path, timeouts: share of data packets lost
  size_t flows = 10'000;  ///< timeouts; Braid's models alone
  /// Timeouts: number of paths, of which one loses packets; a connection uses one
  size_t paths = 1;
  uint32_t initialWindow = 10;   ///< segments; Braid's models alone, ns-3 has these
  size_t threshold = 20;         ///< K, packets; with dctcp
  uint64_t bytes = 64 << 10;     ///< incast: size of a sender's data; timeouts: of a flow
  size_t rounds = 20;            ///< incast; Braid's models alone, ns-3 has one
  std::optional<double> spread;  ///< flows begin within this time, us
  double minRto = 200;           ///< ms
  double ackDelay = 40;          ///< ms
  bool delayedAcks = true;
  bool timestamps = true;
};

/// The parameters with all defaults filled in.
struct TcpSetting {
  double rate = 1e9, rtt = 100, seconds = 0;
  size_t senders = 1, queue = 100;
  double spread = 0;
};
inline constexpr TcpSetting kLossyPath{.rate = 10e6, .rtt = 40'000, .seconds = 60};
inline constexpr TcpSetting kDctcpQueue{
    .seconds = 2, .senders = 2, .queue = 1000, .spread = 10'000};
// senders begin nearly at once, like answers to one request
inline constexpr TcpSetting kIncast{.senders = 20, .spread = 10};
inline constexpr TcpSetting kTimeouts{.rtt = 280};
inline constexpr TcpSetting kPermutation{.seconds = 0.4, .senders = 16, .spread = 10'000};

/// Fills in the experiment's defaults, `own`.
inline TcpSetting settingOf(const TcpParams& p, const TcpSetting& own) {
  return {.rate = p.rate.value_or(own.rate),
          .rtt = p.rtt.value_or(own.rtt),
          .seconds = p.seconds.value_or(own.seconds),
          .senders = p.senders.value_or(own.senders),
          .queue = p.queue.value_or(own.queue),
          .spread = p.spread.value_or(own.spread)};
}

/// Draws when a flow begins.
inline Duration startOf(const TcpSetting& setting, Random& random) {
  return fromSeconds(setting.spread * 1e-6 * random.uniform());
}

/// dctcp-queue, permutation: share of the time at the beginning that does not count.
inline constexpr double kWarmUpShare = 0.25;
/// incast: flows that are incomplete after this time count with it.
inline constexpr Duration kRoundLimit = 30s;

/// Size of a full IP packet, bytes.
inline constexpr size_t kWirePacket = 1500;
/// permutation: number of links from one host to another over the core.
inline constexpr int kLinksOverCore = 6;

}  // namespace braid::sim
