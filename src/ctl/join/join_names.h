#pragma once

#include <string>
#include <vector>

#include "host/host.h"

namespace braid {

/// What lookUpNames() finds.
struct FoundEndpoints {
  std::vector<Endpoint> endpoints;  ///< each once
  std::string problem;              ///< why a name has none; empty: each has one
};

/// Looks up the names among these addresses, by the host's own route and over each of these
/// interfaces. The questions have the mark of Braid's own packets, so the guard that an earlier
/// gateway of this machine left lets them through. Takes 8 seconds at most. Throws
/// std::runtime_error when it is interrupted.
FoundEndpoints lookUpNames(const std::vector<HostPort>& addresses,
                           const std::vector<std::string>& interfaces);

}  // namespace braid
