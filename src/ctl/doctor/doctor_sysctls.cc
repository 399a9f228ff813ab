#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ctl/doctor/doctor.h"
#include "ctl/firewall/openings.h"
#include "ctl/views/format.h"
#include "gateway/uplinks/uplink.h"
#include "host/datagram_socket.h"
#include "host/linux/sockaddr.h"
#include "host/system.h"

namespace braid {

namespace {

constexpr const char* kPersist = ", and the same line in /etc/sysctl.d for the next start";

// A setting of an interface in sysctl(8)'s words, in which a name's dots are slashes.
std::string keyOf(const char* family, std::string interface, const char* setting) {
  std::ranges::replace(interface, '.', '/');
  return std::string("net.") + family + ".conf." + interface + "." + setting;
}

std::optional<int64_t> valueOf(const Patient& patient, const char* family,
                               const std::string& interface, const char* setting) {
  return patient.machine.number(std::string("/proc/sys/net/") + family + "/conf/" + interface +
                                "/" + setting);
}

// What needs the host to forward packets of this family, and the consequence when it does not.
// Empty: nothing.
std::pair<std::string, std::string> forwardingNeed(const Config& config, Address::Family family) {
  auto isMeant = [&](const Prefix& p) { return p.address.family == family; };
  const auto& networks = config.device.networks;
  if (auto lan = std::ranges::find_if(networks, isMeant); lan != networks.end())
    return {lan->toString() + " is behind this gateway (device.networks)",
            "hosts there cannot use the tunnel, while the gateway itself can"};
  for (const PortForward& f : config.router.forwards) {
    if (f.to.family == family)
      return {
          "port " + std::to_string(f.firstPort) + " leads to " + f.to.toString() + " (forwards)",
          "nobody reaches that host by the port"};
  }
  bool isTranslated = family == Address::Family::kV4 ? config.router.natV4 : config.router.natV6;
  bool any = std::ranges::any_of(config.peers, [&](const PeerConfig& peer) {
    return std::ranges::any_of(peer.options.prefixes, isMeant);
  });
  if (!isTranslated || !any) return {};
  return {"addresses of peers' networks are to be translated (nat)",
          family == Address::Family::kV4
              ? "by IPv4, hosts behind peers reach this gateway, and nothing beyond it"
              : "by IPv6, hosts behind peers reach this gateway, and nothing beyond it ('nat: "
                "ipv4' where "
                "that is meant)"};
}

// IPv4 is forwarded by the setting of the interface by which a packet comes in.
void checkForwardingOfLans(const Patient& patient, DoctorReport& report) {
  std::set<std::string> judged{patient.config.device.name};
  for (const Lan& lan : lansOf(patient.config, patient.table, patient.routes))
    if (lan.network.address.isV4()) judged.insert(lan.link->name);
  for (const std::string& interface : judged) {
    if (valueOf(patient, "ipv4", interface, "forwarding") != 0) continue;
    std::string key = keyOf("ipv4", interface, "forwarding");
    report.wrong({"forwarding", key + " is off, while net.ipv4.ip_forward is on",
                  "what comes in by " + interface + " goes no further than this host",
                  "sysctl -w " + key + "=1" + kPersist});
  }
}

void checkForwarding(const Patient& patient, DoctorReport& report) {
  const Config& config = patient.config;
  for (Address::Family family : {Address::Family::kV4, Address::Family::kV6}) {
    auto [need, consequence] = forwardingNeed(config, family);
    if (need.empty()) continue;
    bool v4 = family == Address::Family::kV4;
    std::string all = v4 ? "net.ipv4.ip_forward" : "net.ipv6.conf.all.forwarding",
                file = "/proc/sys/" + all;
    std::replace(file.begin() + 10, file.end(), '.', '/');
    std::optional<int64_t> on = patient.machine.number(file);
    if (v4 && on.value_or(0) != 0) checkForwardingOfLans(patient, report);
    if (!on) {
      report.unknown("forwarding", file + " cannot be read");
    } else if (*on != 0) {
      report.fine("forwarding", all + " is on");
    } else if (config.router.forwarding && !patient.daemon) {
      report.fine("forwarding", all + " is off; the daemon switches it on");
    } else {
      report.wrong({"forwarding", all + " is off, and " + need, consequence,
                    "'forwarding: on' in the configuration; or sysctl -w " + all + "=1" + kPersist +
                        (v4 ? ""
                            : "; with accept_ra=2 before it where router advertisements give the "
                              "default route")});
    }
  }
}

// The interface by which the host's own routes reach the address; 0: none, or unknown.
int interfaceTowards(const NetworkTable& table, const Endpoint& to) {
  UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress peer{}, own{};
  socklen_t size = toSocketAddress(to, peer), room = sizeof own;
  if (!fd || ::connect(fd.get(), &peer.any, size) != 0 ||
      ::getsockname(fd.get(), &own.any, &room) != 0)
    return 0;
  Address source = fromSocketAddress(own).address;
  for (const auto& [index, link] : table.links()) {
    auto isSource = [&](const LinkAddress& a) { return a.address == source; };
    if (std::any_of(link.addresses.begin(), link.addresses.end(), isSource)) return index;
  }
  return 0;
}

void checkReversePath(const Patient& patient, DoctorReport& report) {
  auto filterOf = [&](const std::string& interface) {
    return valueOf(patient, "ipv4", interface, "rp_filter").value_or(0);
  };
  for (const UplinkConfig& uplink : patient.config.uplinks) {
    const Link* link = patient.table.find(uplink.selector());
    if (!link) continue;
    int64_t all = filterOf("all"), own = filterOf(link->name);
    if (std::max(all, own) != 1) continue;  // the kernel uses the larger of the two
    for (const PeerConfig& peer : patient.config.peers) {
      auto isV4 = [](const Endpoint& e) { return e.address.isV4(); };
      auto at = std::find_if(peer.options.endpoints.begin(), peer.options.endpoints.end(), isV4);
      if (at == peer.options.endpoints.end()) continue;
      int back = interfaceTowards(patient.table, *at);
      if (back == 0 || back == link->index) continue;
      std::string key = keyOf("ipv4", own == 1 ? link->name : "all", "rp_filter");
      report.wrong(
          {"rp-filter",
           "strict reverse path filter on uplink " + uplink.name + " (" + key +
               " = 1): the host's own route to " + at->toString() + " leads elsewhere",
           "the kernel drops the answers that come in by " + link->name +
               ", and the subflow stays 'validating'",
           "sysctl -w " + key +
               "=2 (loose), and the same line in /etc/sysctl.d; the larger of 'all' and the "
               "interface's counts"});
      break;
    }
  }
}

// Whether a peer has no other addresses than those of IPv6.
bool needsV6(const Config& config) {
  return std::ranges::any_of(config.peers, [](const PeerConfig& peer) {
    const std::vector<Endpoint>& all = peer.options.endpoints;
    return !all.empty() && peer.hosts.empty() &&
           std::ranges::all_of(all, [](const Endpoint& e) { return e.address.isV6(); });
  });
}

// Why an uplink has no IPv6, where a peer is called by nothing else.
void checkUplinksV6(const Patient& patient, DoctorReport& report) {
  if (!needsV6(patient.config)) return;
  for (const UplinkConfig& uplink : patient.config.uplinks) {
    UplinkDecision found = decideUplink(uplink, {}, patient.table, {}, {});
    if (found.link == 0 ||
        (found.v6.bits() != 0 && patient.table.hasDefaultRoute(found.link, Address::Family::kV6)))
      continue;
    auto is = [&](const char* setting) {
      return valueOf(patient, "ipv6", found.interface, setting) == 1;
    };
    std::string what = "uplink " + uplink.name + " has no IPv6: ",
                why = "a peer's IPv6 endpoint is not reached by it";
    if (is("disable_ipv6")) {
      std::string key = keyOf("ipv6", found.interface, "disable_ipv6");
      report.wrong({"ipv6", what + key + " is 1", why, "sysctl -w " + key + "=0" + kPersist});
    } else if (is("accept_ra") && is("forwarding")) {
      std::string key = keyOf("ipv6", found.interface, "accept_ra");
      report.wrong({"ipv6",
                    what + found.interface + " forwards, and so hears no router advertisements (" +
                        key + " is 1)",
                    why, "sysctl -w " + key + "=2" + kPersist});
    } else if (found.v6.bits() != 0 && uplink.gateway == UplinkConfig::Gateway::kAuto) {
      report.wrong({"ipv6", uplink.name + ": " + found.interface + " has no IPv6 default route",
                    why,
                    "let router advertisements set one, or set uplinks.gateway to the router's "
                    "addresses"});
    }
  }
}

// A device that is made later has the settings of `default`. Writing `all` changes all others.
void checkDeviceV6(const Patient& patient, DoctorReport& report) {
  const Config& config = patient.config;
  auto own = std::ranges::find_if(config.device.addresses,
                                  [](const InterfaceAddress& a) { return a.address.isV6(); });
  if (own == config.device.addresses.end()) return;
  std::string there = patient.table.find(config.device.name) ? config.device.name : "default";
  for (const std::string& interface : {std::string("all"), there}) {
    if (valueOf(patient, "ipv6", interface, "disable_ipv6") != 1) continue;
    std::string key = keyOf("ipv6", interface, "disable_ipv6");
    return report.wrong({"ipv6", key + " is 1, and device.addresses has " + own->toString(),
                         "the tunnel carries no IPv6 of this host",
                         "sysctl -w " + key + "=0" + kPersist +
                             ", and restart the daemon; or take the address out"});
  }
}

void checkConntrack(const Patient& patient, DoctorReport& report) {
  const char* most = "net.netfilter.nf_conntrack_max";
  std::string folder = "/proc/sys/net/netfilter/nf_conntrack_";
  int64_t count = patient.machine.number(folder + "count").value_or(0),
          limit = patient.machine.number(folder + "max").value_or(0);
  // The kernel begins to drop at the limit, and forgets some connections before.
  if (limit <= 0 || count < limit - limit / 20) return;
  report.wrong({"conntrack",
                "the kernel follows " + std::to_string(count) + " connections of at most " +
                    std::to_string(limit) + " (" + most + ")",
                "packets of new connections are dropped ('table full' in the kernel's log)",
                std::string("sysctl -w ") + most + "=" + std::to_string(4 * limit) + kPersist});
}

}  // namespace

void checkSysctls(const Patient& patient, DoctorReport& report) {
  if (patient.config.tunnel.mode == TunnelOptions::Mode::kTun) {
    checkForwarding(patient, report);
    checkDeviceV6(patient, report);
  }
  checkReversePath(patient, report);
  checkUplinksV6(patient, report);
  checkConntrack(patient, report);
}

}  // namespace braid
