#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "ctl/client/host_record.h"
#include "ctl/doctor/doctor.h"
#include "gateway/join/address_plan.h"
#include "gateway/network/route_plan.h"
#include "host/linux/link_resolver.h"
#include "host/linux/loop.h"

namespace braid {
namespace {

bool contains(const std::vector<Prefix>& networks, const Address& a) {
  return std::ranges::any_of(networks, [&](const Prefix& p) { return p.contains(a); });
}

// Whether a peer is known to lead to this address: not only because it takes everything.
bool isBehindPeer(const Config& config, const Address& a) {
  return std::ranges::any_of(config.peers, [&](const PeerConfig& peer) {
    return std::ranges::any_of(peer.options.prefixes,
                               [&](const Prefix& p) { return !p.isEverything() && p.contains(a); });
  });
}

// Whether the address is in a network of the LANs, which the tunnel leaves alone. It takes those of
// the uplinks.
bool isOfLan(const Patient& patient, const Address& a) {
  std::vector<std::string> outside = interfacesOf(patient.config.uplinks, patient.table);
  outside.push_back(patient.config.device.name);
  return std::ranges::any_of(patient.table.links(), [&](const auto& entry) {
    const Link& link = entry.second;
    return std::ranges::find(outside, link.name) == outside.end() &&
           std::ranges::any_of(link.addresses, [&](const LinkAddress& own) {
             return networkOf({own.address, own.prefixLength}).contains(a);
           });
  });
}

// The name servers of which one does not answer. They are asked as any program of this host asks,
// for a name that is nowhere (RFC 6761 section 6.4): a server that works says so.
std::vector<Address> silentOf(const std::vector<Address>& servers) {
  constexpr Duration kPatience = 8s;
  std::map<std::string, bool> answers;
  Loop loop;
  LinkResolver resolver(loop, [&](const LookupResult& result) {
    answers[result.uplink] = result.reached;
    if (answers.size() == servers.size()) loop.stop();
  });
  Timer timer(loop, [&] { loop.stop(); });
  timer.arm(monotonicNow() + kPatience);
  for (const Address& server : servers) {
    LookupWay way;
    way.uplink = server.toString();
    way.resolvers = {server};
    resolver.request(way, {"braid.invalid", 1});
  }
  if (!servers.empty()) loop.run();
  std::vector<Address> out = servers;
  std::erase_if(out, [&](const Address& a) { return answers[a.toString()]; });
  return out;
}

bool hasProgram(const std::string& name) {
  const char* path = std::getenv("PATH");  // a user's is without the folders of programs of root
  std::istringstream folders(std::string(path ? path : "/usr/bin") + ":/usr/sbin:/sbin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

// Whether the servers of `dns` are handed to this host (verb_dns.cc).
void checkHanding(const Patient& patient, DoctorReport& report) {
  std::string servers;
  for (const Address& a : patient.config.dns.servers)
    servers += (servers.empty() ? "" : ", ") + a.toString();
  if (servers.empty()) return;
  std::vector<Address> asked = LinkResolverFiles(patient.machine.path("")).ofHost().servers;
  bool isByHand = std::ranges::any_of(asked, [&](const Address& a) {
    return std::ranges::find(patient.config.dns.servers, a) != patient.config.dns.servers.end();
  });
  if (isByHand) return;
  HostRecord record(patient.file, "dns");
  if (!record.read().empty()) return;
  if (std::filesystem::exists(record.path()))
    return report.unknown("dns", record.path() + " cannot be read: ask as root");
  bool hasResolved =
      std::filesystem::exists(patient.machine.path("/run/systemd/resolve/stub-resolv.conf"));
  std::string what = "the name servers " + servers + " (dns.servers) are not handed to this host",
              why = "it goes on asking others, past the tunnel or in vain";
  if (!hasResolved && !hasProgram("resolvconf")) {
    report.wrong({"dns", what + ": it has neither systemd-resolved nor resolvconf", why,
                  "install one of the two (apt install resolvconf), and braidctl dns set " +
                      patient.file +
                      "; or put them into /etc/resolv.conf by hand, and take the "
                      "section 'dns' out"});
  } else if (patient.daemon) {
    report.wrong({"dns", what, why, "braidctl dns set " + patient.file});
  }
}

}  // namespace

void checkResolvers(const Patient& patient, DoctorReport& report) {
  const Config& config = patient.config;
  checkHanding(patient, report);
  LinkResolvers host = LinkResolverFiles(patient.machine.path("")).ofHost();
  if (host.local || config.tunnel.mode != TunnelOptions::Mode::kTun) return;
  const bool isResolved = host.source.find("systemd") != std::string::npos;
  auto isOurs = [&](const Address& a) {
    return std::ranges::find(config.dns.servers, a) != config.dns.servers.end();
  };
  if (isResolved && config.dns.domains.empty() && std::ranges::any_of(host.servers, isOurs)) return;
  std::vector<Address> inside;
  for (const Address& server : host.servers) {
    // The servers behind one of `dns` are asked only when that one fails. systemd-resolved asks
    // those of `dns` for their domains, whatever the order of the list.
    if (isOurs(server)) {
      if (!isResolved) break;
      continue;
    }
    if (contains(config.device.routes, server) && !isOfLan(patient, server) &&
        !isBehindPeer(config, server))
      inside.push_back(server);
  }
  // Without a daemon only what cannot be elsewhere is certain: a private address is of an uplink's
  // own network.
  std::vector<Address> silent;
  if (patient.daemon) {
    silent = silentOf(inside);
  } else {
    std::ranges::copy_if(inside, std::back_inserter(silent),
                         [](const Address& a) { return isPrivate(a); });
  }
  for (const Address& server : silent)
    report.wrong({"dns",
                  "the name server " + server.toString() + " (" + host.source +
                      ") is asked through the tunnel, and " +
                      (patient.daemon ? "does not answer there"
                                      : "its address is behind no peer in particular"),
                  "this host, and those that ask it, find no names while the tunnel has the routes",
                  "name servers that the tunnel reaches by 'dns: {servers: [ADDRESS]}' in the "
                  "configuration (braidctl dns set), or give the host public ones"});
  if (silent.empty() && !inside.empty())
    report.fine("dns", "the host's name servers answer through the tunnel");
}

}  // namespace braid
