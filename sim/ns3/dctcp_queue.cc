#include <ns3/random-variable-stream.h>
#include <ns3/simulator.h>

#include "sim/ns3/scenarios.h"
#include "sim/ns3/star.h"
#include "sim/ns3/units.h"
#include "sim/statistics.h"

namespace braid::crosscheck {

namespace {

/// Looks at a port evenly in time.
class Sampler {
 public:
  explicit Sampler(const Port& port) : port_(port) {}

  void look() {
    lengths_.push_back(port_.waiting());
    ns3::Simulator::Schedule(ns3::MicroSeconds(10), &Sampler::look, this);
  }
  const std::vector<double>& lengths() const { return lengths_; }

 private:
  const Port& port_;
  std::vector<double> lengths_;
};

}  // namespace

Json run(const DctcpQueue& settings) {
  using namespace ns3;
  setDefaults(settings.tcp);
  Star star({.senders = settings.senders,
             .mbps = settings.rate,
             .rtt = microseconds(settings.rtt),
             .port = {.packets = settings.queue, .threshold = settings.threshold}});
  auto random = CreateObject<UniformRandomVariable>();
  for (auto& flow : star.flows()) {
    flow->writeAt(Flow::opened() + microseconds(random->GetValue(0, settings.spread)), Flow::kEndless);
  }
  Sampler sampler(star.bottleneck());
  Time warm = Flow::opened() + Seconds(settings.warmup);
  uint64_t before = 0;
  Simulator::Schedule(warm, [&] { before = star.received(); });
  Simulator::Schedule(warm, &Sampler::look, &sampler);
  Simulator::Stop(warm + Seconds(settings.seconds));
  Simulator::Run();
  const auto& lengths = sampler.lengths();
  return {{"control", settings.tcp.control},
          {"queue_mean", sim::mean(lengths)},
          {"queue_p50", sim::percentile(lengths, 0.5)},
          {"queue_p95", sim::percentile(lengths, 0.95)},
          {"queue_p99", sim::percentile(lengths, 0.99)},
          {"throughput_mbps", megabits(star.received() - before, settings.seconds)},
          {"timeouts", star.timeouts()},
          {"dropped", star.bottleneck().dropped()},
          {"marked", star.bottleneck().marked()}};
}

}  // namespace braid::crosscheck
