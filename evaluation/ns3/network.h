#pragma once

// Nodes and links of ns-3, with queues that hold exactly the configured number of packets.

#include <ns3/ipv4-address.h>
#include <ns3/net-device-container.h>
#include <ns3/node.h>
#include <ns3/nstime.h>
#include <ns3/point-to-point-net-device.h>
#include <ns3/ptr.h>
#include <ns3/queue-disc.h>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace braid::crosscheck {

/// Limit and threshold of the queue at a switch port. Neither counts the packet in transmission.
struct PortSettings {
  uint32_t packets = 100;  ///< a packet that finds as many waiting is dropped
  /// A packet that finds more waiting is marked, or dropped if it is not ECN-capable
  std::optional<uint32_t> threshold;
};

struct LinkSettings {
  double rate = 1e9;  ///< bit/s, each way
  ns3::Time delay;    ///< one way
};

/// One end of a link.
class Port {
 public:
  Port(ns3::Ptr<ns3::PointToPointNetDevice> device, ns3::Ptr<ns3::QueueDisc> queue,
       ns3::Ipv4Address address)
      : device_(std::move(device)), queue_(std::move(queue)), address_(address) {}

  ns3::Ptr<ns3::PointToPointNetDevice> device() const { return device_; }
  ns3::Ipv4Address address() const { return address_; }
  /// Packets, without the one in transmission.
  uint32_t waiting() const;
  uint32_t dropped() const;
  uint32_t marked() const;

 private:
  ns3::Ptr<ns3::PointToPointNetDevice> device_;
  ns3::Ptr<ns3::QueueDisc> queue_;
  ns3::Ipv4Address address_;
};

/// Makes nodes and joins them. Routes are static and by address.
class Network {
 public:
  Network();

  ns3::Ptr<ns3::Node> addNode() const;
  /// Joins two nodes. A port without settings never drops or marks; use this for hosts.
  void join(const ns3::Ptr<ns3::Node>& a, const ns3::Ptr<ns3::Node>& b, const LinkSettings& link,
            const std::optional<PortSettings>& portOfA, const std::optional<PortSettings>& portOfB);

  /// The port of `node` towards its neighbour.
  const Port& port(const ns3::Ptr<ns3::Node>& node, const ns3::Ptr<ns3::Node>& neighbour) const {
    return ports_.at({node->GetId(), neighbour->GetId()});
  }
  /// Routes packets to `address` from `node` to that neighbour.
  void addRoute(const ns3::Ptr<ns3::Node>& node, ns3::Ipv4Address address,
                const ns3::Ptr<ns3::Node>& neighbour) const;
  /// Routes all packets without another route from `node` to that neighbour.
  void addDefaultRoute(const ns3::Ptr<ns3::Node>& node, const ns3::Ptr<ns3::Node>& neighbour) const;

 private:
  std::map<std::pair<uint32_t, uint32_t>, Port> ports_;
};

}  // namespace braid::crosscheck
