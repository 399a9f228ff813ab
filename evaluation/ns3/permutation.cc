#include <ns3/random-variable-stream.h>
#include <ns3/simulator.h>

#include "evaluation/models/statistics.h"
#include "evaluation/ns3/fat_tree.h"
#include "evaluation/ns3/scenarios.h"
#include "evaluation/ns3/units.h"

namespace braid::crosscheck {

Json runPermutation(const TcpParams& params, const std::vector<Route>& routes) {
  using namespace ns3;
  TcpSetting setting = settingOf(params, sim::kPermutation);
  FatTree tree(
      {.rate = setting.rate, .delay = microseconds(setting.rtt / (2 * sim::kLinksOverCore))},
      portOf(params, setting));
  auto random = CreateObject<UniformRandomVariable>();
  std::vector<std::unique_ptr<Flow>> flows;
  for (const Route& route : routes) {
    auto [from, to] = tree.lay(route);
    flows.push_back(std::make_unique<Flow>(from, to, static_cast<uint16_t>(flows.size())));
    flows.back()->writeAt(Flow::opened() + microseconds(random->GetValue(0, setting.spread)),
                          Flow::kEndless);
  }
  double warmUp = setting.seconds * sim::kWarmUpShare, measured = setting.seconds - warmUp;
  ns3::Time warm = Flow::opened() + Seconds(warmUp);
  std::vector<uint64_t> before;
  Simulator::Schedule(warm, [&] {
    for (const auto& flow : flows) before.push_back(flow->received());
  });
  Simulator::Stop(warm + Seconds(measured));
  Simulator::Run();
  std::vector<double> goodputs;
  uint64_t timeouts = 0;
  for (size_t i = 0; i < flows.size(); ++i) {
    goodputs.push_back(megabits(flows[i]->received() - before[i], measured));
    timeouts += flows[i]->timeouts();
  }
  return {{"goodput_mbps", goodputs},
          {"goodput_mean_mbps", sim::mean(goodputs)},
          {"jain", sim::jain(goodputs)},
          {"timeouts", timeouts},
          {"dropped", tree.dropped()}};
}

}  // namespace braid::crosscheck
