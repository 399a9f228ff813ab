#include <ns3/error-model.h>
#include <ns3/simulator.h>

#include "sim/ns3/scenarios.h"
#include "sim/ns3/star.h"
#include "sim/ns3/units.h"

namespace braid::crosscheck {

Json run(const LossyPath& settings) {
  using namespace ns3;
  setDefaults(settings.tcp);
  // The sender's link is faster, so that what waits does so at the switch.
  Star star({.senders = 1,
             .mbps = settings.rate,
             .accessMbps = settings.rate * 10,
             .rtt = milliseconds(settings.rtt),
             .port = {.packets = settings.queue, .threshold = {}}});
  // What comes to the receiver after the handshake is data.
  auto loss = CreateObject<RateErrorModel>();
  loss->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
  loss->SetRate(settings.loss);
  loss->Disable();
  star.receiver()->SetReceiveErrorModel(loss);
  Simulator::Schedule(Flow::opened(), &ErrorModel::Enable, loss);
  star.flows().front()->writeAt(Flow::opened(), Flow::kEndless);
  Simulator::Stop(Flow::opened() + Seconds(settings.seconds));
  Simulator::Run();
  return {{"control", settings.tcp.control},
          {"goodput_mbps", megabits(star.received(), settings.seconds)},
          {"timeouts", star.timeouts()},
          {"dropped", star.bottleneck().dropped()}};
}

}  // namespace braid::crosscheck
