#include "evaluation/rate/rate_experiments.h"

#include <algorithm>
#include <cmath>

#include "evaluation/models/raw_flows.h"
#include "evaluation/rate/wan_network.h"

namespace braid::sim {

namespace {

double megabits(uint64_t bytes, Duration time) {
  return static_cast<double>(bytes) * 8 / 1e6 / toSeconds(time);
}

Duration measured(const RateParams& params, double usual) {
  return fromSeconds(params.wan.seconds.value_or(usual));
}

}  // namespace

Json runWanBulk(const RateParams& params) {
  constexpr Duration kStart = 3s;  // not measured: slow start is not part of the steady state
  constexpr double kLinks = 80e6;
  WanTunnel home(params, wanOptions(params, params.controller, TunnelOptions{}.recovery.c_str()),
                 wifiAndLte(params, params.wan.loss.value_or(0.01), 0.001));
  home.start();
  World& world = home.world();
  auto received = endlessDownload(params.wan, world, home.pair);
  world.run(kStart);
  home.restart();
  Counters before(*home.pair.server);
  uint64_t atStart = received();
  Duration time = measured(params, 30);
  world.run(time);
  requireSound(world);
  Counters sender = Counters(*home.pair.server) - before;
  double limit = kLinks / 1e6 * kPayloadShare;
  return {{"goodput_mbit", megabits(received() - atStart, time)},
          {"share", megabits(received() - atStart, time) / limit},
          {"share_with_start", megabits(received(), time + kStart) / limit},
          {"links", home.linksJson()},
          {"extra_load",
           static_cast<double>(sender.protectionBytes) / static_cast<double>(sender.sentBytes)},
          {"lost", sender.lostPackets},
          {"timeouts", sender.timeouts},
          {"hash", world.hash()}};
}

Json runInteractive(const RateParams& params) {
  constexpr Duration kStart = 3s;
  constexpr Duration kEvery = 100ms;
  constexpr Duration kPatience = 10s;
  constexpr uint16_t kFirstPort = 1000;
  std::vector<WanTunnel::Line> lines = wifiAndLte(params, params.wan.loss.value_or(0), 0);
  Duration shortest = Duration::max();
  for (const auto& line : lines) shortest = std::min(shortest, line.up.delay + line.down.delay);
  WanTunnel home(params, wanOptions(params, params.controller, TunnelOptions{}.recovery.c_str()),
                 lines);
  home.start();
  World& world = home.world();
  auto received = endlessDownload(params.wan, world, home.pair);
  world.run(kStart);
  home.restart();
  uint64_t atStart = received();
  Duration time = measured(params, 120);
  auto count = static_cast<size_t>(time / kEvery);
  std::vector<const MessageFlow*> exchanges(count);
  Random phase(params.seed);
  for (size_t i = 0; i < count; ++i) {
    Duration at =
        static_cast<int>(i) * kEvery + Duration(phase.below(static_cast<uint64_t>(kEvery.count())));
    world.after(at, [&, i] {
      auto port = static_cast<uint16_t>(kFirstPort + i);
      MessageOptions message{.bytes = 100};
      exchanges[i] = &world.add<MessageFlow>(*home.pair.client, *home.pair.server, port, message);
    });
  }
  world.run(time);
  uint64_t carried = received() - atStart;
  auto allDone = [&] {
    return std::ranges::all_of(exchanges, [](const MessageFlow* e) { return e->done(); });
  };
  world.runUntil(allDone, kPatience);
  requireSound(world);
  std::vector<double> late;
  size_t incomplete = 0;
  for (const MessageFlow* exchange : exchanges) {
    late.push_back(toMilliseconds(exchange->completionTime() - shortest));
    incomplete += !exchange->done();
  }
  return {{"exchanges", count},
          {"incomplete", incomplete},
          {"p50_ms", percentile(late, 0.5)},
          {"p95_ms", percentile(late, 0.95)},
          {"p99_ms", percentile(late, 0.99)},
          {"max_ms", percentile(late, 1)},
          {"goodput_mbit", megabits(carried, time)},
          {"links", home.linksJson()},
          {"hash", world.hash()}};
}

Json runTrace(const RateParams& params) {
  constexpr size_t kStart = 5;        // seconds
  constexpr size_t kQueue = 1 << 20;  // 0.7 s at the mean rate, 8 s at the lowest
  auto time = static_cast<size_t>(params.wan.seconds.value_or(120));
  std::vector<RateStep> trace = cellularTrace(params.seed, kStart + time);
  LinkOptions up{.rateBitsPerSecond = kCellularHigh, .delay = 25ms};
  LinkOptions down{
      .rateBitsPerSecond = trace[0].bitsPerSecond, .delay = 25ms, .queueBytes = kQueue};
  WanTunnel phone(params, wanOptions(params, params.controller, "none"), {{"4g", up, down}});
  phone.start();
  World& world = phone.world();
  down.trace = trace;
  phone.down(0).setOptions(down, world.now());
  Saturation& flow = saturate(world, phone.pair);
  // packets that arrive at this time left at a whole second
  world.run(std::chrono::seconds(kStart) + down.delay);
  phone.restart();
  uint64_t atStart = flow.received();
  world.run(std::chrono::seconds(time));
  requireSound(world);
  requireFed(phone.pair);
  double capacity = 0;  // bytes
  std::vector<double> mbit;
  for (const RateStep& step : trace) mbit.push_back(std::round(step.bitsPerSecond / 1e4) / 100);
  for (size_t i = kStart; i < trace.size(); ++i) capacity += trace[i].bitsPerSecond / 8;
  return {{"utilisation", static_cast<double>(phone.delivered(0).bytes) / capacity},
          {"goodput_share", static_cast<double>(flow.received() - atStart) / capacity},
          {"mean_mbit", capacity * 8 / 1e6 / static_cast<double>(time)},
          {"links", phone.linksJson()},
          {"trace_mbit", mbit},
          {"hash", world.hash()}};
}

Json runPolicer(const RateParams& params) {
  constexpr Duration kStart = 10s;
  LinkOptions link{.rateBitsPerSecond = 100e6, .delay = 20ms};
  LinkOptions down = link;
  Random hair(params.seed);
  down.delay += std::chrono::microseconds(hair.below(1000));
  down.policer = {params.wan.policedRate, params.wan.burstBytes};
  WanTunnel policed(params, wanOptions(params, params.controller, "none"),
                    {{"policed", link, down}});
  policed.start();
  World& world = policed.world();
  Saturation& flow = saturate(world, policed.pair);
  world.run(kStart);
  auto lossShare = [&] {
    return static_cast<double>(policed.policed(0).packets) /
           static_cast<double>(policed.arrived(0).packets);
  };
  double early = lossShare();
  policed.restart();
  uint64_t atStart = flow.received();
  Duration time = measured(params, 30);
  world.run(time);
  requireSound(world);
  requireFed(policed.pair);
  double rate = params.wan.policedRate / 1e6;
  return {{"loss", lossShare()},
          {"loss_before", early},
          {"utilisation", megabits(policed.delivered(0).bytes, time) / rate},
          {"goodput_share", megabits(flow.received() - atStart, time) / rate},
          {"links", policed.linksJson()},
          {"hash", world.hash()}};
}

Json runShallow(const RateParams& params) {
  constexpr double kRate = 100e6;
  LinkOptions link{.rateBitsPerSecond = kRate, .delay = 10ms, .queueBytes = params.wan.queueBytes};
  link.delay += std::chrono::microseconds(Random(params.seed).below(1000));
  WanTunnel tunnel(params, wanOptions(params, params.controller, "none"),
                   {{"shallow", link, link}});
  tunnel.start();
  World& world = tunnel.world();
  Saturation& flow = saturate(world, tunnel.pair);
  Duration time = measured(params, 20);
  world.run(time);
  requireSound(world);
  requireFed(tunnel.pair);
  Counters sender(*tunnel.pair.server);
  return {{"goodput_share", megabits(flow.received(), time) / (kRate / 1e6)},
          {"loss", static_cast<double>(sender.lostPackets) /
                       static_cast<double>(tunnel.arrived(0).packets)},
          {"links", tunnel.linksJson()},
          {"hash", world.hash()}};
}

}  // namespace braid::sim
