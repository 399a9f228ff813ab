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

std::string uplinksText(const nlohmann::json& gateway) {
  Table table({"UPLINK", "INTERFACE", "STATE", "ADDRESSES", "GATEWAY"});
  for (const auto& uplink : listOf(gateway, "uplinks")) {
    table.add({textOf(uplink, "name"), textOf(uplink, "interface"), flagOf(uplink, "up") ? "up" : "down",
               joined(listOf(uplink, "addresses")), textOf(uplink, "gateway")});
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
         dropsText("dropped", fieldOf(answer, "drops")) +
         dropsText("dropped between kernel and tunnel", fieldOf(answer, "host_drops"));
}

}  // namespace braid
