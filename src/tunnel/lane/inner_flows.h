#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "inet/flow_key.h"
#include "tunnel/lane/flow.h"
#include "tunnel/lane/lane_options.h"

namespace braid {

struct InnerFlowOptions {
  size_t maxFlows = 4096;  ///< at most 16384; a change holds for flow numbers not used before
  Duration idle = 60s;     ///< a flow without packets for so long is forgotten
};
InnerFlowOptions innerFlowOptions(const LaneOptions& options);

/// The inner flows of all lanes by key, and the flow numbers that they occupy. When the numbers are used up, an idle
/// flow goes for a new one. A forgotten flow's object and number serve another flow; a flow keeps its place in memory
/// while it is known.
///
/// A host (FlowHosts) takes free numbers only while it has fewer flows than eight times as many as are free, so that
/// neither one nor a few together take them all, whatever they send. Beyond that, and when none is free, a new flow
/// takes the place of an idle one:
///
///   - of its own host, when no other has more flows and those are over an eighth of all: there or nowhere;
///   - of the heaviest host, when that has over an eighth of all;
///   - else of the least recently used one.
class InnerFlows {
 public:
  /// See above; ours. One host gets 8/9 of the numbers, two get 16/17.
  static constexpr size_t kShare = 8;
  /// Flows of a host that are looked at when one must go. The first that is idle and was not used for kFresh does, or
  /// else the least recently used of those that are idle; the next time it is others' turn. Ours: keeps a packet's
  /// work bounded.
  static constexpr size_t kHostTries = 16;
  /// A flow that is used again within so long keeps its place among its hosts' flows. Ours: a stream of packets costs
  /// no more for that order, and thousands of short flows a second still stand in it.
  static constexpr Duration kFresh = 100ms;

  /// `seed` keys the hash of flows; unpredictable outside of tests.
  InnerFlows(const InnerFlowOptions& options, uint64_t seed);
  void setOptions(const InnerFlowOptions& options) { options_ = options; }

  /// The flow of this key; a new one of that lane when it is not known. nullptr when none is left and none can go. A
  /// flow stays of its lane, reliable or not, and of its class as its first packet said.
  Flow* findOrAdd(Lane& lane, const FlowKey& key, bool reliable, uint8_t recoveryClass, Time now);
  /// What the flow, of timely datagrams, sends from now on is ordered.
  static void makeOrdered(Flow& flow) { flow.deliver(Delivery::kOrdered); }
  /// nullptr when it is not known.
  const Flow* find(const FlowKey& key) const;
  /// The flow has been used now.
  void touch(Flow& flow, Time now);
  /// Every flow that is known, idle ones included.
  template <typename F>
  void forEach(F&& visit) {
    for (Flow* flow = byUse_.front(); flow; flow = byUse_.next(*flow)) visit(*flow);
  }
  /// Flows of a class from `count` on are of none from now on.
  void limitClasses(size_t count);

  /// Flows known, idle ones included.
  size_t size() const { return byKey_.size(); }
  /// Those with the most bytes, the first with most. Only the flows used last are looked at, at most sixteen
  /// times as many, so that the work does not grow with the table.
  std::vector<const Flow*> largest(size_t most) const;

  /// Forgets flows that have been idle for so long.
  void onTimer(Time now);
  Time nextDeadline() const { return byUse_.empty() ? kNever : byUse_.front()->lastUse_ + options_.idle; }

 private:
  size_t limit() const;
  Flow* takePlace(const FlowKey& key, Time now);
  Flow* takeFree();
  Flow* evictOf(FlowHost& host, Time now);
  Flow* evictOldest();
  void forget(Flow& flow);

  InnerFlowOptions options_;
  std::deque<Flow> table_;   // by index
  std::vector<Flow*> free_;  // of the table, forgotten ones
  std::unordered_map<FlowKey, Flow*, FlowKeyHash> byKey_;
  IntrusiveList<Flow, &Flow::byUse_> byUse_;  // known ones, the least recently used first
  FlowHosts hosts_;                           // of known ones
};

}  // namespace braid
