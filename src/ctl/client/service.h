#pragma once

// What braidctl needs of the machine to start a gateway: the service manager, and an echo request
// through the tunnel.

#include <string>
#include <vector>

#include "base/time.h"
#include "inet/addresses.h"

namespace braid {

/// Whether systemd runs this machine (sd_booted(3)).
bool hasSystemd();
/// Runs a program, found by PATH, without a shell. Its output is that of this process. Returns its
/// exit status; 127: it could not be started.
int runProgram(const std::vector<std::string>& words);
/// Enables and starts the unit braid@NAME; stopUnit() stops and disables it. False when systemctl
/// fails.
bool startUnit(const std::string& name);
void stopUnit(const std::string& name);

/// Sends ICMP echo requests from `own` until `to` answers. Returns false after `patience`. Needs
/// CAP_NET_RAW. Throws std::runtime_error when the system gives no socket for it.
bool waitForEcho(const Address& own, const Address& to, Duration patience);

}  // namespace braid
