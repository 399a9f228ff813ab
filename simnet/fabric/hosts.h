#pragma once

#include <memory>
#include <vector>

#include "simnet/fabric/switched_network.h"
#include "simnet/shim_host.h"

namespace braid::sim {

/// Plain hosts (without a gateway), one at each host of a switched network.
class NetworkHosts {
 public:
  /// `timeline` and `network` must outlive this object.
  NetworkHosts(Timeline& timeline, SwitchedNetwork& network);

  ShimHost& at(size_t host) { return *hosts_.at(host); }
  size_t size() const { return hosts_.size(); }
  /// Sum of the counters of all hosts' shims.
  ShimCounters shims() const;

 private:
  void send(size_t host, Bytes packet);

  SwitchedNetwork& network_;
  std::vector<std::unique_ptr<ShimHost>> hosts_;
};

}  // namespace braid::sim
