#include "ctl/fields.h"
#include "ctl/table.h"
#include "ctl/views.h"

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
  std::string text = textOf(uplink, "use");
  nlohmann::json meter = fieldOf(uplink, "metered");
  if (meter.is_object()) {
    text += ", " + formatShare(countOf(meter, "used_bytes"), countOf(meter, "cap_bytes")) + " of " +
            formatVolume(numberOf(meter, "cap_bytes")) + " until " +
            formatDate(numberOf(meter, "until_unix_s"));
    if (flagOf(meter, "closed")) text += ", cap reached";
  }
  if (countOf(uplink, "weight") > 1) text += ", weight " + textOf(uplink, "weight");
  for (auto [key, word] : {std::pair{"up_limit_bytes_per_s", "up "}, {"down_limit_bytes_per_s", "down "}}) {
    if (countOf(uplink, key) > 0) text += std::string(", ") + word + formatRate(numberOf(uplink, key));
  }
  return text;
}

std::string uplinksText(const nlohmann::json& gateway) {
  Table table({"UPLINK", "INTERFACE", "STATE", "USE", "ADDRESSES", "GATEWAY"});
  for (const auto& uplink : listOf(gateway, "uplinks")) {
    table.add({textOf(uplink, "name"), textOf(uplink, "interface"), flagOf(uplink, "up") ? "up" : "down",
               useText(uplink), joined(listOf(uplink, "addresses")), textOf(uplink, "gateway")});
  }
  return table.empty() ? "" : "\n" + table.toString();
}

// Only the causes that happened.
std::string dropsText(const char* title, const nlohmann::json& drops) {
  std::string text;
  if (!drops.is_object()) return text;
  for (const auto& [cause, count] : drops.items()) {
    if (count.is_number_unsigned() && count != 0) text += "  " + printable(cause) + " " + count.dump();
  }
  return text.empty() ? text : std::string("\n") + title + ":" + text + "\n";
}

std::string shimText(const nlohmann::json& shim) {
  if (!flagOf(shim, "on")) return "";
  Table table({"ACK SHIM", ">FIRED", ">USEFUL", ">SPURIOUS"});
  for (const auto& actuator : listOf(shim, "actuators")) {
    table.add({textOf(actuator, "name"), textOf(actuator, "fired"), textOf(actuator, "useful"),
               textOf(actuator, "spurious")});
  }
  return "\n" + table.toString() + "flows " + textOf(shim, "flows") + ", kept packets " +
         textOf(shim, "cached_packets") + ", silent " + textOf(shim, "silent") + ", helpless " +
         textOf(shim, "helpless") + "\n";
}

}  // namespace

std::string statusText(const nlohmann::json& answer) {
  nlohmann::json gateway = fieldOf(answer, "gateway");
  std::string text = "braidd " + textOf(gateway, "version") + ", up " +
                     formatAge(numberOf(gateway, "uptime_s")) + ", process " + textOf(gateway, "pid") + "\n";
  text += "config  " + textOf(gateway, "config") + "\n";
  text += "device  " + textOf(gateway, "device") + " (" + textOf(gateway, "mode") + "), MTU " +
          textOf(gateway, "device_mtu_bytes") + "\n";
  if (nlohmann::json listen = listOf(gateway, "listen"); !listen.empty())
    text += "listen  " + joined(listen) + "\n";
  text += "pin     " + textOf(gateway, "pin") + "\n";
  return text + uplinksText(gateway) + "\n" + peersText(answer) + "\n" + pathsText(answer) +
         shimText(fieldOf(answer, "ack_shim")) + dropsText("dropped", fieldOf(answer, "drops")) +
         dropsText("dropped between kernel and tunnel", fieldOf(answer, "host_drops"));
}

}  // namespace braid
