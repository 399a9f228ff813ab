#include <fcntl.h>
#include <linux/capability.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "ctl/doctor/doctor.h"
#include "ctl/firewall/firewall.h"
#include "ctl/views/format.h"
#include "host/datagram_socket.h"
#include "host/linux/sockaddr.h"
#include "host/system.h"

namespace braid {

namespace {

constexpr const char* kTunFile = "/dev/net/tun";

bool hasNetAdmin(uint64_t set) {
  return (set & uint64_t{1} << CAP_NET_ADMIN) != 0;
}

void checkTunFile(const Patient& patient, DoctorReport& report) {
  std::string file = patient.machine.path(kTunFile);
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (fd) return report.fine("device", std::string(kTunFile) + " can be opened");
  int error = errno;
  bool missing = error == ENOENT || error == ENODEV || error == ENXIO;
  report.wrong({"device", std::string("cannot open ") + kTunFile + ": " + std::strerror(error),
                "the gateway's device cannot be made, so the daemon does not start",
                missing
                    ? "modprobe tun; in a container pass the device through (--device /dev/net/tun)"
                    : "let the daemon's user use it: mode 0666, as udev makes it, or "
                      "DeviceAllow=/dev/net/tun rw "
                      "in the unit"});
}

// The device of a running daemon is not a problem.
void checkDeviceName(const Patient& patient, DoctorReport& report) {
  const std::string& name = patient.config.device.name;
  if (patient.daemon || !patient.table.find(name)) return;
  report.wrong(
      {"device",
       "there is an interface '" + name + "' already, and no daemon of this configuration runs",
       "the daemon cannot make its device of that name",
       "stop what has it, or remove it (ip link del " + name +
           "), or set device.name to another name"});
}

void checkCapabilities(const Patient& patient, DoctorReport& report) {
  const Machine& machine = patient.machine;
  if (patient.daemon) {
    std::optional<uint64_t> has = machine.capabilities(patient.daemon->process, "CapEff");
    if (!has)
      return report.unknown("capabilities", "the daemon's process cannot be seen from here");
    if (hasNetAdmin(*has)) return report.fine("capabilities", "the daemon has CAP_NET_ADMIN");
    return report.wrong({"capabilities", "the daemon runs without CAP_NET_ADMIN",
                         "it cannot change addresses, routes and socket buffers",
                         "AmbientCapabilities=CAP_NET_ADMIN in its unit, or --cap-add NET_ADMIN "
                         "for its container"});
  }
  std::optional<uint64_t> bound = machine.capabilities("self", "CapBnd"),
                          has = machine.capabilities("self", "CapEff");
  if (bound && !hasNetAdmin(*bound)) {
    return report.wrong({"capabilities", "CAP_NET_ADMIN is out of reach here, for root as well",
                         "the daemon cannot make its device and routes, and does not start",
                         "start the container with --cap-add NET_ADMIN, or add CAP_NET_ADMIN to "
                         "CapabilityBoundingSet= of the unit"});
  }
  if (has && hasNetAdmin(*has)) return report.fine("capabilities", "CAP_NET_ADMIN is there");
  if (::geteuid() != 0)
    return report.unknown("capabilities", "run doctor as root, or as the daemon's user");
  report.wrong({"capabilities", "root has no CAP_NET_ADMIN here",
                "the daemon cannot make its device and routes, and does not start",
                "start it by its unit, or from a shell with all capabilities"});
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

void checkForwarding(const Patient& patient, DoctorReport& report) {
  const Config& config = patient.config;
  bool routed = config.tunnel.mode == TunnelOptions::Mode::kTun;
  for (Address::Family family : {Address::Family::kV4, Address::Family::kV6}) {
    auto [need, consequence] = forwardingNeed(config, family);
    if (!routed || need.empty()) continue;
    bool v4 = family == Address::Family::kV4;
    std::string all = v4 ? "net.ipv4.ip_forward" : "net.ipv6.conf.all.forwarding",
                file = "/proc/sys/" + all;
    std::replace(file.begin() + 10, file.end(), '.', '/');
    std::optional<int64_t> on = patient.machine.number(file);
    if (!on) {
      report.unknown("forwarding", file + " cannot be read");
    } else if (*on != 0) {
      report.fine("forwarding", all + " is on");
    } else if (config.router.forwarding && !patient.daemon) {
      report.fine("forwarding", all + " is off; the daemon switches it on");
    } else {
      report.wrong({"forwarding", all + " is off, and " + need, consequence,
                    "'forwarding: on' in the configuration; or sysctl -w " + all +
                        "=1, and the same line in /etc/sysctl.d for the next start" +
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
    return patient.machine.number("/proc/sys/net/ipv4/conf/" + interface + "/rp_filter")
        .value_or(0);
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
      std::string key = "net.ipv4.conf." + (own == 1 ? link->name : "all") + ".rp_filter";
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

void checkBuffers(const Patient& patient, DoctorReport& report) {
  int wanted = SocketOptions{}.bufferBytes;
  const Machine& machine = patient.machine;
  std::string process = patient.daemon ? patient.daemon->process : "self";
  bool forced = hasNetAdmin(machine.capabilities(process, "CapEff").value_or(0)) &&
                !machine.isUserNamespace();
  if (forced)
    return report.fine("socket-buffers", "the daemon may exceed net.core.rmem_max and wmem_max");
  for (const char* key : {"rmem_max", "wmem_max"}) {
    std::optional<int64_t> most = machine.number(std::string("/proc/sys/net/core/") + key);
    if (!most || *most >= wanted) continue;
    report.wrong({"socket-buffers",
                  std::string("net.core.") + key + " allows " +
                      formatBytes(static_cast<double>(*most)) + ", the daemon asks for " +
                      formatBytes(wanted) + " and has no right to exceed it here",
                  "bursts are lost between kernel and daemon (socket_overflow)",
                  std::string("sysctl -w net.core.") + key + "=" + std::to_string(wanted) +
                      " on the machine itself"});
  }
}

}  // namespace

void checkHost(const Patient& patient, DoctorReport& report) {
  checkTunFile(patient, report);
  checkDeviceName(patient, report);
  checkCapabilities(patient, report);
  checkForwarding(patient, report);
  checkReversePath(patient, report);
  checkBuffers(patient, report);
}

void checkFirewall(const Patient& patient, DoctorReport& report) {
  std::vector<Opening> openings = openingsOf(patient.config, patient.table, patient.routes);
  if (openings.empty()) return;
  for (const std::string& unread : unreadFilters(patient.machine.path("")))
    report.unknown("firewall", unread);
  try {
    NftFirewall wall;
    bool isOpen = true;
    for (const Obstacle& obstacle : obstaclesTo(openings, wall)) {
      std::string what =
          obstacle.opening.toString() + " are dropped by " + obstacle.drop.toString();
      if (isHarmless(obstacle, wall)) {
        report.fine("firewall", what + ", and are carried as packets instead");
        continue;
      }
      isOpen = false;
      report.wrong(
          {"firewall", what, consequenceOf(obstacle), remedyFor(obstacle, wall, patient.file)});
    }
    if (isOpen) report.fine("firewall", "nothing of nf_tables is known to drop what must pass");
  } catch (const SystemError& e) {
    report.unknown("firewall", std::string(e.what()) + "; run doctor as root");
  }
}

}  // namespace braid
