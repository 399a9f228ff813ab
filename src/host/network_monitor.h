#pragma once

#include <vector>

#include "base/time.h"
#include "host/network_table.h"

namespace braid {

/// Follows links, addresses and default routes of the host.
class NetworkMonitor {
 public:
  virtual ~NetworkMonitor() = default;
  virtual const NetworkTable& table() const = 0;
  /// Takes in what is to be heard and tells what it changed. After something was missed, because the host
  /// told it faster than it was taken in, everything is read anew, at a bounded rate; until that works, what
  /// was known before stays. Never blocks for longer than the host needs to list all, and throws nothing but
  /// std::bad_alloc.
  virtual std::vector<NetworkChange> process(Time now) = 0;
  /// When to call process() although nothing is to be heard: something was missed and is not read anew yet.
  /// kNever: the table is up to date.
  virtual Time deadline() const = 0;
};

}  // namespace braid
