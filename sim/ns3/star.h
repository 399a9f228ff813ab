#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/ns3/flow.h"
#include "sim/ns3/network.h"
#include "sim/tcp_params.h"

namespace braid::crosscheck {

/// Senders, a switch and one receiver; one flow of each sender. A quarter of the RTT is for each link and way.
class Star {
 public:
  /// `port`: of the switch towards the receiver. Its others have room for all ACKs.
  Star(const sim::TcpSetting& setting, const PortSettings& port);

  std::vector<std::unique_ptr<Flow>>& flows() { return flows_; }
  /// Where the flows meet.
  const Port& bottleneck() const { return network_.port(hub_, receiver_); }

  uint64_t received() const;
  uint64_t timeouts() const;

 private:
  Network network_;
  ns3::Ptr<ns3::Node> hub_, receiver_;
  std::vector<std::unique_ptr<Flow>> flows_;
};

}  // namespace braid::crosscheck
