#include <ns3/random-variable-stream.h>
#include <ns3/simulator.h>
#include <algorithm>

#include "evaluation/ns3/scenarios.h"
#include "evaluation/ns3/star.h"
#include "evaluation/ns3/units.h"

namespace braid::crosscheck {

Json runIncast(const TcpParams& params) {
  using namespace ns3;
  TcpSetting setting = settingOf(params, sim::kIncast);
  Star star(setting, portOf(params, setting));
  auto random = CreateObject<UniformRandomVariable>();
  for (auto& flow : star.flows()) {
    flow->writeAt(Flow::opened() + microseconds(random->GetValue(0, setting.spread)), params.bytes);
  }
  Simulator::Stop(Flow::opened() + Seconds(toSeconds(sim::kRoundLimit)));
  Simulator::Run();
  ns3::Time last;
  size_t incomplete = 0;
  for (const auto& flow : star.flows()) {
    last = std::max(last, flow->lastAt());
    incomplete += flow->received() < params.bytes;
  }
  return {{"completion_ms", (last - Flow::opened()).GetSeconds() * 1e3},
          {"incomplete", incomplete},
          {"timeouts", star.timeouts()},
          {"dropped", star.bottleneck().dropped()},
          {"marked", star.bottleneck().marked()}};
}

}  // namespace braid::crosscheck
