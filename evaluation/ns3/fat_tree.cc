#include "evaluation/ns3/fat_tree.h"

#include <ns3/ipv4.h>

namespace braid::crosscheck {

FatTree::FatTree(const LinkSettings& link, const PortSettings& port) {
  auto add = [this](std::vector<ns3::Ptr<ns3::Node>>& nodes, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) nodes.push_back(network_.addNode());
  };
  add(hosts_, kHosts);
  add(edges_, kArity * kHalf);
  add(aggregations_, kArity * kHalf);
  add(cores_, kHalf * kHalf);
  for (uint32_t host = 0; host < kHosts; ++host) {
    auto edge = edges_[host / kHalf];
    network_.join(hosts_[host], edge, link, std::nullopt, port);
    network_.addDefaultRoute(hosts_[host], edge);
    switchPorts_.emplace_back(edge, hosts_[host]);
  }
  auto join = [&](const ns3::Ptr<ns3::Node>& lower, const ns3::Ptr<ns3::Node>& upper) {
    network_.join(lower, upper, link, port, port);
    switchPorts_.insert(switchPorts_.end(), {{lower, upper}, {upper, lower}});
  };
  for (uint32_t pod = 0; pod < kArity; ++pod) {
    for (uint32_t i = 0; i < kHalf; ++i) {
      auto aggregation = aggregations_[pod * kHalf + i];
      for (uint32_t j = 0; j < kHalf; ++j) {
        join(edges_[pod * kHalf + j], aggregation);
        join(aggregation, cores_[i * kHalf + j]);
      }
    }
  }
}

std::pair<End, End> FatTree::lay(const Route& route) {
  // A host sends with one address and receives with another. Routes are by destination, so the
  // paths of ACKs to a host and of data to it can then differ.
  auto receiver = hosts_[route.to];
  ns3::Ipv4Address address(0x0ac80000 + route.to);  // 10.200.0.0 and on
  auto ipv4 = receiver->GetObject<ns3::Ipv4>();
  ipv4->AddAddress(1, ns3::Ipv4InterfaceAddress(address, ns3::Ipv4Mask("/32")));
  End to{receiver, address};
  auto sender = hosts_[route.from];
  End from{sender, network_.port(sender, edges_[route.from / kHalf]).address()};
  layOneWay(route.from, route.to, route.data, to);
  layOneWay(route.to, route.from, route.acks, from);
  return {from, to};
}

void FatTree::layOneWay(uint32_t from, uint32_t to, const Way& way, const End& end) {
  std::vector<ns3::Ptr<ns3::Node>> nodes{edges_[from / kHalf]};
  auto aggregation = [&](uint32_t host) {
    return aggregations_[host / (kHalf * kHalf) * kHalf + *way.aggregation];
  };
  if (way.aggregation) nodes.push_back(aggregation(from));
  if (way.core) {
    nodes.push_back(cores_[*way.aggregation * kHalf + *way.core]);
    nodes.push_back(aggregation(to));
  }
  if (way.aggregation) nodes.push_back(edges_[to / kHalf]);
  nodes.push_back(end.node);
  for (size_t i = 0; i + 1 < nodes.size(); ++i)
    network_.addRoute(nodes[i], end.address, nodes[i + 1]);
}

uint64_t FatTree::dropped() const {
  uint64_t sum = 0;
  for (const auto& [node, neighbour] : switchPorts_)
    sum += network_.port(node, neighbour).dropped();
  return sum;
}

}  // namespace braid::crosscheck
