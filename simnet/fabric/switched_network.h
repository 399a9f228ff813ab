#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "simnet/fabric/topology.h"
#include "simnet/timeline.h"

namespace braid::sim {

/// A network of switches in virtual time. A packet takes, at each switch, one of the shortest ways by a hash of its flow
/// (per-flow ECMP). A packet costs one event a hop.
class SwitchedNetwork {
 public:
  /// `timeline` outlives the network. The hashes and losses are a matter of `seed`.
  SwitchedNetwork(Timeline& timeline, const Topology& topology, uint64_t seed);

  /// Who gets what arrives at this host in this lane.
  using Sink = std::function<void(Parcel&&)>;
  void attach(size_t host, Lane lane, Sink sink) {
    sinks_.at(host)[static_cast<size_t>(lane)] = std::move(sink);
  }
  /// A packet of this host, towards `parcel.host`, another one.
  void send(size_t host, Parcel&& parcel);

  size_t hosts() const { return sinks_.size(); }
  /// One port for each of Topology::cables(), in their order.
  std::vector<Port>& ports() { return ports_; }
  const std::vector<Port>& ports() const { return ports_; }
  const Topology& topology() const { return topology_; }
  /// The cables (indices) that a flow passes from one host to another.
  std::vector<size_t> way(size_t from, size_t to, uint64_t flow) const;
  /// Packet-hops so far.
  uint64_t hops() const { return hops_; }
  /// Covers every packet that reached a host, with its time.
  uint64_t hash() const { return hash_; }

 private:
  struct Event {
    Time when;
    uint32_t port;
    bool operator>(const Event& b) const { return when != b.when ? when > b.when : port > b.port; }
  };
  void push(uint32_t port, Parcel&& parcel);
  void schedule(uint32_t port);
  void wakeAt(Time when);
  void run();
  uint32_t choose(size_t node, uint32_t host, uint64_t flow) const;

  Timeline& timeline_;
  Topology topology_;
  uint64_t seed_;
  std::vector<Port> ports_;
  std::vector<std::vector<std::vector<uint32_t>>> routes_;  // by node and switch
  std::vector<uint32_t> hostPort_;                          // the port from its switch, of each host
  std::vector<uint32_t> nicPort_;                           // its own port, of each host
  std::vector<int64_t> hostAt_;                             // the host at each node, or -1
  std::vector<std::array<Sink, 2>> sinks_;                  // by lane
  std::priority_queue<Event, std::vector<Event>, std::greater<>>
      events_;          // one for each port with packets inside
  Time wake_ = kNever;  // the timeline calls then
  bool running_ = false;
  uint64_t hops_ = 0, hash_ = 0;
};

}  // namespace braid::sim
