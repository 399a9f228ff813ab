#include "evaluation/rate/wan_network.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "base/random.h"
#include "evaluation/models/raw_flows.h"
#include "simnet/tcp/tcp_flow.h"

namespace braid::sim {

namespace {
constexpr uint16_t kPort = 999;
constexpr uint64_t kEndless = uint64_t{1} << 50;
/// Segments kept in flight: more than the deepest queue (1 MB) and the longest path hold, fewer
/// than a flow queue holds.
constexpr size_t kAhead = 2048;

constexpr Duration kRefill = 100ms;

double millions(double v) {
  return v / 1e6;
}
}  // namespace

Json Waits::json() const {
  return {{"p50_ms", percentile(ms_, 0.5)},
          {"p95_ms", percentile(ms_, 0.95)},
          {"max_ms", percentile(ms_, 1)}};
}

TunnelOptions wanOptions(const RateParams& params, const std::string& controller,
                         const char* recovery) {
  TunnelOptions o;
  o.outerMtu = o.maxOuterMtu = 1500;
  o.controller = controller;
  o.amp = params.amp;
  o.recovery = params.wan.recovery.value_or(recovery);
  o.scheduler = params.wan.scheduler.value_or(o.scheduler);
  return o;
}

WanTunnel::WanTunnel(const RateParams& params, const TunnelOptions& options,
                     std::vector<Line> lines)
    : Connection(params.seed, options),
      lines_(std::move(lines)),
      before_(lines_.size()),
      series_(network.world, params.series) {
  for (const Line& line : lines_) {
    cables_.push_back(network.cable(line.up, line.down));
    network.lose(*cables_.back().down, {.rate = line.loss});
    network.join(pair, {cables_.back()});
    waits_.push_back(std::make_unique<Waits>(*cables_.back().down));
  }
}

void WanTunnel::start() {
  network.start();
  for (size_t i = 0; i < lines_.size(); ++i)
    series_.watch(lines_[i].name, pair, network.world.paths()[i]->name(), down(i));
  series_.begin();
  restart();
}

void WanTunnel::restart() {
  for (size_t i = 0; i < lines_.size(); ++i) before_[i] = statsOf(i), waits_[i]->restart();
  since_ = network.world.now();
}

Json WanTunnel::linksJson() {
  Json j;
  double seconds = toSeconds(network.world.now() - since_);
  for (size_t i = 0; i < lines_.size(); ++i) {
    LinkStats now = statsOf(i);
    Json& line = j[lines_[i].name] = waits_[i]->json();
    line["mbit"] = millions(static_cast<double>(delivered(i).bytes) * 8 / seconds);
    line["dropped"] = now.dropQueue.packets - before_[i].dropQueue.packets + policed(i).packets;
  }
  return j;
}

std::vector<WanTunnel::Line> wifiAndLte(const RateParams& params, double wifiLoss, double lteLoss) {
  constexpr double kWifi = 50e6, kLte = 30e6;
  Random hair(params.seed);
  auto about = [&](Duration delay) { return delay + std::chrono::microseconds(hair.below(1000)); };
  LinkOptions wifi{.rateBitsPerSecond = kWifi, .delay = about(10ms)};
  LinkOptions lte{.rateBitsPerSecond = kLte,
                  .delay = about(30ms),
                  .queueBytes = static_cast<size_t>(kLte / 8 * toSeconds(200ms))};
  for (LinkOptions* each : {&wifi, &lte})
    each->jitter = fromSeconds(toSeconds(each->delay) * params.wan.jitter);
  return {{"wifi", wifi, wifi, wifiLoss}, {"lte", lte, lte, lteLoss}};
}

namespace {

uint64_t queuedBytes(const Network::Pair& pair) {
  uint64_t queued = 0;
  TunnelStatus status = pair.server->status();
  for (const FlowStatus& flow : status.peers.at(0).flows) queued += flow.queuedBytes;
  return queued;
}

/// Replaces the segments that the tunnel gave up after trying to repair them for too long.
/// Otherwise the number of segments in flight would stay too small forever.
void refill(World& world, const Network::Pair& pair, Saturation& flow) {
  constexpr uint64_t kLow = 1 << 20;
  constexpr size_t kMore = 256;
  if (queuedBytes(pair) < kLow) flow.add(kMore);
  world.after(kRefill, [&world, pair, &flow] { refill(world, pair, flow); });
}

}  // namespace

Saturation& saturate(World& world, const Network::Pair& pair) {
  auto& flow =
      world.add<Saturation>(*pair.client, *pair.server, kPort, segmentSize(*pair.server), kAhead);
  world.after(kRefill, [&world, pair, &flow] { refill(world, pair, flow); });
  return flow;
}

void requireFed(const Network::Pair& pair) {
  if (queuedBytes(pair) == 0) throw std::runtime_error("the source ran dry");
}

std::function<uint64_t()> endlessDownload(const WanParams& params, World& world,
                                          const Network::Pair& pair) {
  if (params.saturate) return [&flow = saturate(world, pair)] { return flow.received(); };
  auto& flow = world.add<TcpFlow>(*pair.server, *pair.client, kPort, TcpOptions{.bytes = kEndless});
  return [&flow] { return flow.received(); };
}

namespace {
constexpr double kDeviation = 0.4;  // of ln(rate), after a second

/// Box and Muller, 1958.
double normal(Random& random) {
  double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}
}  // namespace

std::vector<RateStep> cellularTrace(uint64_t seed, size_t seconds) {
  Random random(seed);
  double low = std::log(kCellularLow), high = std::log(kCellularHigh);
  double at = low + (high - low) * random.uniform();
  std::vector<RateStep> trace;
  for (size_t i = 0; i < seconds; ++i) {
    trace.push_back({std::chrono::seconds(1), std::exp(at)});
    at += kDeviation * normal(random);
    if (at < low) at = 2 * low - at;
    if (at > high) at = 2 * high - at;
  }
  return trace;
}

}  // namespace braid::sim
