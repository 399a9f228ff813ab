#include "ctl/fields.h"
#include "ctl/table.h"
#include "ctl/views.h"
#include "tunnel/status.h"

namespace braid {

namespace {
/// Empty when there are none.
std::string streamsPart(const nlohmann::json& answer) {
  Table table(
      {"PEER", "STREAM", "STATE", ">SENT", ">RECEIVED", ">QUEUED", ">UNACKED", ">HELD", ">FIRST BYTE"});
  std::string cut;
  for (const auto& peer : listOf(answer, "peers")) {
    nlohmann::json streams = listOf(peer, "streams");
    for (const auto& stream : streams) {
      table.add({cell<&PeerStatus::name>(peer), cell<&StreamStatus::name>(stream),
                 cell<&StreamStatus::state>(stream), cell<&StreamStatus::sentBytes>(stream),
                 cell<&StreamStatus::receivedBytes>(stream), cell<&StreamStatus::queuedBytes>(stream),
                 cell<&StreamStatus::unacked>(stream), cell<&StreamStatus::heldBytes>(stream),
                 cell<&StreamStatus::firstByte>(stream)});
    }
    if (uint64_t all = countOf(peer, kKeyOf<&PeerStatus::streamCount>); all > streams.size()) {
      cut += cell<&PeerStatus::name>(peer) + ": " + std::to_string(all - streams.size()) +
             " more streams are not listed\n";
    }
  }
  return table.empty() ? "" : "\n" + table.toString() + cut;
}
}  // namespace

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
  return (table.empty() ? "no flows\n" : table.toString()) + cut + streamsPart(answer);
}

}  // namespace braid
