// Downloads from their start on, over paths that are long, lossy, bursty or shallow, and over a
// path with a policer.

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "evaluation/models/raw_flows.h"
#include "evaluation/rate/rate_experiments.h"
#include "evaluation/rate/wan_network.h"
#include "simnet/tcp/rivals.h"
#include "simnet/tcp/tcp_flow.h"

namespace braid::sim {

namespace {

constexpr Duration kTick = 100ms;

/// Bursts of 8 lost packets on average, 1 % of all packets.
constexpr Loss kWifiBursts{.rate = 0.01, .burst = 8};

/// A line with this rate (bit/s), RTT and loss towards the client. The delay differs slightly from
/// seed to seed.
WanTunnel::Line line(const char* name, double rate, Duration rtt, double loss, Random& hair) {
  LinkOptions link{.rateBitsPerSecond = rate,
                   .delay = rtt / 2 + std::chrono::microseconds(hair.below(1000))};
  return {name, link, link, loss};
}

std::vector<WanTunnel::Line> network(const RateParams& params) {
  const std::string& name = params.wan.network;
  if (name == "wifi-lte") return wifiAndLte(params, params.wan.loss.value_or(0.01), 0.001);
  Random hair(params.seed);
  if (name == "far")
    return {line("a", 50e6, 180ms, 0.01, hair), line("b", 50e6, 220ms, 0.003, hair)};
  if (name == "long")
    return {line("a", 50e6, 200ms, 0.01, hair), line("b", 50e6, 200ms, 0.01, hair)};
  if (name == "bursty") {
    std::vector<WanTunnel::Line> lines{line("wifi", 60e6, 20ms, 0, hair),
                                       line("lte", 30e6, 60ms, 0.001, hair)};
    kWifiBursts.apply(lines[0].down);
    return lines;
  }
  std::vector<WanTunnel::Line> lines{line("a", 100e6, 20ms, 0, hair),
                                     line("b", 100e6, 30ms, 0, hair)};
  for (WanTunnel::Line& each : lines) each.up.queueBytes = each.down.queueBytes = 30'000;
  return lines;
}

/// Bytes that arrived by the end of each tick, from 0 on.
class Progress {
 public:
  Progress(World& world, std::function<uint64_t()> received)
      : world_(world), received_(std::move(received)) {
    look();
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Megabits per second between two ticks.
  double mbit(size_t from, size_t to) const {
    double seconds = static_cast<double>(to - from) * toSeconds(kTick);
    return static_cast<double>(at_[to] - at_[from]) * 8 / 1e6 / seconds;
  }
  size_t ticks() const { return at_.size() - 1; }

 private:
  void look() {
    at_.push_back(received_());
    world_.after(kTick, [this] { look(); });
  }
  World& world_;
  std::function<uint64_t()> received_;
  std::vector<uint64_t> at_;
};

/// The sender of the download: an inner TCP with this congestion control, or "saturated".
std::function<uint64_t()> download(const RateParams& params, World& world,
                                   const Network::Pair& pair) {
  constexpr uint16_t kDownload = 999;
  constexpr uint64_t kForever = uint64_t{1} << 50;
  if (params.wan.sender == "saturated")
    return [&flow = saturate(world, pair)] { return flow.received(); };
  tcp::Options options = tcp::recoveryOptions("linux");
  options.control = tcp::controlOf(params.wan.sender);
  options.content = false;
  auto& flow = world.add<TcpFlow>(*pair.server, *pair.client, kDownload, kForever, options);
  return [&flow] { return flow.received(); };
}

}  // namespace

Json runDownload(const RateParams& params) {
  constexpr size_t kWindow = 5;  // ticks over which the sum of the paths must be reached
  constexpr double kFull = 0.9;
  std::vector<WanTunnel::Line> lines = network(params);
  double sum = 0;
  for (const WanTunnel::Line& each : lines) sum += each.down.rateBitsPerSecond / 1e6;
  sum *= kPayloadShare;
  WanTunnel home(params, wanOptions(params, params.controller, TunnelOptions{}.recovery.c_str()),
                 lines);
  home.start();
  World& world = home.world();
  Progress progress(world, download(params, world, home.pair));
  Duration time = fromSeconds(params.wan.seconds.value_or(15));
  world.run(time);
  requireSound(world);
  Json each = Json::array();
  constexpr size_t kSecond = 1s / kTick;
  for (size_t t = 0; t + kSecond <= progress.ticks(); t += kSecond)
    each.push_back(std::round(10 * progress.mbit(t, t + kSecond)) / 10);
  // Without such a time it counts as the whole time.
  size_t full = kWindow;
  while (full < progress.ticks() && progress.mbit(full - kWindow, full) < kFull * sum) ++full;
  Counters sender(*home.pair.server);
  return {{"share", progress.mbit(0, progress.ticks()) / sum},
          {"full_s", static_cast<double>(full) * toSeconds(kTick)},
          {"mbit_by_second", each},
          {"links", home.linksJson()},
          {"lost", sender.lostPackets},
          {"timeouts", sender.timeouts},
          {"hash", world.hash()}};
}

Json runPoliced(const RateParams& params) {
  constexpr size_t kWindow = 5s / kTick, kFirst = 1s / kTick;
  LinkOptions link{.rateBitsPerSecond = 100e6, .delay = 20ms};
  link.delay += std::chrono::microseconds(Random(params.seed).below(1000));
  LinkOptions down = link;
  double rate = params.wan.policedRate;
  auto burst = static_cast<size_t>(rate / 8 * params.wan.burstMs / 1e3);
  down.policer = {rate, burst};
  WanTunnel policed(params, wanOptions(params, params.controller, TunnelOptions{}.recovery.c_str()),
                    {{"policed", link, down}});
  policed.start();
  World& world = policed.world();
  Progress progress(world, download(params, world, policed.pair));
  Progress arrived(world, [&] { return policed.arrived(0).bytes; });
  Progress dropped(world, [&] { return policed.policed(0).bytes; });
  world.run(static_cast<int>(kFirst) * kTick + fromSeconds(params.wan.seconds.value_or(60)));
  requireSound(world);
  double worst = 0, at = 0;
  for (size_t t = kFirst; t + kWindow <= arrived.ticks(); ++t) {
    double in = arrived.mbit(t, t + kWindow);
    double share = in > 0 ? dropped.mbit(t, t + kWindow) / in : 0;
    if (share > worst) worst = share, at = static_cast<double>(t) * toSeconds(kTick);
  }
  size_t end = progress.ticks();
  return {{"worst_loss", worst},
          {"worst_at_s", at},
          {"loss", dropped.mbit(0, end) / arrived.mbit(0, end)},
          {"first_s_loss", dropped.mbit(0, kFirst) / arrived.mbit(0, kFirst)},
          {"goodput_share", progress.mbit(kFirst, end) / (rate / 1e6 * kPayloadShare)},
          {"goodput_mbit", progress.mbit(0, end)},
          {"hash", world.hash()}};
}

}  // namespace braid::sim
