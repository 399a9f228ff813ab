#include <ns3/random-variable-stream.h>
#include <ns3/simulator.h>
#include <algorithm>

#include "sim/ns3/scenarios.h"
#include "sim/ns3/star.h"
#include "sim/ns3/units.h"

namespace braid::crosscheck {

Json run(const Incast& settings) {
  using namespace ns3;
  setDefaults(settings.tcp);
  Star star({.senders = settings.senders,
             .mbps = settings.rate,
             .rtt = microseconds(settings.rtt),
             .port = portOf(settings.tcp, settings.queue, settings.threshold)});
  auto random = CreateObject<UniformRandomVariable>();
  for (auto& flow : star.flows()) {
    flow->writeAt(Flow::opened() + microseconds(random->GetValue(0, settings.spread)), settings.bytes);
  }
  Simulator::Stop(Flow::opened() + Seconds(60));
  Simulator::Run();
  Time last;
  size_t incomplete = 0;
  for (const auto& flow : star.flows()) {
    last = std::max(last, flow->lastAt());
    incomplete += flow->received() < settings.bytes;
  }
  return {{"control", settings.tcp.control},
          {"completion_ms", (last - Flow::opened()).GetSeconds() * 1e3},
          {"timeouts", star.timeouts()},
          {"incomplete", incomplete},
          {"dropped", star.bottleneck().dropped()},
          {"marked", star.bottleneck().marked()}};
}

}  // namespace braid::crosscheck
