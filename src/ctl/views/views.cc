#include "ctl/views/views.h"

#include <algorithm>

#include "ctl/views/format.h"
#include "gateway/control/gateway_status.h"
#include "inet/addresses.h"
#include "tunnel/api/status.h"

namespace braid {
namespace {

std::string joined(const nlohmann::json::array_t& list) {
  std::string text;
  for (const auto& item : list) {
    if (item.is_string()) text += (text.empty() ? "" : ", ") + printable(item.get<std::string>());
  }
  return text.empty() ? "-" : text;
}

// "35.0 % of 10.0 GB until 2026-07-01 00:00"; empty: the uplink has no cap.
std::string capText(const nlohmann::json& uplink) {
  nlohmann::json meter = fieldOf(uplink, kKeyOf<&UplinkStatus::meter>);
  if (!meter.is_object()) return "";
  constexpr const char* kCap = kKeyOf<&MeterReading::cap>;
  return formatShare(countOf(meter, kKeyOf<&MeterReading::used>), countOf(meter, kCap)) + " of " +
         formatBytes(numberOf(meter, kCap)) + " until " + cell<&MeterPeriodStatus::until>(meter) +
         (flagOf(meter, kKeyOf<&MeterReading::closed>) ? ", cap reached" : "");
}

// "metered, weight 3, up 5.00 Mbit/s", with the cap after the first word if that is wanted.
std::string useText(const nlohmann::json& uplink, bool withCap) {
  std::string text = cell<&UplinkStatus::use>(uplink);
  if (const std::string cap = capText(uplink); withCap && !cap.empty()) text += ", " + cap;
  if (countOf(uplink, kKeyOf<&UplinkStatus::weight>) > 1)
    text += ", weight " + cell<&UplinkStatus::weight>(uplink);
  if (countOf(uplink, kKeyOf<&UplinkStatus::upLimit>) > 0)
    text += ", up " + cell<&UplinkStatus::upLimit>(uplink);
  if (countOf(uplink, kKeyOf<&UplinkStatus::downLimit>) > 0)
    text += ", down " + cell<&UplinkStatus::downLimit>(uplink);
  return text;
}

std::string uplinksText(const nlohmann::json& gateway) {
  Table table({"UPLINK", "INTERFACE", "STATE", "USE", "ADDRESSES", "GATEWAY"});
  for (const auto& uplink : listOf(gateway, kKeyOf<&GatewayStatus::uplinks>)) {
    table.add({cell<&UplinkStatus::name>(uplink), cell<&UplinkStatus::interface>(uplink),
               flagOf(uplink, kKeyOf<&UplinkStatus::up>) ? "up" : "down", useText(uplink, true),
               joined(listOf(uplink, kKeyOf<&UplinkStatus::addresses>)),
               cell<&UplinkStatus::gateway>(uplink)});
  }
  return table.empty() ? "" : "\n" + table.toString();
}

// The public address of an uplink's first path that works, without its port.
std::string seenAs(const nlohmann::json& answer, const std::string& uplink) {
  for (const auto& peer : listOf(answer, "peers")) {
    for (const auto& s : listOf(peer, "subflows")) {
      if (wordOf(s, kKeyOf<&SubflowStatus::uplink>) != uplink) continue;
      if (wordOf(s, kKeyOf<&SubflowStatus::state>) != "active") continue;
      if (const auto at = Endpoint::parse(wordOf(s, kKeyOf<&SubflowStatus::observed>)))
        return at->address.toString();
    }
  }
  return "-";
}

// How much of the day each uplink worked, and what it carried beside its cap.
std::string carriedText(const nlohmann::json& answer, size_t columns) {
  Table table({"UPLINK", "SEEN AS", ">AVAILABLE", ">TODAY", ">THIS MONTH", "CAP"});
  for (const auto& uplink : listOf(fieldOf(answer, "gateway"), kKeyOf<&GatewayStatus::uplinks>)) {
    const nlohmann::json& carried = fieldOf(uplink, kKeyOf<&UplinkStatus::carried>);
    const std::string cap = capText(uplink);
    table.add({cell<&UplinkStatus::name>(uplink),
               seenAs(answer, wordOf(uplink, kKeyOf<&UplinkStatus::name>)),
               formatAvailability(numberOf(uplink, kKeyOf<&UplinkStatus::availability>)),
               cell<&CarriedStatus::today>(carried), cell<&CarriedStatus::month>(carried),
               cap.empty() ? "-" : cap});
  }
  return table.empty() ? "" : "\n" + table.toString(columns);
}

// Lists only the causes that occurred.
std::string dropsText(const char* title, const nlohmann::json& drops) {
  std::string text;
  if (!drops.is_object()) return text;
  for (const auto& [cause, count] : drops.items()) {
    if (count.is_number_unsigned() && count != 0)
      text += "  " + printable(cause) + " " + count.dump();
  }
  return text.empty() ? text : std::string("\n") + title + ":" + text + "\n";
}

std::string shimText(const nlohmann::json& shim) {
  if (!flagOf(shim, kKeyOf<&ShimStatus::on>)) return "";
  Table table({"ACK SHIM", ">FIRED", ">USEFUL", ">SPURIOUS"});
  for (const auto& actuator : listOf(shim, kKeyOf<&ShimCounters::actuators>)) {
    table.add({textOf(actuator, "name"), cell<&ActuatorCounts::fired>(actuator),
               cell<&ActuatorCounts::useful>(actuator), cell<&ActuatorCounts::spurious>(actuator)});
  }
  return "\n" + table.toString() + "flows " + cell<&ShimStatus::flows>(shim) + ", kept packets " +
         cell<&ShimStatus::cachedPackets>(shim) + ", silent " + cell<&ShimCounters::silent>(shim) +
         ", helpless " + cell<&ShimCounters::helpless>(shim) + "\n";
}

// "streams on, new connections are taken over; 12 open of 65536, 100 accepted, 20 connected, 108
// closed"
std::string streamsText(const nlohmann::json& streams) {
  if (!flagOf(streams, kKeyOf<&StreamFigures::on>)) return "";
  bool taking = flagOf(streams, kKeyOf<&StreamFigures::taking>);
  std::string text =
      std::string("\nstreams on, new connections ") + (taking ? "are taken over" : "stay packets") +
      "; " + cell<&StreamFigures::open>(streams) + " open of " +
      cell<&StreamFigures::most>(streams) + ", " + cell<&StreamFigures::accepted>(streams) +
      " accepted, " + cell<&StreamFigures::connected>(streams) + " connected, " +
      cell<&StreamFigures::closed>(streams) + " closed\n";
  nlohmann::json ends = nlohmann::json::object();
  for (const char* key : {kKeyOf<&StreamFigures::refusedHere>, kKeyOf<&StreamFigures::lifts>,
                          kKeyOf<&StreamFigures::reset>, kKeyOf<&StreamFigures::refused>,
                          kKeyOf<&StreamFigures::unreachable>, kKeyOf<&StreamFigures::timedOut>,
                          kKeyOf<&StreamFigures::limit>, kKeyOf<&StreamFigures::gone>,
                          kKeyOf<&StreamFigures::forbidden>})
    ends[key] = fieldOf(streams, key);
  return text + dropsText("streams that ended otherwise", ends);
}

}  // namespace

std::string pathName(const nlohmann::json& subflow) {
  return textOf(subflow, kKeyOf<&SubflowStatus::path>);
}

uint64_t lostPackets(const nlohmann::json& counters) {
  const uint64_t lost = countOf(counters, kKeyOf<&SendCounts::lostPackets>);
  return lost - std::min(lost, countOf(counters, kKeyOf<&SendCounts::spuriousLosses>));
}

std::string pathState(const nlohmann::json& subflow) {
  const double down = numberOf(subflow, kKeyOf<&SubflowStatus::down>, 0);
  if (down <= 0) return cell<&SubflowStatus::state>(subflow);
  return "down for " + (down < 1 ? formatMilliseconds(down * 1000) : formatShortAge(down));
}

std::string verboseStatusText(const nlohmann::json& answer) {
  nlohmann::json gateway = fieldOf(answer, "gateway");
  std::string text = "braidd " + cell<&GatewayStatus::version>(gateway) + ", up " +
                     cell<&GatewayStatus::uptime>(gateway) + ", process " +
                     cell<&GatewayStatus::pid>(gateway) + "\n";
  text += "config  " + cell<&GatewayStatus::config>(gateway) + "\n";
  text += "device  " + cell<&GatewayStatus::device>(gateway) + " (" +
          cell<&GatewayStatus::mode>(gateway) + "), MTU " +
          textOf(gateway, kKeyOf<&GatewayStatus::deviceMtu>) + "\n";
  if (const auto& listen = listOf(gateway, kKeyOf<&GatewayStatus::listen>); !listen.empty())
    text += "listen  " + joined(listen) + "\n";
  text += "pin     " + cell<&GatewayStatus::pin>(gateway) + "\n";
  for (const auto& uplink : listOf(gateway, kKeyOf<&GatewayStatus::uplinks>)) {
    const auto& asked = listOf(uplink, kKeyOf<&UplinkStatus::resolvers>);
    if (asked.empty()) continue;
    text += "names   over " + cell<&UplinkStatus::name>(uplink) + " by " + joined(asked) + " (" +
            cell<&UplinkStatus::resolversFrom>(uplink) + ")\n";
  }
  return text + uplinksText(gateway) + carriedText(answer, std::string::npos) + "\n" +
         peersText(answer) + "\n" + pathsText(answer) +
         shimText(fieldOf(answer, kKeyOf<&TunnelStatus::shim>)) +
         streamsText(fieldOf(answer, "streams")) +
         dropsText("dropped", fieldOf(answer, kKeyOf<&TunnelStatus::drops>)) +
         dropsText("dropped between kernel and tunnel", fieldOf(answer, "host_drops"));
}

namespace {

// What was measured of a path. Of one that does not work that is of the past, and shows as "-".
struct Measured {
  explicit Measured(const nlohmann::json& s) {
    if (textOf(s, kKeyOf<&SubflowStatus::state>) != "active") return;
    rtt = cell<&SubflowStatus::srtt>(s);
    minRtt = cell<&SubflowStatus::minRtt>(s);
    queue = cell<&SubflowStatus::queueDelay>(s);
    lost = formatShare(lostPackets(s), countOf(s, kKeyOf<&SubflowStatus::sentPackets>));
    rate = cell<&SubflowStatus::deliveryRate>(s);
  }
  std::string rtt = "-", minRtt = "-", queue = "-", lost = "-", rate = "-";
};

// The mean time by which packets were sent again later than at first.
std::string againText(const nlohmann::json& peer) {
  const uint64_t again = countOf(peer, kKeyOf<&PeerStatus::retransmitted>);
  const double later = numberOf(peer, kKeyOf<&PeerStatus::retransmitDelay>, 0);
  if (again == 0) return "0";
  return std::to_string(again) + " after " + formatMilliseconds(later / static_cast<double>(again));
}

}  // namespace

std::string pathsText(const nlohmann::json& answer) {
  Table table({"PEER", ">ID", "PATH", "REMOTE", "SEEN AS", "STATE", ">RTT", ">MIN RTT", ">QUEUE",
               ">LOST", "ECN", ">WINDOW", ">IN FLIGHT", ">RATE", ">SENT", ">RECEIVED", ">TIMEOUTS",
               ">MTU"});
  for (const auto& peer : listOf(answer, "peers")) {
    for (const auto& subflow : listOf(peer, "subflows")) {
      const Measured figures(subflow);
      table.add(
          {cell<&PeerStatus::name>(peer), cell<&SubflowStatus::id>(subflow), pathName(subflow),
           cell<&SubflowStatus::remote>(subflow), cell<&SubflowStatus::observed>(subflow),
           pathState(subflow), figures.rtt, figures.minRtt, figures.queue, figures.lost,
           cell<&SubflowStatus::ecn>(subflow), cell<&SubflowStatus::window>(subflow),
           cell<&SubflowStatus::inFlight>(subflow), figures.rate,
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
  Table table({"PEER", "STATE", ">FOR", ">SUBFLOWS", ">FLOWS", ">SENT", ">RECEIVED", ">SENT AGAIN",
               ">NEVER DELIVERED", ">HELD", ">MTU", "CIPHER", ">KEYS", ">EPOCH", "PIN"});
  for (const auto& peer : listOf(answer, "peers")) {
    bool up = flagOf(peer, kKeyOf<&PeerStatus::up>);
    table.add({cell<&PeerStatus::name>(peer), stateText(peer),
               up ? cell<&PeerStatus::age>(peer) : "-", cell<&PeerStatus::subflows>(peer),
               cell<&PeerStatus::flowCount>(peer), cell<&CarriedCounts::sentBytes>(peer),
               cell<&CarriedCounts::receivedBytes>(peer), againText(peer),
               cell<&PeerStatus::undelivered>(peer), cell<&PeerStatus::heldBytes>(peer),
               textOf(peer, kKeyOf<&PeerStatus::innerMtu>), cell<&PeerStatus::cipher>(peer),
               up ? cell<&PeerStatus::keyAge>(peer) : "-", cell<&PeerStatus::keyEpoch>(peer),
               cell<&PeerStatus::pin>(peer)});
  }
  return table.empty() ? "no peers\n" : table.toString();
}

namespace {

std::string fewPeersText(const nlohmann::json& answer) {
  Table table({"PEER", "STATE", ">FOR", ">FLOWS", ">SENT", ">RECEIVED"});
  for (const auto& peer : listOf(answer, "peers")) {
    const bool up = flagOf(peer, kKeyOf<&PeerStatus::up>);
    table.add({cell<&PeerStatus::name>(peer), stateText(peer),
               up ? cell<&PeerStatus::age>(peer) : "-", cell<&PeerStatus::flowCount>(peer),
               cell<&CarriedCounts::sentBytes>(peer), cell<&CarriedCounts::receivedBytes>(peer)});
  }
  return table.empty() ? "no peers\n" : table.toString(kColumns);
}

std::string fewPathsText(const nlohmann::json& answer) {
  Table table({"PEER", "PATH", "STATE", ">RTT", ">QUEUE", ">LOST", ">RATE", ">SENT", ">RECEIVED"});
  for (const auto& peer : listOf(answer, "peers")) {
    for (const auto& s : listOf(peer, "subflows")) {
      const Measured figures(s);
      table.add({cell<&PeerStatus::name>(peer), pathName(s), pathState(s), figures.rtt,
                 figures.queue, figures.lost, figures.rate, cell<&SubflowStatus::sentBytes>(s),
                 cell<&SubflowStatus::receivedBytes>(s)});
    }
  }
  return table.empty() ? "no paths\n" : table.toString(kColumns);
}

// What became of the packets that were lost since each session began.
std::string lossesText(const nlohmann::json& answer) {
  Table table({"PEER", ">LOST ON THE PATH", ">REPAIRED BEFORE THE SENDER KNEW", ">SENT AGAIN",
               ">NEVER DELIVERED"});
  for (const auto& peer : listOf(answer, "peers")) {
    uint64_t sent = 0, lost = 0, repaired = 0;
    for (const auto& s : listOf(peer, "subflows")) {
      sent += countOf(s, kKeyOf<&SubflowStatus::sentPackets>);
      lost += lostPackets(s);
      repaired += countOf(s, kKeyOf<&SubflowStatus::recovered>);
    }
    table.add({cell<&PeerStatus::name>(peer),
               std::to_string(lost) + (lost > 0 ? " (" + formatShare(lost, sent) + ")" : ""),
               std::to_string(std::min(lost, repaired)), againText(peer),
               cell<&PeerStatus::undelivered>(peer)});
  }
  return table.empty() ? "" : "\n" + table.toString(kColumns);
}

std::string fewUplinksText(const nlohmann::json& gateway) {
  Table table({"UPLINK", "INTERFACE", "STATE", "USE"});
  for (const auto& uplink : listOf(gateway, kKeyOf<&GatewayStatus::uplinks>)) {
    table.add({cell<&UplinkStatus::name>(uplink), cell<&UplinkStatus::interface>(uplink),
               flagOf(uplink, kKeyOf<&UplinkStatus::up>) ? "up" : "down", useText(uplink, false)});
  }
  return table.empty() ? "" : "\n" + table.toString(kColumns);
}

// "hub: pre-shared key differs or is set on one side only", for each refused peer.
std::string refusalsText(const nlohmann::json& answer) {
  std::string text;
  for (const auto& peer : listOf(answer, "peers")) {
    const std::string why = textOf(peer, kKeyOf<&PeerStatus::refusal>);
    if (why != "-") text += cell<&PeerStatus::name>(peer) + ": " + why + "\n";
  }
  return text.empty() ? text : "\n" + text;
}

// "wifi: a captive portal waits for a login at URL" and what hosts of the LAN reach of it.
std::string portalsText(const nlohmann::json& gateway) {
  std::string text;
  for (const auto& uplink : listOf(gateway, kKeyOf<&GatewayStatus::uplinks>)) {
    const std::string page = textOf(uplink, kKeyOf<&UplinkStatus::portal>);
    if (page == "-") continue;
    std::string open = textOf(uplink, kKeyOf<&UplinkStatus::portalOpen>);
    if (size_t why = open.find("; "); why != std::string::npos) open.replace(why, 2, ";\n    ");
    text += cell<&UplinkStatus::name>(uplink) + ": a captive portal waits for a login at " + page +
            "\n  hosts of the LAN: " + open + "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string statusText(const nlohmann::json& answer) {
  nlohmann::json gateway = fieldOf(answer, "gateway");
  return "braidd " + cell<&GatewayStatus::version>(gateway) + ", up " +
         cell<&GatewayStatus::uptime>(gateway) + ", device " +
         cell<&GatewayStatus::device>(gateway) + "\n\n" + fewPeersText(answer) +
         refusalsText(answer) + "\n" + fewPathsText(answer) + lossesText(answer) +
         fewUplinksText(gateway) + carriedText(answer, kColumns) + portalsText(gateway);
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
  Table table({"PEER", ">ID", "PATH", ">LOSS", ">C_L", ">BURST", ">PROTECTED", ">RECOVERED",
               ">DECODED", ">USELESS", ">COPIES", ">PARITIES", ">PROTECTION", ">SHARE"});
  for (const auto& peer : listOf(answer, "peers")) {
    for (const auto& subflow : listOf(peer, "subflows")) {
      table.add(
          {cell<&PeerStatus::name>(peer), cell<&SubflowStatus::id>(subflow), pathName(subflow),
           cell<&SubflowStatus::lossRate>(subflow), cell<&SubflowStatus::lossMetric>(subflow),
           cell<&SubflowStatus::burst>(subflow), cell<&SubflowStatus::protectedPackets>(subflow),
           cell<&SubflowStatus::recovered>(subflow), cell<&SubflowStatus::decoded>(subflow),
           cell<&SubflowStatus::useless>(subflow), cell<&SubflowStatus::copies>(subflow),
           cell<&SubflowStatus::parities>(subflow), cell<&SubflowStatus::protectionBytes>(subflow),
           formatShare(countOf(subflow, kKeyOf<&SubflowStatus::protectionBytes>),
                       countOf(subflow, kKeyOf<&SubflowStatus::sentBytes>))});
    }
  }
  return table.empty() ? "no subflows\n" : table.toString();
}

std::string decodingPart(const nlohmann::json& answer) {
  std::string text = "restoring 1, 2, ... of " + textOf(answer, "k_max") + " packets takes";
  const nlohmann::json::array_t& times = listOf(answer, "decode_us");
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
