#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "ctl/client/host_record.h"
#include "ctl/client/service.h"
#include "ctl/join/gateway_yaml.h"
#include "ctl/verbs/verbs.h"
#include "ctl/views/format.h"
#include "gateway/config/config.h"
#include "gateway/uplinks/uplink_decision.h"
#include "host/linux/link_resolvers.h"
#include "host/linux/loop.h"
#include "host/linux/netlink_monitor.h"
#include "host/linux/network_manager.h"

namespace braid {

namespace {

// Made by systemd-resolved for as long as it runs.
constexpr const char* kResolvedFile = "/run/systemd/resolve/stub-resolv.conf";
constexpr const char* kResolved = "systemd-resolved";
constexpr const char* kResolvconf = "resolvconf";

void mustRun(const std::vector<std::string>& words, const std::string* input = nullptr) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  int status = runProgram(words, nullptr, input);
  if (status == kProgramNotFound || status == kProgramNotStarted)
    throw std::runtime_error("'" + text + "' cannot be started: install " +
                             (words[0] == "resolvectl" ? kResolved : kResolvconf) +
                             ", or put the servers of dns into /etc/resolv.conf by hand");
  if (status != 0)
    throw std::runtime_error("'" + text + "' failed with status " + std::to_string(status) +
                             "; it needs root");
}

// What was handed over, and to whom: what others have set stays.
struct Memory {
  std::string by;  ///< empty: nothing was
  std::string device;
  bool operator==(const Memory&) const = default;
};

HostRecord recordFor(const std::string& file) {
  return {file, "dns"};
}

Memory recall(const HostRecord& record) {
  std::vector<std::string> words = record.read();
  return words.size() == 2 ? Memory{words[0], words[1]} : Memory{};
}

bool hasResolved() {
  return std::filesystem::exists(kResolvedFile);
}

// resolvconf sorts its records by name: "tun." puts this one before those of uplinks.
std::string recordOf(const std::string& device) {
  return "tun." + device;
}

std::string joined(const std::vector<Address>& addresses) {
  std::string out;
  for (const Address& a : addresses) out += (out.empty() ? "" : ", ") + a.toString();
  return out;
}

// Prints the program that asks, the device and its servers.
void tell(const std::string& by, const std::string& device, const std::vector<Address>& servers,
          bool json, std::ostream& out) {
  if (json) {
    out << prettyJson({{"by", by}, {"device", device}, {"resolvers", textsOf(servers)}});
  } else {
    out << by << " has " << (servers.empty() ? "no servers" : joined(servers)) << " for " << device
        << '\n';
  }
}

// systemd-resolved forgets a device that is gone by itself.
void takeBack(const Memory& memory) {
  if (memory.by == kResolvconf) {
    mustRun({"resolvconf", "-d", recordOf(memory.device)});
  } else if (memory.by == kResolved && std::filesystem::exists("/sys/class/net/" + memory.device)) {
    mustRun({"resolvectl", "revert", memory.device});
  }
}

NetworkManager::Servers askNetworkManager() {
  Loop loop;
  NetworkManager manager(loop);
  NetworkManager::Servers out;
  manager.ask([&](const NetworkManager::Servers& servers) {
    out = servers;
    loop.stop();
  });
  loop.run();
  return out;
}

}  // namespace

void dnsSet(const std::string& file, bool json, std::ostream& out) {
  Config config = readConfig(file);
  const std::vector<Address>& servers = config.dns.servers;
  if (servers.empty()) return dnsRemove(file, json, out);
  const std::string& device = config.device.name;
  bool resolved = hasResolved();
  if (!resolved && !config.dns.domains.empty())
    throw std::runtime_error(
        "only systemd-resolved asks other servers for some domains; install it, or remove "
        "dns.domains");
  HostRecord record = recordFor(file);
  Memory now{resolved ? kResolved : kResolvconf, device}, before = recall(record);
  if (before != now) takeBack(before);
  if (!record.write({now.by, now.device}))
    throw std::runtime_error("cannot write " + record.path() + "; is this root?");
  if (resolved) {
    std::vector<std::string> dns{"resolvectl", "dns", device},
        domains{"resolvectl", "domain", device};
    for (const Address& server : servers) dns.push_back(server.toString());
    // "~": which server is asked for these names, and no suffix to complete others by.
    for (const std::string& domain : config.dns.domains) domains.push_back("~" + domain);
    if (config.dns.domains.empty()) domains.push_back("~.");
    mustRun(dns);
    mustRun(domains);
    mustRun({"resolvectl", "default-route", device, config.dns.domains.empty() ? "yes" : "no"});
  } else {
    std::string text;
    for (const Address& server : servers) text += "nameserver " + server.toString() + "\n";
    mustRun({"resolvconf", "-a", recordOf(device), "-m", "0", "-x"}, &text);
  }
  tell(now.by, device, servers, json, out);
}

void dnsRemove(const std::string& file, bool json, std::ostream& out) {
  HostRecord record = recordFor(file);
  Memory memory = recall(record);
  if (memory.by.empty()) {
    if (json) tell("", "", {}, json, out);
    return;
  }
  takeBack(memory);
  record.remove();
  tell(memory.by, memory.device, {}, json, out);
}

void dnsShow(const std::string& file, bool json, std::ostream& out) {
  Config config = readConfig(file);
  NetlinkMonitor monitor;
  LinkResolverFiles files;
  NetworkManager::Servers managers = askNetworkManager();
  nlohmann::json uplinks = nlohmann::json::array();
  for (const UplinkConfig& uplink : config.uplinks) {
    UplinkDecision found = decideUplink(uplink, {}, monitor.table(), {}, {});
    LinkResolvers asked = files.of({uplink.name, found.interface, found.link, found.v4, found.v6,
                                    uplink.resolvers, config.dns.servers, 0},
                                   managers[found.interface]);
    uplinks.push_back({{"name", uplink.name},
                       {"interface", found.interface},
                       {"resolvers", textsOf(asked.servers)},
                       {"resolvers_from", asked.source}});
    if (!json)
      out << "uplink " << uplink.name << ": "
          << (asked.servers.empty() ? "no server is known"
                                    : joined(asked.servers) + " of " + asked.source)
          << '\n';
  }
  LinkResolvers host = files.ofHost();
  if (json) {
    out << prettyJson(
        {{"uplinks", uplinks},
         {"host", {{"resolvers", textsOf(host.servers)}, {"from", host.source}}},
         {"tunnel",
          {{"resolvers", textsOf(config.dns.servers)}, {"domains", config.dns.domains}}}});
    return;
  }
  out << "host: " << (host.servers.empty() ? "none" : joined(host.servers)) << " of " << host.source
      << '\n'
      << "tunnel (dns): " << (config.dns.servers.empty() ? "none" : joined(config.dns.servers))
      << '\n';
}

}  // namespace braid
