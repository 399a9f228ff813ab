#include "ctl/fields.h"
#include "ctl/table.h"
#include "ctl/views.h"
#include "tunnel/status.h"

namespace braid {

std::string pathsText(const nlohmann::json& answer) {
  Table table({"PEER", ">ID", "UPLINK", "REMOTE", "STATE", ">RTT", ">MIN RTT", ">QUEUE", ">LOST", "ECN",
               ">WINDOW", ">IN FLIGHT", ">RATE", ">SENT", ">RECEIVED", ">TIMEOUTS", ">MTU"});
  for (const auto& peer : listOf(answer, "peers")) {
    for (const auto& subflow : listOf(peer, "subflows")) {
      table.add({cell<&PeerStatus::name>(peer), cell<&SubflowStatus::id>(subflow),
                 cell<&SubflowStatus::uplink>(subflow), cell<&SubflowStatus::remote>(subflow),
                 cell<&SubflowStatus::state>(subflow), cell<&SubflowStatus::srtt>(subflow),
                 cell<&SubflowStatus::minRtt>(subflow), cell<&SubflowStatus::queueDelay>(subflow),
                 formatShare(countOf(subflow, kKeyOf<&SubflowStatus::lostPackets>),
                             countOf(subflow, kKeyOf<&SubflowStatus::sentPackets>)),
                 cell<&SubflowStatus::ecn>(subflow), cell<&SubflowStatus::window>(subflow),
                 cell<&SubflowStatus::inFlight>(subflow), cell<&SubflowStatus::deliveryRate>(subflow),
                 cell<&SubflowStatus::sentBytes>(subflow), cell<&SubflowStatus::receivedBytes>(subflow),
                 cell<&SubflowStatus::timeouts>(subflow), textOf(subflow, kKeyOf<&SubflowStatus::mtu>)});
    }
  }
  return table.empty() ? "no subflows\n" : table.toString();
}

}  // namespace braid
