#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "ctl/doctor/doctor.h"
#include "ctl/join/other_tunnels.h"
#include "ctl/views/format.h"
#include "gateway/join/address_plan.h"
#include "gateway/uplinks/uplink_decision.h"
#include "host/linux/link_resolver.h"
#include "host/linux/loop.h"
#include "host/linux/sockaddr.h"
#include "host/system.h"
#include "tunnel/api/status.h"

namespace braid {
namespace {

constexpr uint32_t kLeastMtu = 1228;  // bytes: a handshake over IPv4 (docs/protocol.md section 2)

Prefix networkAt(const LinkAddress& a) {
  return networkOf({a.address, a.prefixLength});
}

std::string remedyOf(const UplinkConfig& uplink, const UplinkDecision& decision, const Link* link) {
  if (!link && decision.reason.starts_with("more than one"))
    return "name it by uplinks.path, where it is plugged in ('networkctl status INTERFACE' says "
           "that), or by interface";
  if (!link) {
    const char* key = !uplink.mac.empty() ? "mac" : !uplink.path.empty() ? "path" : "interface";
    return std::string("plug it in, or correct uplinks.") + key +
           "; 'ip -br link' lists what there is";
  }
  if (!link->on) return "ip link set " + link->name + " up";
  if (!link->up) return "see to its cable, modem or radio: it has no carrier";
  if (decision.reason.find("source address") != std::string::npos)
    return "correct uplinks.source, or give the interface that address";
  if (decision.reason.find("no usable address") != std::string::npos)
    return "see to its DHCP client (networkctl status " + link->name + "), or give it an address";
  return "let DHCP set one, or set uplinks.gateway to the router's address";
}

// Whether the uplink does without an IPv4 default route: no peer is called by IPv4, or only one on
// the network of this interface.
bool needsNoDefault(const Patient& patient, const Link& link) {
  bool isCalled = false, isNear = false;
  for (const PeerConfig& peer : patient.config.peers) {
    isCalled |= !peer.hosts.empty();
    for (const Endpoint& e : peer.options.endpoints) {
      isCalled |= e.address.isV4();
      for (const LinkAddress& a : link.addresses) isNear |= networkAt(a).contains(e.address);
    }
  }
  return isNear || !isCalled;
}

// An address that the kernel does not use; nullptr: none.
const LinkAddress* unusableOf(const Link& link) {
  auto at = std::ranges::find_if(link.addresses,
                                 [](const LinkAddress& a) { return !a.usable && a.scope == 0; });
  return at == link.addresses.end() ? nullptr : &*at;
}

// What the interface is too small or too few for, whatever its state.
void checkInterface(const Patient& patient, const UplinkConfig& uplink, DoctorReport& report) {
  const Link* link = patient.table.find(uplink.selector());
  if (!link) return;
  if (link->mtu < kLeastMtu)
    report.wrong({"mtu",
                  uplink.name + ": " + link->name + " has an MTU of " + std::to_string(link->mtu) +
                      ", less than the " + std::to_string(kLeastMtu) + " bytes of a handshake",
                  "no peer is reached by this uplink",
                  "ip link set " + link->name + " mtu 1500, or what its line carries"});
  for (const UplinkConfig& other : patient.config.uplinks) {
    if (&other == &uplink) return;
    if (patient.table.find(other.selector()) != link) continue;
    report.wrong({"uplink",
                  other.name + " and " + uplink.name + " are one interface, " + link->name,
                  "what is sent by both is lost together, and together they carry no more",
                  "correct interface, mac or path of one of them ('ip -br link' lists what there "
                  "is), or remove it; more source ports have 'subflows: 2'"});
  }
}

// A second copy needs a second uplink.
void checkRedundancy(const Patient& patient, DoctorReport& report) {
  const Config& config = patient.config;
  bool isRedundant = config.tunnel.recovery == "redundant" ||
                     std::ranges::any_of(config.tunnel.recoveryClasses, [](const RecoveryClass& c) {
                       return c.policy == "redundant";
                     });
  if (!isRedundant || config.uplinks.size() != 1) return;
  report.wrong({"recovery",
                "recovery is to send packets twice (redundant), and " + config.uplinks[0].name +
                    " is the only uplink",
                "a copy that takes the same way is lost with the packet",
                "add an uplink; or recovery.policy: adaptive, which protects on one path, too"});
}

void checkUplink(const Patient& patient, const UplinkConfig& uplink, DoctorReport& report) {
  UplinkDecision decision = decideUplink(uplink, {}, patient.table, {}, {});
  const Link* link = patient.table.find(uplink.selector());
  if (decision.up && decision.reason.empty()) {
    for (const Address& router : uplink.gateways) {
      bool near = std::any_of(link->addresses.begin(), link->addresses.end(),
                              [&](const LinkAddress& a) { return networkAt(a).contains(router); });
      if (uplink.gateway != UplinkConfig::Gateway::kAddress || near) continue;
      return report.wrong({"uplink",
                           uplink.name + ": the router " + router.toString() +
                               " is in no network of " + decision.interface,
                           "nothing leaves by this uplink, unless the router answers all the same",
                           "correct uplinks.gateway, or the interface's addresses"});
    }
    return report.fine("uplink", uplink.name + " (" + decision.interface + ") is up");
  }
  if (decision.up && needsNoDefault(patient, *link))
    return report.fine("uplink", uplink.name + " (" + decision.interface +
                                     ") is up, and no peer needs a default route of it");
  std::string reason = decision.reason.substr(0, decision.reason.find(';'));
  const LinkAddress* twin = reason.ends_with("no usable address") ? unusableOf(*link) : nullptr;
  if (twin)
    reason += ": " + twin->address.toString() +
              " is not for use, as another host has it too (duplicate address detection)";
  report.wrong(
      {"uplink", uplink.name + ": " + reason,
       decision.up ? "peers elsewhere are not reached by it" : "nothing goes by this uplink",
       remedyOf(uplink, decision, link)});
}

void checkOverlaps(const Patient& patient, DoctorReport& report) {
  const Config& config = patient.config;
  for (const PeerConfig& peer : config.peers) {
    for (const Prefix& theirs : peer.options.prefixes) {
      for (const auto& [index, link] : patient.table.links()) {
        if (link.name == config.device.name || link.name == "lo" ||
            config.tunnel.mode != TunnelOptions::Mode::kTun)
          continue;
        for (const LinkAddress& a : link.addresses) {
          Prefix here = networkAt(a);
          if (a.scope != 0 || here.length > theirs.length || !here.contains(theirs.address))
            continue;
          report.wrong(
              {"routes",
               "the network of " + link.name + ", " + here.toString() + ", holds " +
                   theirs.toString() + ", which is behind the peer " + peer.options.name,
               "the same addresses are at both sides: hosts of one of the networks are not reached",
               "renumber one of the two LANs, or correct the peer's prefixes"});
        }
      }
    }
  }
}

// Checks whether packets of the address family that the tunnel leaves out leave this host by
// another way, unencrypted.
void checkInClear(const Patient& patient, DoctorReport& report) {
  std::string left = familyLeftOut(patient.config.device.routes);
  if (left.empty() || patient.config.device.whenDown == DeviceConfig::WhenDown::kBlock) return;
  const Link* own = patient.table.find(patient.config.device.name);
  const FoundRoute* best = nullptr;
  for (const FoundRoute& found : patient.routes) {
    bool isMeant = found.spec.destination.length == 0 &&
                   found.spec.destination.address.isV6() == (left == "IPv6") &&
                   !(own && found.device == own->index);
    if (isMeant && (!best || found.spec.metric < best->spec.metric)) best = &found;
  }
  if (!best || !best->unicast) return report.fine("routes", left + " has no way past the tunnel");
  auto link = patient.table.links().find(best->device);
  std::string by = link == patient.table.links().end() ? "" : " by " + link->second.name;
  bool v6 = left == "IPv6";
  report.wrong({"routes",
                std::string("device.routes take all of ") + (v6 ? "IPv4" : "IPv6") +
                    " and nothing of " + left + ", which has a default route" + by,
                left + " of this host, and of those behind it, leaves in clear",
                std::string("add \"") + (v6 ? "::/0" : "0.0.0.0/0") +
                    "\" to device.routes and to the prefixes of the peer" +
                    (v6 ? ", or refuse it: ip -6 route add unreachable default metric 1" : "")});
}

// Says by what the gateway's packets and rules are told from those of others.
void reportNumbers(const Patient& patient, DoctorReport& report) {
  HostNumbers numbers = numbersOf(patient.config);
  std::ostringstream text;
  text << std::hex << "in the bits 0x" << numbers.markMask
       << " of the packet mark Braid's packets have 0x" << numbers.ownMark()
       << ", what bypasses the tunnel 0x" << numbers.outsideMark() << "/0x" << numbers.outsideMask()
       << ", streams 0x" << numbers.anyInterceptedMark() << "/0x" << numbers.anyInterceptedMask()
       << std::dec << "; its rules have priorities from " << numbers.interceptedRule() << " to "
       << numbers.guardRule();
  report.fine("marks", text.str());
}

// "192.0.2.1, 192.0.2.2 of systemd-resolved"; empty: none.
std::string textOfServers(const LinkResolvers& asked) {
  std::string out;
  for (const Address& a : asked.servers) out += (out.empty() ? "" : ", ") + a.toString();
  return out.empty() ? out : out + " of " + asked.source;
}

std::string textOfEndpoints(const std::vector<Endpoint>& found) {
  std::string out;
  for (const Endpoint& e : found) out += (out.empty() ? "" : ", ") + e.address.toString();
  return out;
}

using LookupResults = std::map<std::pair<HostPort, std::string>, LookupResult>;

// The answer over another uplink that shows this one to be a lie: public addresses, where this one
// has private ones only. nullptr: there is none.
const LookupResult* contradictionTo(const LookupResult& result, const LookupResults& all) {
  auto isInside = [](const Endpoint& e) { return isPrivate(e.address); };
  if (result.found.empty() || !std::ranges::all_of(result.found, isInside)) return nullptr;
  for (const auto& [key, other] : all)
    if (key.first == result.name && !other.found.empty() &&
        std::ranges::none_of(other.found, isInside))
      return &other;
  return nullptr;
}

// Binds a socket and closes it at once. Returns the error; 0: none.
int errorOfBinding(const Endpoint& at) {
  SocketAddress address{};
  socklen_t size = toSocketAddress(at, address);
  UniqueFd fd(::socket(at.address.isV4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  int on = 1;
  if (fd && at.address.isV6()) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  return fd && ::bind(fd.get(), &address.any, size) == 0 ? 0 : errno;
}

// Binds as the daemon would; beside a running one, at another port.
void checkListen(const Patient& patient, DoctorReport& report) {
  for (const Endpoint& at : patient.config.listen) {
    int error = errorOfBinding({at.address, patient.daemon ? uint16_t{0} : at.port});
    if (error == EADDRNOTAVAIL) {
      report.wrong({"listen",
                    "cannot listen at " + at.toString() + ": no interface has this address",
                    "no peer can come there; the daemon waits for the address",
                    "give this host the address, or listen at 0.0.0.0 or [::]"});
      continue;
    }
    if (patient.daemon) continue;
    if (error == 0) {
      report.fine("listen", at.toString() + " is free");
      continue;
    }
    bool taken = error == EADDRINUSE, lacks = error == EAFNOSUPPORT;
    bool others = std::ranges::any_of(patient.config.listen, [&](const Endpoint& other) {
      return other.address.family != at.address.family;
    });
    if (lacks && others) {
      report.fine("listen",
                  at.toString() + " is left out: this machine lacks the family of the address");
      continue;
    }
    report.wrong(
        {"listen", "cannot listen at " + at.toString() + ": " + std::strerror(error),
         "peers cannot reach this gateway, and the daemon does not start",
         taken ? "stop what has UDP port " + std::to_string(at.port) +
                     " ('ss -lunp' names it), or set "
                     "another port here and in the peers' endpoints"
         : lacks ? "listen at an address of the other family: this machine lacks that of this one"
                 : "run as root, or set a port above 1023"});
  }
}

}  // namespace

void checkNetwork(const Patient& patient, DoctorReport& report) {
  for (const UplinkConfig& uplink : patient.config.uplinks) {
    checkUplink(patient, uplink, report);
    checkInterface(patient, uplink, report);
  }
  checkRedundancy(patient, report);
  checkOverlaps(patient, report);
  checkInClear(patient, report);
  reportNumbers(patient, report);
  checkListen(patient, report);
}

bool isWorking(const RunningDaemon* daemon, const std::string& uplink) {
  if (!daemon) return false;
  return std::ranges::any_of(listOf(daemon->status, "peers"), [&](const nlohmann::json& peer) {
    return std::ranges::any_of(listOf(peer, "subflows"), [&](const nlohmann::json& subflow) {
      return textOf(subflow, kKeyOf<&SubflowStatus::uplink>) == uplink &&
             textOf(subflow, kKeyOf<&SubflowStatus::state>) == "active";
    });
  });
}

void checkOtherTunnels(const Patient& patient, DoctorReport& report) {
  if (patient.config.device.whenDown != DeviceConfig::WhenDown::kBlock) return;
  std::optional<DroppedTunnels> found = tunnelsDroppedBy(patient.config, patient.rules);
  if (found) return report.wrong({"other-tunnels", found->what, found->why, found->remedy});
  report.fine("other-tunnels", "no rule of this host shows one that the guard would cut");
}

void checkNames(const Patient& patient, DoctorReport& report) {
  constexpr Duration kPatience = 8s;
  std::set<HostPort> names;
  for (const PeerConfig& peer : patient.config.peers)
    names.insert(peer.hosts.begin(), peer.hosts.end());
  std::vector<LookupWay> ways;
  for (const UplinkConfig& uplink : patient.config.uplinks) {
    UplinkDecision found = decideUplink(uplink, {}, patient.table, {}, {});
    if (found.up)
      ways.push_back({uplink.name, found.interface, found.link, found.v4, found.v6,
                      uplink.resolvers, patient.config.dns.servers,
                      numbersOf(patient.config).ownMark()});
  }
  if (names.empty() || ways.empty()) return;
  Loop loop;
  LookupResults results;
  LinkResolver resolver(loop, [&](const LookupResult& result) {
    results[{result.name, result.uplink}] = result;
    if (results.size() == names.size() * ways.size()) loop.stop();
  });
  Timer timer(loop, [&] { loop.stop(); });
  timer.arm(monotonicNow() + kPatience);
  for (const HostPort& name : names)
    for (const LookupWay& way : ways) resolver.request(way, name);
  loop.run();
  for (const HostPort& name : names) {
    for (const LookupWay& way : ways) {
      LookupResult& result = results[{name, way.uplink}];
      std::string where = name.host + " over " + way.uplink;
      std::string servers = textOfServers(result.asked);
      const LookupResult* other = contradictionTo(result, results);
      if (other && !isWorking(patient.daemon, way.uplink)) {
        report.wrong({"dns",
                      where + " is " + textOfEndpoints(result.found) + ", say " + servers +
                          ", and over " + other->uplink + " it is " + textOfEndpoints(other->found),
                      "servers that give private addresses for public names belong to a captive "
                      "portal that waits for a login, or to a filter: what they say leads nowhere",
                      "log in: open http://" + result.found[0].address.toString() +
                          "/ at a host of this network; or give other servers by "
                          "uplinks.resolvers"});
        continue;
      }
      if (!result.found.empty()) {
        report.fine("dns", where + " has an address, say " + servers);
        continue;
      }
      if (result.problem.empty()) result.problem = "no answer in 8 s";
      report.wrong({"dns",
                    where + ": " + result.problem + (servers.empty() ? "" : " (" + servers + ")"),
                    "over this uplink the peer is called only at addresses that another uplink's "
                    "name servers give",
                    "see to the name servers of " + way.interface +
                        ", give others by uplinks.resolvers, or give the endpoint as an address"});
    }
  }
}

}  // namespace braid
