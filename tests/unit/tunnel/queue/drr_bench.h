#pragma once

// A DRR scheduler over the flows of a lane. Its data units have a size but no content.

#include <deque>
#include <map>
#include <vector>

#include "tunnel/queue/drr.h"
#include "tunnel/queue/flow_table.h"

namespace braid {

/// Flows are numbered from 1. The service order is a list of flow numbers; negative: a turn without
/// data; 0: nothing was left.
struct RoundBench final : Lane {
  using Order = std::vector<int>;
  static constexpr Time kNow = Time{} + 1s;

  PacketPool pool{3000, 64};
  DrrScheduler round;
  InnerFlowTable flows{{}, 1};
  std::map<int, std::deque<size_t>> waiting;  ///< sizes by flow, including those in `ready`
  std::map<int, Packet> ready;
  Order asked;  ///< flows asked to prepare a unit, in this order

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

  static int look(DrrCursor& walk) {
    Candidate offer = walk.peek(kNow);
    if (!offer) return 0;
    return offer.isBareTurn() ? -numberOf(*offer.flow) : numberOf(*offer.flow);
  }
  /// Takes the next unit, or ends a turn that used `bytes` bytes. `again`: the flow wants another
  /// turn.
  static int take(DrrCursor& walk, size_t bytes = 0, bool again = false) {
    int n = look(walk);
    if (n > 0) walk.take();
    if (n < 0) walk.endTurn(bytes, again);
    return n;
  }
  /// Takes `count` units or turns, each with its own DrrCursor.
  Order serve(size_t count, size_t bytes = 0, bool again = false) {
    Order order;
    while (count-- > 0) {
      DrrCursor walk(round);
      order.push_back(take(walk, bytes, again));
    }
    return order;
  }
};

}  // namespace braid
