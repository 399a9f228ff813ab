#include <algorithm>
#include <filesystem>
#include <string>

#include "ctl/client/client.h"
#include "ctl/doctor/doctor.h"
#include "gateway/join/address_plan.h"
#include "gateway/uplinks/uplink_decision.h"
#include "host/system.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Whether systemd starts one of these units at boot: a link to it is in the folder of some target.
bool isEnabled(const Machine& machine, std::initializer_list<std::string> units) {
  std::error_code error;
  for (const auto& folder : fs::directory_iterator(machine.path("/etc/systemd/system"), error)) {
    if (folder.path().extension() != ".wants") continue;
    for (const std::string& unit : units)
      if (fs::is_symlink(folder.path() / unit, error)) return true;
  }
  return false;
}

// braid@NAME brings the guard's unit along.
void checkUnit(const Patient& patient, DoctorReport& report) {
  fs::path file = fs::absolute(patient.file).lexically_normal();
  if (!fs::exists(patient.machine.path("/run/systemd/system")) ||
      file.parent_path() != kConfigFolder)
    return;
  std::string name = file.stem();
  if (isEnabled(patient.machine,
                {"braid-guard@" + name + ".service", "braid@" + name + ".service"}))
    return;
  report.wrong({"guard", "neither braid@" + name + " nor braid-guard@" + name + " is enabled",
                "from the next boot on, packets to device.routes leave in clear",
                "systemctl enable braid@" + name});
}

// Whether this host could reach others of the family without the tunnel: no provider gives an
// address for use inside of a site.
bool hasFamily(const Patient& patient, Address::Family family) {
  const std::vector<UplinkConfig>& uplinks = patient.config.uplinks;
  return uplinks.empty() || std::ranges::any_of(uplinks, [&](const UplinkConfig& uplink) {
           UplinkDecision found = decideUplink(uplink, {}, patient.table, {}, {});
           if (family == Address::Family::kV4) return found.v4.bits() != 0;
           return found.v6.bits() != 0 && !isPrivate(found.v6);
         });
}

// With `direct`, hosts take the host's own routes while the tunnel is down.
void checkOwnWays(const Patient& patient, DoctorReport& report) {
  const std::vector<Prefix>& routes = patient.config.device.routes;
  const Link* own = patient.table.find(patient.config.device.name);
  for (Address::Family family : {Address::Family::kV4, Address::Family::kV6}) {
    bool isWide = std::ranges::any_of(
        routes, [&](const Prefix& p) { return p.address.family == family && p.isEverything(); });
    bool hasWay = std::ranges::any_of(patient.routes, [&](const FoundRoute& found) {
      const Prefix& to = found.spec.destination;
      return found.unicast && to.length == 0 && to.address.family == family &&
             !(own && found.device == own->index);
    });
    if (!isWide || hasWay || !hasFamily(patient, family)) continue;
    std::string name = family == Address::Family::kV4 ? "IPv4" : "IPv6";
    report.wrong({"routes",
                  "device.when-down is direct, and this host has no default route of " + name,
                  "while the tunnel is down, " + name + " of the hosts here gets nowhere",
                  "let DHCP or router advertisements set one, or: ip " +
                      std::string(family == Address::Family::kV4 ? "-4" : "-6") +
                      " route add default via ROUTER dev INTERFACE"});
  }
}

}  // namespace

void judgeGuard(const Patient& patient, const GuardState& state, DoctorReport& report) {
  const std::string file = fs::absolute(patient.file).lexically_normal();
  bool isWanted = patient.config.device.whenDown == DeviceConfig::WhenDown::kBlock &&
                  !patient.config.device.routes.empty();
  if (isWanted) {
    checkUnit(patient, report);
    if (state.isWhole) {
      report.fine("guard", "packets to device.routes leave by " + patient.config.device.name +
                               " only, or not at all");
    } else {
      report.wrong({"guard", "device.when-down is block, and its guard is not there, or not whole",
                    patient.daemon ? "packets to device.routes may leave in clear"
                                   : "packets to device.routes leave in clear",
                    patient.daemon ? "the gateway puts it back within a second: 'ip monitor rule' "
                                     "and 'nft monitor' show who takes it away"
                                   : "braidctl guard apply " + file});
    }
  }
  for (const StandingGuard& guard : state.standing) {
    if (guard.isKept ||
        (isWanted && (guard.file == file || guard.device == patient.config.device.name)))
      continue;
    std::string name = fs::path(guard.file).stem();
    report.wrong({"guard",
                  "the guard of " + guard.file + " (" + guard.device +
                      ") refuses packets, and its gateway does not run",
                  "nothing leaves to what its device.routes name",
                  "braidctl release " + guard.file +
                      ", or start its gateway (systemctl start braid@" + name + ")"});
  }
  if (patient.config.device.whenDown == DeviceConfig::WhenDown::kDirect)
    checkOwnWays(patient, report);
}

void checkGuard(const Patient& patient, DoctorReport& report) {
  if (patient.config.tunnel.mode != TunnelOptions::Mode::kTun) return;
  try {
    judgeGuard(patient, {isGuarded(patient.config), standingGuards()}, report);
  } catch (const SystemError& e) {
    report.unknown("guard", e.what());
  }
}

}  // namespace braid
