#include "ctl/views/fields.h"
#include "ctl/views/format.h"
#include "ctl/views/views.h"
#include "gateway/control/gateway_status.h"
#include "tunnel/api/status.h"

namespace braid {
namespace {

std::string joined(const nlohmann::json& list) {
  std::string text;
  for (const auto& item : list) {
    if (item.is_string()) text += (text.empty() ? "" : ", ") + printable(item.get<std::string>());
  }
  return text.empty() ? "-" : text;
}

// "metered, 35.0 % of 10.0 GB until 2026-07-01 00:00, weight 3, up 5.00 Mbit/s"
std::string useText(const nlohmann::json& uplink) {
  std::string text = cell<&UplinkStatus::use>(uplink);
  nlohmann::json meter = fieldOf(uplink, kKeyOf<&UplinkStatus::meter>);
  if (meter.is_object()) {
    constexpr const char* kCap = kKeyOf<&MeterReading::cap>;
    text += ", " + formatShare(countOf(meter, kKeyOf<&MeterReading::used>), countOf(meter, kCap)) +
            " of " + formatVolume(numberOf(meter, kCap)) + " until " +
            cell<&MeterPeriodStatus::until>(meter);
    if (flagOf(meter, kKeyOf<&MeterReading::closed>)) text += ", cap reached";
  }
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
               flagOf(uplink, kKeyOf<&UplinkStatus::up>) ? "up" : "down", useText(uplink),
               joined(listOf(uplink, kKeyOf<&UplinkStatus::addresses>)),
               cell<&UplinkStatus::gateway>(uplink)});
  }
  return table.empty() ? "" : "\n" + table.toString();
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

std::string statusText(const nlohmann::json& answer) {
  nlohmann::json gateway = fieldOf(answer, "gateway");
  std::string text = "braidd " + cell<&GatewayStatus::version>(gateway) + ", up " +
                     cell<&GatewayStatus::uptime>(gateway) + ", process " +
                     cell<&GatewayStatus::pid>(gateway) + "\n";
  text += "config  " + cell<&GatewayStatus::config>(gateway) + "\n";
  text += "device  " + cell<&GatewayStatus::device>(gateway) + " (" +
          cell<&GatewayStatus::mode>(gateway) + "), MTU " +
          textOf(gateway, kKeyOf<&GatewayStatus::deviceMtu>) + "\n";
  if (nlohmann::json listen = listOf(gateway, kKeyOf<&GatewayStatus::listen>); !listen.empty())
    text += "listen  " + joined(listen) + "\n";
  text += "pin     " + cell<&GatewayStatus::pin>(gateway) + "\n";
  return text + uplinksText(gateway) + "\n" + peersText(answer) + "\n" + pathsText(answer) +
         shimText(fieldOf(answer, kKeyOf<&TunnelStatus::shim>)) +
         streamsText(fieldOf(answer, "streams")) +
         dropsText("dropped", fieldOf(answer, kKeyOf<&TunnelStatus::drops>)) +
         dropsText("dropped between kernel and tunnel", fieldOf(answer, "host_drops"));
}

}  // namespace braid
