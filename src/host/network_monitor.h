#pragma once

#include <vector>

#include "host/network_table.h"

namespace braid {

/// Follows links, addresses and default routes of the host.
class NetworkMonitor {
 public:
  virtual ~NetworkMonitor() = default;
  virtual const NetworkTable& table() const = 0;
  /// Takes in what is to be heard and tells what it changed. Never blocks for longer than the host needs to
  /// list all.
  virtual std::vector<NetworkChange> process() = 0;
};

}  // namespace braid
