#pragma once

#include <string>
#include <vector>

#include "gateway/config/config.h"

namespace braid {

/// The user that the package creates, and that systemd/braid@.service names.
inline constexpr const char* kServiceUser = "braid";

/// Gives up for good what a daemon does not need that has its device, its control socket and its
/// key: after an exploited bug the attacker has no more either.
///
/// - The user: a process of root becomes `kServiceUser`, if `changeUser` says so, there is such a
///   user, and it can read and write what a reload and the end need.
/// - Capabilities: dropPrivileges().
/// - Files (Landlock): it reads the folder of its configuration and those of the system, writes the
///   folders of control socket, state and trace, and switches forwarding on and off. It executes
///   nothing.
/// - System calls (seccomp): restrictSystemCalls().
///
/// What this kernel does not have is logged and done without. Returns what is missing, and why:
/// "user: root's, there is no user 'braid'", "files: ...", "system calls: ...". Call before a
/// second thread starts. Throws SystemError when the kernel has it and refuses.
std::vector<std::string> confine(const Config& config, bool changeUser);

}  // namespace braid
