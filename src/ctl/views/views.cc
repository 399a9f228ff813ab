#include "ctl/views/views.h"

#include "ctl/views/fields.h"
#include "ctl/views/format.h"
#include "gateway/control/gateway_status.h"
#include "tunnel/api/status.h"

namespace braid {

std::string pathsText(const nlohmann::json& answer) {
  Table table({"PEER", ">ID", "UPLINK", "REMOTE", "STATE", ">RTT", ">MIN RTT", ">QUEUE", ">LOST",
               "ECN", ">WINDOW", ">IN FLIGHT", ">RATE", ">SENT", ">RECEIVED", ">TIMEOUTS", ">MTU"});
  for (const auto& peer : listOf(answer, "peers")) {
    for (const auto& subflow : listOf(peer, "subflows")) {
      table.add(
          {cell<&PeerStatus::name>(peer), cell<&SubflowStatus::id>(subflow),
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

namespace {

// "up", "down", and for a peer of a group "up, in use", "up, standby".
std::string stateText(const nlohmann::json& peer) {
  std::string text = flagOf(peer, kKeyOf<&PeerStatus::up>) ? "up" : "down";
  nlohmann::json group = fieldOf(peer, kKeyOf<&PeerStatus::group>);
  if (!group.is_string() || group.get<std::string>().empty()) return text;
  return text + (flagOf(peer, kKeyOf<&PeerStatus::inUse>) ? ", in use" : ", standby");
}

}  // namespace

std::string peersText(const nlohmann::json& answer) {
  Table table({"PEER", "STATE", ">FOR", ">SUBFLOWS", ">FLOWS", ">SENT", ">RECEIVED", ">REPAIRED",
               ">HELD", ">MTU", "CIPHER", ">KEYS", ">EPOCH", "PIN"});
  for (const auto& peer : listOf(answer, "peers")) {
    bool up = flagOf(peer, kKeyOf<&PeerStatus::up>);
    table.add({cell<&PeerStatus::name>(peer), stateText(peer),
               up ? cell<&PeerStatus::age>(peer) : "-", cell<&PeerStatus::subflows>(peer),
               cell<&PeerStatus::flowCount>(peer), cell<&CarriedCounts::sentBytes>(peer),
               cell<&CarriedCounts::receivedBytes>(peer), cell<&PeerStatus::retransmitted>(peer),
               cell<&PeerStatus::heldBytes>(peer), textOf(peer, kKeyOf<&PeerStatus::innerMtu>),
               cell<&PeerStatus::cipher>(peer), up ? cell<&PeerStatus::keyAge>(peer) : "-",
               cell<&PeerStatus::keyEpoch>(peer), cell<&PeerStatus::pin>(peer)});
  }
  return table.empty() ? "no peers\n" : table.toString();
}

namespace {
/// Empty when there are none.
std::string streamsPart(const nlohmann::json& answer) {
  Table table({"PEER", "STREAM", "STATE", ">SENT", ">RECEIVED", ">QUEUED", ">UNACKED", ">HELD",
               ">FIRST BYTE"});
  std::string cut;
  for (const auto& peer : listOf(answer, "peers")) {
    nlohmann::json streams = listOf(peer, "streams");
    for (const auto& stream : streams) {
      table.add({cell<&PeerStatus::name>(peer), cell<&StreamStatus::name>(stream),
                 cell<&StreamStatus::state>(stream), cell<&StreamStatus::sentBytes>(stream),
                 cell<&StreamStatus::receivedBytes>(stream),
                 cell<&StreamStatus::queuedBytes>(stream), cell<&StreamStatus::unacked>(stream),
                 cell<&StreamStatus::heldBytes>(stream), cell<&StreamStatus::firstByte>(stream)});
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
  Table table({"PEER", "FLOW", "DELIVERY", ">BYTES", ">PACKETS", ">QUEUED", ">UNACKED", ">DROPS",
               ">MARKS"});
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

namespace {

std::string peersPart(const nlohmann::json& answer) {
  Table table({"PEER", "POLICY", ">BLOCKS", ">PARITIES IN", ">DECODED", ">GIVEN BACK", ">EVICTED",
               ">M MAX", ">DECODING"});
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
  Table table({"PEER", ">ID", "UPLINK", ">LOSS", ">C_L", ">BURST", ">PROTECTED", ">RECOVERED",
               ">DECODED", ">USELESS", ">COPIES", ">PARITIES", ">PROTECTION", ">SHARE"});
  for (const auto& peer : listOf(answer, "peers")) {
    for (const auto& subflow : listOf(peer, "subflows")) {
      table.add({cell<&PeerStatus::name>(peer), cell<&SubflowStatus::id>(subflow),
                 cell<&SubflowStatus::uplink>(subflow), cell<&SubflowStatus::lossRate>(subflow),
                 cell<&SubflowStatus::lossMetric>(subflow), cell<&SubflowStatus::burst>(subflow),
                 cell<&SubflowStatus::protectedPackets>(subflow),
                 cell<&SubflowStatus::recovered>(subflow), cell<&SubflowStatus::decoded>(subflow),
                 cell<&SubflowStatus::useless>(subflow), cell<&SubflowStatus::copies>(subflow),
                 cell<&SubflowStatus::parities>(subflow),
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
  return peersPart(answer) + "\n" + subflowsPart(answer) + "\n" + decodingPart(answer) +
         tracePart(answer);
}

}  // namespace braid
