#include "ctl/fields.h"
#include "ctl/table.h"
#include "ctl/views.h"
#include "gateway/control/gateway_status.h"
#include "tunnel/status.h"

namespace braid {
namespace {

std::string peersPart(const nlohmann::json& answer) {
  Table table({"PEER", "POLICY", ">BLOCKS", ">PARITIES IN", ">DECODED", ">GIVEN BACK", ">EVICTED", ">M MAX",
               ">DECODING"});
  for (const auto& peer : listOf(answer, "peers")) {
    table.add({cell<&PeerStatus::name>(peer), cell<&PeerStatus::recovery>(peer),
               cell<&PeerStatus::blocks>(peer), cell<&PeerStatus::paritiesReceived>(peer),
               cell<&PeerStatus::blocksDecoded>(peer), cell<&PeerStatus::restored>(peer),
               cell<&PeerStatus::evicted>(peer), textOf(peer, "m_max"),
               formatMicroseconds(numberOf(peer, "m_max_decode_us"))});
  }
  return table.empty() ? "no peers\n" : table.toString();
}

std::string subflowsPart(const nlohmann::json& answer) {
  Table table({"PEER", ">ID", "UPLINK", ">LOSS", ">C_L", ">BURST", ">PROTECTED", ">RECOVERED", ">DECODED",
               ">USELESS", ">COPIES", ">PARITIES", ">PROTECTION", ">SHARE"});
  for (const auto& peer : listOf(answer, "peers")) {
    for (const auto& subflow : listOf(peer, "subflows")) {
      table.add({cell<&PeerStatus::name>(peer), cell<&SubflowStatus::id>(subflow),
                 cell<&SubflowStatus::uplink>(subflow), cell<&SubflowStatus::lossRate>(subflow),
                 cell<&SubflowStatus::lossMetric>(subflow), cell<&SubflowStatus::burst>(subflow),
                 cell<&SubflowStatus::protectedPackets>(subflow), cell<&SubflowStatus::recovered>(subflow),
                 cell<&SubflowStatus::decoded>(subflow), cell<&SubflowStatus::useless>(subflow),
                 cell<&SubflowStatus::copies>(subflow), cell<&SubflowStatus::parities>(subflow),
                 cell<&SubflowStatus::protectionBytes>(subflow),
                 formatShare(countOf(subflow, kKeyOf<&SubflowStatus::protectionBytes>),
                             countOf(subflow, kKeyOf<&SubflowStatus::sentBytes>))});
    }
  }
  return table.empty() ? "no subflows\n" : table.toString();
}

std::string decodingPart(const nlohmann::json& answer) {
  std::string text = "restoring 1, 2, ... of " + textOf(answer, "k_max") + " packets takes";
  nlohmann::json times = listOf(answer, "decode_us");
  if (times.empty()) return "";
  const char* between = " ";
  for (const auto& time : times) {
    text += between + formatMicroseconds(time.is_number() ? time.get<double>() : 0);
    between = ", ";
  }
  return text + "\n";
}

std::string tracePart(const nlohmann::json& answer) {
  nlohmann::json trace = fieldOf(answer, "trace");
  if (!flagOf(trace, kKeyOf<&TraceStatus::on>)) return "trace off\n";
  std::string text = "trace on: " + cell<&TraceStatus::written>(trace) + " events written, " +
                     cell<&TraceStatus::dropped>(trace) + " dropped";
  std::string problem = cell<&TraceStatus::problem>(trace);
  return text + (problem == "-" ? "\n" : ": " + problem + "\n");
}

}  // namespace

std::string recoveryText(const nlohmann::json& answer) {
  return peersPart(answer) + "\n" + subflowsPart(answer) + "\n" + decodingPart(answer) + tracePart(answer);
}

}  // namespace braid
