#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "gateway/config/config.h"

namespace braid {

// The guard of `device.when-down: block`, which keeps packets from leaving in clear while no
// gateway runs. `file`: a configuration, or its name in /etc/braid. What was done is written to
// `out`, in words or as JSON. Both throw std::runtime_error.

/// Puts it into effect, or removes one that is not wanted any more. A gateway that runs keeps its
/// own. When the file has a mistake, the guard is made by the text that was good last (KeptConfig).
void applyGuard(const std::string& file, bool json, std::ostream& out);
/// Removes it, also when the configuration says something else by now or cannot be read: what
/// applyGuard() made is recorded.
void releaseGuard(const std::string& file, bool json, std::ostream& out);

/// Whether the guard that the configuration asks for is in effect: its rules and its packet filter
/// are there. Without CAP_NET_ADMIN the packet filter counts as there. Throws SystemError.
bool isGuarded(const Config& config);

/// A guard that is in effect.
struct StandingGuard {
  std::string file;     ///< of the configuration that it was made for
  std::string device;   ///< of its gateway
  bool isKept = false;  ///< its gateway runs
};
/// The guards of this host that are recorded and in effect. Throws SystemError.
std::vector<StandingGuard> standingGuards();

}  // namespace braid
