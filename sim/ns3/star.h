#pragma once

#include <ns3/nstime.h>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/ns3/flow.h"
#include "sim/ns3/network.h"

namespace braid::crosscheck {

struct StarSettings {
  uint32_t senders = 1;
  double mbps = 1000;     ///< of the receiver's link
  double accessMbps = 0;  ///< of each sender's; 0: the same
  ns3::Time rtt;          ///< without queues and transmission, a quarter for each link and way
  PortSettings port;      ///< of the switch towards the receiver, and all its others
};

/// Senders, a switch and one receiver; one flow of each sender.
class Star {
 public:
  explicit Star(const StarSettings& settings);

  std::vector<std::unique_ptr<Flow>>& flows() { return flows_; }
  /// Where the flows meet.
  const Port& bottleneck() const { return network_.port(hub_, receiver_); }
  ns3::Ptr<ns3::PointToPointNetDevice> receiver() const { return network_.port(receiver_, hub_).device(); }

  uint64_t received() const;
  uint64_t timeouts() const;

 private:
  Network network_;
  ns3::Ptr<ns3::Node> hub_, receiver_;
  std::vector<std::unique_ptr<Flow>> flows_;
};

}  // namespace braid::crosscheck
