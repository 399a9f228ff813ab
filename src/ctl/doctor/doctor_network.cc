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
#include "gateway/join/address_plan.h"
#include "gateway/uplinks/uplink.h"
#include "host/linux/link_resolver.h"
#include "host/linux/loop.h"
#include "host/linux/sockaddr.h"
#include "host/system.h"

namespace braid {
namespace {

Prefix networkAt(const LinkAddress& a) {
  return networkOf({a.address, a.prefixLength});
}

std::string remedyOf(const UplinkDecision& decision) {
  if (decision.link == 0)
    return "plug it in, or correct uplinks.interface; 'ip -br link' lists what there is";
  if (decision.reason.find("is down") != std::string::npos)
    return "ip link set " + decision.interface + " up; see to cable, modem or radio";
  if (decision.reason.find("source address") != std::string::npos)
    return "correct uplinks.source, or give the interface that address";
  if (decision.reason.find("no usable address") != std::string::npos)
    return "see to its DHCP client (networkctl status " + decision.interface +
           "), or give it an address";
  return "let DHCP set one, or set uplinks.gateway to the router's address";
}

// Whether a peer is on the network of this interface. Such a peer needs no default route; any other
// does.
bool reachesSomePeer(const Patient& patient, const Link& link) {
  for (const PeerConfig& peer : patient.config.peers) {
    for (const Endpoint& e : peer.options.endpoints) {
      for (const LinkAddress& a : link.addresses)
        if (networkAt(a).contains(e.address)) return true;
    }
  }
  return false;
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
  if (decision.up && reachesSomePeer(patient, *link))
    return report.fine(
        "uplink", uplink.name + " (" + decision.interface + ") is up, its peer is on its network");
  std::string reason = decision.reason.substr(0, decision.reason.find(';'));
  report.wrong(
      {"uplink", uplink.name + ": " + reason,
       decision.up ? "peers elsewhere are not reached by it" : "nothing goes by this uplink",
       remedyOf(decision)});
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
  for (const UplinkConfig& uplink : patient.config.uplinks) checkUplink(patient, uplink, report);
  checkOverlaps(patient, report);
  checkInClear(patient, report);
  reportNumbers(patient, report);
  checkListen(patient, report);
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
  std::map<std::pair<HostPort, std::string>, LookupResult> results;
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
