#pragma once

#include <ns3/ipv4-address.h>
#include <cstdint>
#include <vector>

#include "evaluation/ns3/flow.h"
#include "evaluation/ns3/network.h"
#include "evaluation/ns3/route.h"

namespace braid::crosscheck {

/// Three layers of switches. In each pod, every edge switch is joined to every aggregation switch.
/// The first aggregation switch of each pod is joined to the first core switches, the next one to
/// the next, and so on.
class FatTree {
 public:
  FatTree(const LinkSettings& link, const PortSettings& port);

  /// Sets up the routes of a flow and returns its ends. A host can send one flow and receive one.
  std::pair<End, End> lay(const Route& route);
  /// Packets dropped by all switches.
  uint64_t dropped() const;

 private:
  void layOneWay(uint32_t from, uint32_t to, const Way& way, const End& end);

  Network network_;
  std::vector<ns3::Ptr<ns3::Node>> hosts_, edges_, aggregations_, cores_;
  std::vector<std::pair<ns3::Ptr<ns3::Node>, ns3::Ptr<ns3::Node>>> switchPorts_;
};

}  // namespace braid::crosscheck
