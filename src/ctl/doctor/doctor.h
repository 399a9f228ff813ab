#pragma once

// The checks of `braidctl doctor`, one file per subject. None of them changes the host.

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ctl/join/guard.h"
#include "gateway/config/config.h"
#include "host/linux/netlink.h"
#include "host/network.h"

namespace braid {

/// Reads files below /proc, /dev and the like; in tests, those of a folder used instead of /.
class Machine {
 public:
  explicit Machine(std::string root = {}) : root_(std::move(root)) {}

  std::string path(const std::string& file) const { return root_ + file; }
  /// The content without blanks at its end; nullopt: the file cannot be read.
  std::optional<std::string> text(const std::string& file) const;
  /// nullopt: the file cannot be read, or does not hold a number.
  std::optional<int64_t> number(const std::string& file) const;
  /// A capability set of a process, for example "CapEff"; nullopt: no such process.
  std::optional<uint64_t> capabilities(const std::string& process, const std::string& set) const;
  /// Whether this process runs in a user namespace: an unprivileged container.
  bool isUserNamespace() const;

 private:
  std::string root_;
};

/// Something that is wrong, or that could not be checked.
struct Finding {
  std::string check;   ///< what was checked: "device", "rp-filter", ...
  std::string what;    ///< the state that was found, in one line
  std::string why;     ///< its consequence
  std::string remedy;  ///< what to do about it
};

/// The result of `braidctl doctor`.
class DoctorReport {
 public:
  void wrong(Finding finding) { findings_.push_back(std::move(finding)); }
  /// The check could not be made; `why` says what prevented it.
  void unknown(std::string check, std::string why) {
    unknown_.push_back({std::move(check), std::move(why), {}, {}});
  }
  /// The check found nothing wrong; `what` is the state that was found.
  void fine(std::string check, std::string what) {
    fine_.push_back({std::move(check), std::move(what), {}, {}});
  }

  const std::vector<Finding>& findings() const { return findings_; }
  const std::vector<Finding>& unknowns() const { return unknown_; }

  nlohmann::json toJson() const;
  std::string toText() const;

 private:
  std::vector<Finding> findings_, unknown_, fine_;
};

/// A daemon that runs here with the checked configuration.
struct RunningDaemon {
  nlohmann::json status;   ///< answer to {"cmd":"status"}
  nlohmann::json history;  ///< answer to {"cmd":"history"}
  std::string process;     ///< its process id
};

/// The input of the checks.
struct Patient {
  const Config& config;
  const RunningDaemon* daemon;  ///< nullptr: none runs
  Machine machine;
  NetworkTable table;              ///< the host's links, addresses and default routes
  std::vector<FoundRoute> routes;  ///< routes of the main table
  std::string file{};              ///< the configuration's
  std::vector<FoundRule> rules{};  ///< the host's policy routing rules
};

/// Whether some peer is reached by this uplink, as the daemon says. `daemon`: nullptr: none runs.
bool isWorking(const RunningDaemon* daemon, const std::string& uplink);

/// Checks TUN device, capabilities and socket buffers.
void checkHost(const Patient& patient, DoctorReport& report);
/// Checks settings of the kernel: forwarding, reverse path filter, IPv6, connection tracking.
void checkSysctls(const Patient& patient, DoctorReport& report);
/// Checks the clock, and the free space for the files that the daemon writes.
void checkFiles(const Patient& patient, DoctorReport& report);
/// Checks the uplinks' interfaces, overlapping networks, and the addresses and ports to listen on.
/// Tells the packet marks and rule priorities that are in force.
void checkNetwork(const Patient& patient, DoctorReport& report);
/// Checks whether the guard drops what other tunnels of this host send.
void checkOtherTunnels(const Patient& patient, DoctorReport& report);
/// Checks the interfaces that lead to `device.networks`, and addresses at ports of bridges.
void checkLans(const Patient& patient, DoctorReport& report);
/// Checks the guard of `device.when-down: block`, what other gateways left of theirs, and the
/// host's own routes for `direct`.
void checkGuard(const Patient& patient, DoctorReport& report);
/// Checks whether the host's name servers are asked through the tunnel, where they do not answer.
void checkResolvers(const Patient& patient, DoctorReport& report);
/// Checks the host names of the peers' endpoints.
void checkNames(const Patient& patient, DoctorReport& report);
/// Checks whether what the gateway needs passes the host's own firewall: datagrams to the ports
/// that it listens on, packets between its LANs and the tunnel, and connections that become
/// streams.
void checkFirewall(const Patient& patient, DoctorReport& report);
/// Checks what the running daemon knows of its peers and paths.
void checkDaemon(const Patient& patient, DoctorReport& report);
/// Checks whether the uplinks' routers have a MAC address, after somebody has called them. Takes a
/// second while one is being asked for it.
void checkRouters(const Patient& patient, DoctorReport& report);
/// When no daemon runs: tries each uplink's path to each peer as a daemon would, with a real
/// handshake. Takes up to 14 s.
void tryWays(const Patient& patient, DoctorReport& report);

/// What stands of guards at a host.
struct GuardState {
  bool isWhole = false;  ///< that of the checked configuration is in effect
  std::vector<StandingGuard> standing{};
};
/// Judges them.
void judgeGuard(const Patient& patient, const GuardState& state, DoctorReport& report);
/// A neighbour's address at an interface that has no MAC address, although it was asked for.
struct MuteNeighbour {
  Address address;
  int link = 0;  ///< interface index
  bool operator==(const MuteNeighbour&) const = default;
};
/// Judges the uplinks' routers by them.
void judgeRouters(const Patient& patient, const std::vector<MuteNeighbour>& mute,
                  DoctorReport& report);

/// Judges what a daemon took over as streams, by its answer "status". `isUp`: some peer is.
void judgeStreams(const Patient& patient, const nlohmann::json& status, bool isUp,
                  DoctorReport& report);
/// Judges the peers' states and failed handshakes by a daemon's answers "status" and "history".
void judgePeers(const Patient& patient, const nlohmann::json& status, const nlohmann::json& history,
                DoctorReport& report);
/// Judges what the daemon noticed of segmentation offload, by its answer "status", `host_traffic`.
void judgeOffloads(const nlohmann::json& traffic, DoctorReport& report);
/// Judges a subflow's path by its figures in `braidctl status --json`.
void judgePath(const Patient& patient, const std::string& peer, const nlohmann::json& subflow,
               DoctorReport& report);

/// The path of the configuration. A path stays as it is; a name means NAME.yaml in /etc/braid.
/// Empty: the running daemon's configuration, or the only file there. Throws std::runtime_error.
std::string configPath(const std::string& given, const std::string& socket);
/// Checks a gateway and its host for problems. `file`: the path of a configuration, or a name in
/// /etc/braid. Empty: the running daemon's configuration, or the only one in /etc/braid. Returns
/// the exit status: kExitOk, kExitFailure when something is wrong, or kExitUnknown when nothing was
/// found to be wrong but not everything could be checked.
int doctor(const std::string& file, const std::string& socket, bool json, std::ostream& out,
           std::ostream& err);
/// Makes the same checks for a file and prints nothing. Throws std::runtime_error when nothing can
/// be checked.
DoctorReport examine(const std::string& file);

}  // namespace braid
