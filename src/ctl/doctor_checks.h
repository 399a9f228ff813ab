#pragma once

// What `braidctl doctor` looks at, one file per subject. None of it changes the host.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ctl/doctor_machine.h"
#include "ctl/doctor_report.h"
#include "gateway/config/config.h"
#include "host/host_network.h"
#include "host/linux/netlink_message.h"
#include "host/network_table.h"

namespace braid {

/// A daemon with this configuration that answers here.
struct RunningDaemon {
  nlohmann::json status;   ///< of {"cmd":"status"}
  nlohmann::json history;  ///< of {"cmd":"history"}
  std::string process;     ///< its number
};

/// What the checks go by.
struct Patient {
  const Config& config;
  const RunningDaemon* daemon;  ///< nullptr: none runs
  Machine machine;
  NetworkTable table;              ///< the host's links, addresses and default routes
  std::vector<FoundRoute> routes;  ///< those of the main table
};

/// TUN device, capabilities, forwarding, reverse path filter, socket buffers.
void checkHost(const Patient& patient, DoctorReport& report);
/// Clock, and room for what the daemon writes.
void checkFiles(const Patient& patient, DoctorReport& report);
/// Interfaces of the uplinks, overlapping networks, addresses and ports to listen at.
void checkNetwork(const Patient& patient, DoctorReport& report);
/// Names of the peers' endpoints.
void checkNames(const Patient& patient, DoctorReport& report);
/// Whether packets to the ports where the gateway listens get through the host's own firewall.
void checkFirewall(const Patient& patient, DoctorReport& report);
/// What the daemon that runs knows of its peers and paths.
void checkDaemon(const Patient& patient, DoctorReport& report);
/// No daemon runs: tries each uplink's way to each peer as one would, with a real handshake. Takes up to 14 s.
void tryWays(const Patient& patient, DoctorReport& report);

/// What the peers' states and failed handshakes say, in the answers "status" and "history" of a daemon.
void judgePeers(const Patient& patient, const nlohmann::json& status, const nlohmann::json& history,
                DoctorReport& report);
/// Of a subflow's path, as figures of `braidctl status --json`.
void judgePath(const Patient& patient, const std::string& peer, const nlohmann::json& subflow,
               DoctorReport& report);

}  // namespace braid
