#include <fcntl.h>
#include <linux/capability.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "ctl/doctor/doctor.h"
#include "ctl/firewall/firewall.h"
#include "ctl/views/format.h"
#include "host/datagram_socket.h"
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
