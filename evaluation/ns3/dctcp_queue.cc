#include <ns3/random-variable-stream.h>
#include <ns3/simulator.h>

#include "evaluation/models/statistics.h"
#include "evaluation/ns3/scenarios.h"
#include "evaluation/ns3/star.h"
#include "evaluation/ns3/units.h"

namespace braid::crosscheck {

namespace {

/// Samples a port's queue at regular intervals.
class Sampler {
 public:
  Sampler(const Port& port, ns3::Time step) : port_(port), step_(step) {}

  void look() {
    lengths_.push_back(port_.waiting());
    ns3::Simulator::Schedule(step_, &Sampler::look, this);
  }
  const std::vector<double>& lengths() const { return lengths_; }

 private:
  const Port& port_;
  ns3::Time step_;
  std::vector<double> lengths_;
};

}  // namespace

Json runDctcpQueue(const TcpParams& params) {
  using namespace ns3;
  TcpSetting setting = settingOf(params, sim::kDctcpQueue);
  Star star(setting, portOf(params, setting));
  auto random = CreateObject<UniformRandomVariable>();
  for (auto& flow : star.flows()) {
    flow->writeAt(Flow::opened() + microseconds(random->GetValue(0, setting.spread)),
                  Flow::kEndless);
  }
  Sampler sampler(star.bottleneck(), microseconds(sim::kWirePacket * 8e6 / setting.rate));
  double warmUp = setting.seconds * sim::kWarmUpShare, measured = setting.seconds - warmUp;
  ns3::Time warm = Flow::opened() + Seconds(warmUp);
  uint64_t before = 0;
  Simulator::Schedule(warm, [&] { before = star.received(); });
  Simulator::Schedule(warm, &Sampler::look, &sampler);
  Simulator::Stop(warm + Seconds(measured));
  Simulator::Run();
  const auto& lengths = sampler.lengths();
  return {{"queue_mean", sim::mean(lengths)},
          {"queue_p50", sim::percentile(lengths, 0.5)},
          {"queue_p95", sim::percentile(lengths, 0.95)},
          {"queue_p99", sim::percentile(lengths, 0.99)},
          {"throughput_mbps", megabits(star.received() - before, measured)},
          {"timeouts", star.timeouts()},
          {"dropped", star.bottleneck().dropped()},
          {"marked", star.bottleneck().marked()}};
}

}  // namespace braid::crosscheck
