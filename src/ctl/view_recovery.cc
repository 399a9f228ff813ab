#include "ctl/fields.h"
#include "ctl/table.h"
#include "ctl/views.h"

namespace braid {
namespace {

std::string peersPart(const nlohmann::json& answer) {
  Table table({"PEER", "POLICY", ">BLOCKS", ">PARITIES IN", ">DECODED", ">GIVEN BACK", ">EVICTED", ">M MAX",
               ">DECODING"});
  for (const auto& peer : listOf(answer, "peers")) {
    table.add({textOf(peer, "name"), textOf(peer, "recovery"), textOf(peer, "blocks"),
               textOf(peer, "parities_received"), textOf(peer, "blocks_decoded"),
               textOf(peer, "packets_decoded"), textOf(peer, "blocks_evicted"), textOf(peer, "m_max"),
               formatMicroseconds(numberOf(peer, "m_max_decode_us"))});
  }
  return table.empty() ? "no peers\n" : table.toString();
}

std::string subflowsPart(const nlohmann::json& answer) {
  Table table({"PEER", ">ID", "UPLINK", ">LOSS", ">C_L", ">BURST", ">PROTECTED", ">RECOVERED", ">DECODED",
               ">USELESS", ">COPIES", ">PARITIES", ">PROTECTION", ">SHARE"});
  for (const auto& peer : listOf(answer, "peers")) {
    for (const auto& subflow : listOf(peer, "subflows")) {
      table.add({textOf(peer, "name"), textOf(subflow, "id"), textOf(subflow, "uplink"),
                 formatFraction(numberOf(subflow, "loss_estimate")),
                 formatFraction(numberOf(subflow, "loss_metric")),
                 formatNumber(numberOf(subflow, "burst_packets")), textOf(subflow, "protected_packets"),
                 textOf(subflow, "recovered_packets"), textOf(subflow, "decoded_packets"),
                 textOf(subflow, "useless_packets"), textOf(subflow, "copies"), textOf(subflow, "parities"),
                 bytesOf(subflow, "protection_bytes"),
                 formatShare(countOf(subflow, "protection_bytes"), countOf(subflow, "sent_bytes"))});
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
  if (!flagOf(trace, "on")) return "trace off\n";
  std::string text =
      "trace on: " + textOf(trace, "written") + " events written, " + textOf(trace, "dropped") + " dropped";
  std::string problem = textOf(trace, "problem");
  return text + (problem == "-" ? "\n" : ": " + problem + "\n");
}

}  // namespace

std::string recoveryText(const nlohmann::json& answer) {
  return peersPart(answer) + "\n" + subflowsPart(answer) + "\n" + decodingPart(answer) + tracePart(answer);
}

}  // namespace braid
