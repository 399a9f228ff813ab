#pragma once

// What braidctl needs of the machine to start a gateway: the service manager, and one packet through the tunnel.

#include <string>
#include <vector>

#include "base/time.h"
#include "inet/endpoint.h"

namespace braid {

/// Whether systemd runs this machine (sd_booted(3)).
bool hasSystemd();
/// Runs a program, found by PATH, without a shell; its output goes where this process's goes. Its exit status; 127: it could
/// not be started.
int runProgram(const std::vector<std::string>& words);
/// Enables and starts, or stops and disables, the unit braid@NAME. False when systemctl says no.
bool startUnit(const std::string& name);
void stopUnit(const std::string& name);

/// Waits until this address has answered an echo request (ICMP), which leaves from `own`. False after `patience`. Needs
/// CAP_NET_RAW. Throws std::runtime_error when the system gives no socket for it.
bool waitForEcho(const Address& own, const Address& to, Duration patience);

}  // namespace braid
