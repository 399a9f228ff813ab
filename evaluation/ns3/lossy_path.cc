#include <ns3/error-model.h>
#include <ns3/simulator.h>

#include "evaluation/ns3/flow.h"
#include "evaluation/ns3/scenarios.h"
#include "evaluation/ns3/units.h"

namespace braid::crosscheck {

Json runLossyPath(const TcpParams& params) {
  using namespace ns3;
  TcpSetting setting = settingOf(params, sim::kLossyPath);
  Network network;
  auto sender = network.addNode(), receiver = network.addNode();
  network.join(sender, receiver, {.rate = setting.rate, .delay = microseconds(setting.rtt / 2)},
               portOf(params, setting), std::nullopt);
  const Port& arrival = network.port(receiver, sender);
  Flow flow({sender, network.port(sender, receiver).address()}, {receiver, arrival.address()}, 0);
  // After the handshake, all packets to the receiver are data.
  auto loss = CreateObject<RateErrorModel>();
  loss->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
  loss->SetRate(params.loss);
  loss->Disable();
  arrival.device()->SetReceiveErrorModel(loss);
  Simulator::Schedule(Flow::opened(), &ErrorModel::Enable, loss);
  flow.writeAt(Flow::opened(), Flow::kEndless);
  Simulator::Stop(Flow::opened() + Seconds(setting.seconds));
  Simulator::Run();
  return {{"goodput_mbps", megabits(flow.received(), setting.seconds)},
          {"timeouts", flow.timeouts()},
          {"fast_recoveries", flow.fastRecoveries()}};
}

}  // namespace braid::crosscheck
