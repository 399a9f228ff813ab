#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "simnet/fabric/topology.h"
#include "simnet/timeline.h"

namespace braid::sim {

/// A network of switches in virtual time. At each switch a hash of the packet's flow chooses one of
/// the shortest paths (per-flow ECMP). A packet costs one event per hop.
class SwitchedNetwork {
 public:
  /// `timeline` must outlive the network. `seed` decides the hashes and losses.
  SwitchedNetwork(Timeline& timeline, const Topology& topology, uint64_t seed);

  /// Called with each packet that arrives at a host in a lane; see attach().
  using Sink = std::function<void(Parcel&&)>;
  void attach(size_t host, Lane lane, Sink sink) {
    sinks_.at(host)[static_cast<size_t>(lane)] = std::move(sink);
  }
  /// Sends a packet from `host` to the host `parcel.host`, which must differ.
  void send(size_t host, Parcel&& parcel);

  size_t hosts() const { return sinks_.size(); }
  /// One port for each of Topology::cables(), in their order.
  std::vector<Port>& ports() { return ports_; }
  const std::vector<Port>& ports() const { return ports_; }
  const Topology& topology() const { return topology_; }
  /// The cables (indices into Topology::cables()) that a flow passes from one host to another.
  std::vector<size_t> way(size_t from, size_t to, uint64_t flow) const;
  /// Number of hops of all packets together.
  uint64_t hops() const { return hops_; }
  /// Hash of every packet that reached a host and its time.
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
  // usable ports, by node and destination switch
  std::vector<std::vector<std::vector<uint32_t>>> routes_;
  std::vector<uint32_t> hostPort_;          // of each host: its switch's port towards it
  std::vector<uint32_t> nicPort_;           // of each host: its own port
  std::vector<int64_t> hostAt_;             // the host at each node, or -1
  std::vector<std::array<Sink, 2>> sinks_;  // by lane
  std::priority_queue<Event, std::vector<Event>, std::greater<>>
      events_;          // one event for each port with packets inside
  Time wake_ = kNever;  // when the timeline calls run()
  bool running_ = false;
  uint64_t hops_ = 0, hash_ = 0;
};

}  // namespace braid::sim
