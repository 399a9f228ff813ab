#include <ns3/random-variable-stream.h>
#include <ns3/simulator.h>

#include "sim/ns3/fat_tree.h"
#include "sim/ns3/scenarios.h"
#include "sim/ns3/units.h"
#include "sim/statistics.h"

namespace braid::crosscheck {

Json run(const Permutation& settings) {
  using namespace ns3;
  setDefaults(settings.tcp);
  FatTree tree({.mbps = settings.rate, .delay = microseconds(settings.delay)},
               portOf(settings.tcp, settings.queue, settings.threshold));
  auto random = CreateObject<UniformRandomVariable>();
  std::vector<std::unique_ptr<Flow>> flows;
  for (const Route& route : settings.routes) {
    auto [from, to] = tree.lay(route);
    flows.push_back(std::make_unique<Flow>(from, to, static_cast<uint16_t>(flows.size())));
    flows.back()->writeAt(Flow::opened() + microseconds(random->GetValue(0, settings.spread)),
                          Flow::kEndless);
  }
  Time warm = Flow::opened() + Seconds(settings.warmup);
  std::vector<uint64_t> before;
  Simulator::Schedule(warm, [&] {
    for (const auto& flow : flows) before.push_back(flow->received());
  });
  Simulator::Stop(warm + Seconds(settings.seconds));
  Simulator::Run();
  std::vector<double> goodputs;
  uint64_t timeouts = 0;
  for (size_t i = 0; i < flows.size(); ++i) {
    goodputs.push_back(megabits(flows[i]->received() - before[i], settings.seconds));
    timeouts += flows[i]->timeouts();
  }
  return {{"control", settings.tcp.control}, {"goodput_mbps", goodputs}, {"mean", sim::mean(goodputs)},
          {"jain", sim::jain(goodputs)},     {"timeouts", timeouts},     {"dropped", tree.dropped()}};
}

}  // namespace braid::crosscheck
