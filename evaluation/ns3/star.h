#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "evaluation/ns3/flow.h"
#include "evaluation/ns3/network.h"
#include "evaluation/tcp/tcp_params.h"

namespace braid::crosscheck {

/// Senders, a switch and one receiver, with one flow from each sender. Each link has a quarter of
/// the RTT as its one-way delay.
class Star {
 public:
  /// `port`: the switch's port towards the receiver. Its other ports have room for all ACKs.
  Star(const sim::TcpSetting& setting, const PortSettings& port);

  std::vector<std::unique_ptr<Flow>>& flows() { return flows_; }
  /// The port where the flows meet.
  const Port& bottleneck() const { return network_.port(hub_, receiver_); }

  uint64_t received() const;
  uint64_t timeouts() const;

 private:
  Network network_;
  ns3::Ptr<ns3::Node> hub_, receiver_;
  std::vector<std::unique_ptr<Flow>> flows_;
};

}  // namespace braid::crosscheck
