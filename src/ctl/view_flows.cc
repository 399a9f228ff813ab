#include "ctl/fields.h"
#include "ctl/table.h"
#include "ctl/views.h"
#include "tunnel/status.h"

namespace braid {

std::string flowsText(const nlohmann::json& answer) {
  Table table({"PEER", "FLOW", "DELIVERY", ">BYTES", ">PACKETS", ">QUEUED", ">UNACKED", ">DROPS", ">MARKS"});
  std::string cut;
  for (const auto& peer : listOf(answer, "peers")) {
    nlohmann::json flows = listOf(peer, "flows");
    for (const auto& flow : flows) {
      table.add({cell<&PeerStatus::name>(peer), cell<&FlowStatus::name>(flow),
                 cell<&FlowStatus::delivery>(flow), cell<&FlowStatus::bytes>(flow),
                 cell<&FlowStatus::packets>(flow), cell<&FlowStatus::queuedBytes>(flow),
                 cell<&FlowStatus::unacked>(flow), cell<&FlowStatus::drops>(flow),
                 cell<&FlowStatus::marks>(flow)});
    }
    if (uint64_t all = countOf(peer, kKeyOf<&PeerStatus::flowCount>); all > flows.size()) {
      cut += cell<&PeerStatus::name>(peer) + ": " + std::to_string(all - flows.size()) +
             " more flows are not listed\n";
    }
  }
  return (table.empty() ? "no flows\n" : table.toString()) + cut;
}

}  // namespace braid
