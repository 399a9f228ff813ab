#pragma once

#include <iosfwd>
#include <string>

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

}  // namespace braid
