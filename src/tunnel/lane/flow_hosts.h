#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "base/intrusive_list.h"
#include "inet/flow_key.h"

namespace braid {

class Flow;
class FlowHost;

/// A flow's place at one of its two hosts. FlowHosts alone writes it.
struct HostSeat {
  Flow* flow = nullptr;
  FlowHost* host = nullptr;
  ListLink<HostSeat> link;
};

/// An address that flows of a table come from, or one that they go to.
class FlowHost {
 public:
  explicit FlowHost(const FlowKey& key) : key_(key) {}

  /// How many.
  size_t flows() const { return count_; }
  /// The flow that was neither looked at nor touched for longest, which now goes behind the others.
  Flow& lookAtNext() {
    HostSeat& seat = *seats_.popFront();
    seats_.pushBack(seat);
    return *seat.flow;
  }

 private:
  friend class FlowHosts;

  FlowKey key_;  ///< of FlowHosts::hosts_
  size_t count_ = 0;
  IntrusiveList<HostSeat, &HostSeat::link> seats_;
  ListLink<FlowHost> byCount_;
};

/// The flows of a table by host: one host with thousands of flows is one host. A flow counts for its source and for
/// its destination, because the hosts that a gateway serves are the sources at one end of the tunnel and the
/// destinations at the other. A host is an address: an IPv6 /64 may be all hosts of a site. Every call takes the same
/// time, however many hosts and flows there are.
class FlowHosts {
 public:
  /// `seed` keys the hash of hosts; unpredictable outside of tests.
  explicit FlowHosts(uint64_t seed) : hosts_(0, FlowKeyHash(~seed, seed)) {}

  /// A flow that is not here, with its key; it stays where it is in memory until remove().
  void add(Flow& flow, const FlowKey& key);
  void remove(Flow& flow);

  /// The flow, which is here, goes behind the others of its hosts.
  static void touch(Flow& flow);
  /// The one of a flow's two hosts that has more flows; nullptr when neither has any.
  FlowHost* heavier(const FlowKey& flow);
  /// The host with most flows, of several the one that has had so many for longest; nullptr when there is none.
  FlowHost* heaviest() { return byCount_.empty() ? nullptr : byCount_[most_].front(); }

 private:
  void sit(HostSeat& seat, const FlowKey& host);
  void leave(HostSeat& seat);
  void move(FlowHost& host, size_t count);

  using List = IntrusiveList<FlowHost, &FlowHost::byCount_>;

  std::unordered_map<FlowKey, FlowHost, FlowKeyHash> hosts_;  // those that have flows
  std::deque<List> byCount_;  // by how many flows they have; the first is empty
  size_t most_ = 0;           // the largest count that a host has
};

}  // namespace braid
