#include "ctl/fields.h"
#include "ctl/table.h"
#include "ctl/views.h"

namespace braid {

std::string flowsText(const nlohmann::json& answer) {
  Table table({"PEER", "FLOW", ">BYTES", ">PACKETS", ">QUEUED", ">UNACKED", ">DROPS", ">MARKS"});
  std::string cut;
  for (const auto& peer : listOf(answer, "peers")) {
    nlohmann::json flows = listOf(peer, "flows");
    for (const auto& flow : flows) {
      table.add({textOf(peer, "name"), textOf(flow, "name"), bytesOf(flow, "bytes"), textOf(flow, "packets"),
                 bytesOf(flow, "queued_bytes"), textOf(flow, "unacked_packets"), textOf(flow, "drops"),
                 textOf(flow, "marks")});
    }
    if (uint64_t all = countOf(peer, "flow_count"); all > flows.size()) {
      cut += textOf(peer, "name") + ": " + std::to_string(all - flows.size()) +
             " smaller flows are not listed\n";
    }
  }
  return (table.empty() ? "no flows\n" : table.toString()) + cut;
}

}  // namespace braid
