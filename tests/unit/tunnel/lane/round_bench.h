#pragma once

// A round over the flows of a lane whose units have a size and nothing in them.

#include <deque>
#include <map>
#include <vector>

#include "tunnel/lane/fair_round.h"
#include "tunnel/lane/inner_flows.h"
#include "tunnel/lane/lane.h"

namespace braid {

/// Flows have numbers from 1 on. What is served says so by the flow's number, negative for a turn without data; 0:
/// nothing is left.
struct RoundBench final : Lane {
  using Order = std::vector<int>;
  static constexpr Time kNow = Time{} + 1s;

  PacketPool pool{3000, 64};
  FairRound round;
  InnerFlows flows{{}, 1};
  std::map<int, std::deque<size_t>> waiting;  ///< sizes by flow, those that are ready included
  std::map<int, Packet> ready;
  Order asked;  ///< for their unit

  static int numberOf(const Flow& flow) { return flow.key().sport; }
  Flow& flow(int n) {
    FlowKey key;
    key.sport = static_cast<uint16_t>(n);
    return *flows.findOrAdd(*this, key, true, 0, kNow);
  }
  void in(int n, size_t size, int count = 1) {
    for (int i = 0; i < count; ++i) {
      waiting[n].push_back(size);
      round.onData(flow(n), size);
    }
  }

  // Lane
  const Packet* prepare(Flow& flow, Time) override {
    int n = numberOf(flow);
    asked.push_back(n);
    if (waiting[n].empty()) return nullptr;
    ready[n] = pool.allocate();
    ready[n].setSize(waiting[n].front());
    return &ready[n];
  }
  Packet handOut(Flow& flow) override {
    int n = numberOf(flow);
    waiting[n].pop_front();
    return std::move(ready[n]);
  }

  static int look(Round& walk) {
    Offer offer = walk.offer(kNow);
    if (!offer) return 0;
    return offer.isClaim() ? -numberOf(*offer.flow) : numberOf(*offer.flow);
  }
  /// A unit goes, or a turn ends after so many bytes; `again`: another one is wanted.
  static int take(Round& walk, size_t bytes = 0, bool again = false) {
    int n = look(walk);
    if (n > 0) walk.take();
    if (n < 0) walk.endClaim(bytes, again);
    return n;
  }
  /// Each in a walk of its own.
  Order serve(size_t count, size_t bytes = 0, bool again = false) {
    Order order;
    while (count-- > 0) {
      Round walk(round);
      order.push_back(take(walk, bytes, again));
    }
    return order;
  }
};

}  // namespace braid
