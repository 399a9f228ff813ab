#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "ctl/client/service.h"
#include "ctl/verbs/verbs.h"
#include "ctl/views/format.h"
#include "gateway/config/config.h"
#include "gateway/uplinks/uplink.h"
#include "host/linux/link_resolvers.h"
#include "host/linux/netlink_monitor.h"

namespace braid {

namespace {

// Made by systemd-resolved for as long as it runs.
constexpr const char* kResolvedFile = "/run/systemd/resolve/stub-resolv.conf";

Config configOf(const std::string& file) {
  LoadOptions options;
  options.checkIdentity = false;
  ConfigResult result = loadConfig(file, options);
  if (auto* errors = std::get_if<ConfigErrors>(&result))
    throw std::runtime_error(errors->empty() ? file + ": cannot be read"
                                             : errors->front().toString());
  return std::get<Config>(std::move(result));
}

void mustRun(const std::vector<std::string>& words, const std::string* input = nullptr) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  int status = runProgram(words, nullptr, input);
  if (status == 127)
    throw std::runtime_error("'" + text + "' cannot be started: install " +
                             (words[0] == "resolvectl" ? "systemd-resolved" : "resolvconf") +
                             ", or put the servers of dns into /etc/resolv.conf by hand");
  if (status != 0)
    throw std::runtime_error("'" + text + "' failed with status " + std::to_string(status) +
                             "; it needs root");
}

// Says that this configuration's servers were handed over: what others have set stays. In a folder
// where root alone may make files, so that nobody puts a link there.
std::string memoryOf(const Config& config) {
  return "/run/braid-" + config.device.name + ".dns";
}

bool hasResolved() {
  return std::filesystem::exists(kResolvedFile);
}

// resolvconf sorts its records by name: "tun." puts this one before those of uplinks.
std::string recordOf(const Config& config) {
  return "tun." + config.device.name;
}

std::vector<std::string> textsOf(const std::vector<Address>& addresses) {
  std::vector<std::string> out;
  for (const Address& a : addresses) out.push_back(a.toString());
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// Prints the program that asks, the device and its servers.
void tell(const std::string& by, const std::string& device, const std::vector<std::string>& servers,
          bool json, std::ostream& out) {
  if (json) {
    out << prettyJson({{"by", by}, {"device", device}, {"resolvers", servers}});
  } else {
    out << by << " has " << (servers.empty() ? "no servers" : joined(servers)) << " for " << device
        << '\n';
  }
}

}  // namespace

void dnsSet(const std::string& file, bool json, std::ostream& out) {
  Config config = configOf(file);
  if (config.dns.servers.empty()) return dnsRemove(file, json, out);
  const std::string& device = config.device.name;
  std::vector<std::string> servers = textsOf(config.dns.servers);
  if (!hasResolved() && !config.dns.domains.empty())
    throw std::runtime_error(
        "only systemd-resolved asks other servers for some domains; install it, or remove "
        "dns.domains");
  if (!(std::ofstream(memoryOf(config)) << (hasResolved() ? "systemd-resolved\n" : "resolvconf\n")))
    throw std::runtime_error("cannot write " + memoryOf(config) + "; is this root?");
  if (hasResolved()) {
    std::vector<std::string> dns{"resolvectl", "dns", device},
        domains{"resolvectl", "domain", device};
    dns.insert(dns.end(), servers.begin(), servers.end());
    // "~": which server is asked for these names, and no suffix to complete others by.
    for (const std::string& domain : config.dns.domains) domains.push_back("~" + domain);
    if (config.dns.domains.empty()) domains.push_back("~.");
    mustRun(dns);
    mustRun(domains);
    mustRun({"resolvectl", "default-route", device, config.dns.domains.empty() ? "yes" : "no"});
    return tell("systemd-resolved", device, servers, json, out);
  }
  std::string text;
  for (const std::string& server : servers) text += "nameserver " + server + "\n";
  mustRun({"resolvconf", "-a", recordOf(config), "-m", "0", "-x"}, &text);
  tell("resolvconf", device, servers, json, out);
}

// systemd-resolved forgets a device that is gone by itself.
void dnsRemove(const std::string& file, bool json, std::ostream& out) {
  Config config = configOf(file);
  const std::string& device = config.device.name;
  std::string by;
  if (!(std::ifstream(memoryOf(config)) >> by)) {
    if (json) tell("", device, {}, json, out);
    return;
  }
  if (by == "resolvconf") {
    mustRun({"resolvconf", "-d", recordOf(config)});
  } else if (std::filesystem::exists("/sys/class/net/" + device)) {
    mustRun({"resolvectl", "revert", device});
  }
  std::filesystem::remove(memoryOf(config));
  tell(by, device, {}, json, out);
}

void dnsShow(const std::string& file, bool json, std::ostream& out) {
  Config config = configOf(file);
  NetlinkMonitor monitor;
  LinkResolverFiles files;
  nlohmann::json uplinks = nlohmann::json::array();
  for (const UplinkConfig& uplink : config.uplinks) {
    UplinkDecision found = decideUplink(uplink, {}, monitor.table(), {}, {});
    LinkResolvers asked = files.of({uplink.name, found.interface, found.link, found.v4, found.v6,
                                    uplink.resolvers, config.dns.servers, 0});
    uplinks.push_back({{"name", uplink.name},
                       {"interface", found.interface},
                       {"resolvers", textsOf(asked.servers)},
                       {"resolvers_from", asked.source}});
    if (!json)
      out << "uplink " << uplink.name << ": "
          << (asked.servers.empty() ? "no server is known"
                                    : joined(textsOf(asked.servers)) + " of " + asked.source)
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
  out << "host: " << (host.servers.empty() ? "none" : joined(textsOf(host.servers))) << " of "
      << host.source << '\n'
      << "tunnel (dns): "
      << (config.dns.servers.empty() ? "none" : joined(textsOf(config.dns.servers))) << '\n';
}

}  // namespace braid
