#include <algorithm>
#include <set>

#include "ctl/doctor_checks.h"
#include "host/linux/nft_firewall.h"
#include "host/system_error.h"

namespace braid {
namespace {

// Where strangers come in: by the interface of the default route, else by any that is no loopback.
const Link* outerLink(const Patient& patient, const Endpoint& at) {
  for (const DefaultRoute& route : patient.table.defaultRoutes()) {
    auto link = patient.table.links().find(route.link);
    if (route.family == at.address.family && link != patient.table.links().end()) return &link->second;
  }
  const Link* found = nullptr;
  for (const auto& [index, link] : patient.table.links()) {
    bool has = std::any_of(link.addresses.begin(), link.addresses.end(),
                           [&](const LinkAddress& a) { return a.address == at.address; });
    if (link.name == "lo" || link.name == patient.config.device.name) continue;
    if (has || !found) found = &link;
    if (has) break;
  }
  return found;
}

std::string opening(const std::string& by, const Endpoint& at) {
  std::string words = by.substr(by.find("table ") + 6), chain = by.substr(6, by.find(' ', 6) - 6);
  return "let UDP port " + std::to_string(at.port) + " in: nft insert rule " +
         words.substr(0, words.find(',')) + " " + chain + " udp dport " + std::to_string(at.port) +
         " accept (and in the file that the firewall is made from)";
}

}  // namespace

void checkFirewall(const Patient& patient, DoctorReport& report) {
  if (patient.config.listen.empty()) return;
  for (const char* legacy : {"/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"}) {
    std::string tables = patient.machine.text(legacy).value_or("");
    if (tables.find("filter") != std::string::npos)
      report.unknown("firewall",
                     "rules of iptables-legacy are not read: iptables-legacy -S INPUT shows them");
  }
  try {
    NftFirewall wall;
    std::set<uint16_t> open;
    bool closed = false;
    for (const Endpoint& at : patient.config.listen) {
      const Link* link = outerLink(patient, at);
      if (!link) continue;
      std::string by =
          wall.droppedBy({at.address.family, at.port, link->name, static_cast<uint32_t>(link->index)});
      if (by.empty()) continue;
      closed = true;
      report.wrong({"firewall",
                    "datagrams to UDP port " + std::to_string(at.port) + " that come in by " + link->name +
                        " are dropped by " + by,
                    "no peer can reach this gateway", opening(by, at)});
    }
    if (!closed) report.fine("firewall", "nothing of nf_tables is known to drop what peers send");
  } catch (const SystemError& e) {
    report.unknown("firewall", std::string(e.what()) + "; run doctor as root");
  }
}

}  // namespace braid
