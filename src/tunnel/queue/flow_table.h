#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/containers.h"
#include "inet/flow_key.h"
#include "tunnel/queue/flow.h"
#include "tunnel/queue/options.h"

namespace braid {

/// The flows that have queued packets, in classes of similar queue size, so that one of the longest
/// queues is found in a few steps. A search of all flows would be too slow: a host with thousands
/// of flows of one packet each could cause one for every packet that exceeds the byte bound.
class FattestQueues {
 public:
  /// The content of the flow's queue has changed.
  void onChange(Flow& flow) {
    uint8_t now = classOf(flow.queue.footprint());
    if (now == flow.fatClass_) return;
    if (flow.fatClass_ > 0) {
      List& list = (*classes_)[flow.fatClass_];
      list.erase(flow);
      if (list.empty()) inUse_[flow.fatClass_ / 64] &= ~(uint64_t{1} << flow.fatClass_ % 64);
    }
    flow.fatClass_ = now;
    if (now == 0) return;
    if (!classes_) classes_ = std::make_unique<Classes>();
    (*classes_)[now].pushBack(flow);
    inUse_[now / 64] |= uint64_t{1} << now % 64;
  }
  /// Returns a flow with a queue that takes more than four fifths of the memory of the largest one;
  /// nullptr when all are empty.
  Flow* fattest() const {
    for (size_t word = inUse_.size(); word-- > 0;) {
      if (inUse_[word] == 0) continue;
      return (*classes_)[64 * word + 63 - static_cast<size_t>(std::countl_zero(inUse_[word]))]
          .front();
    }
    return nullptr;
  }

 private:
  using List = IntrusiveList<Flow, &Flow::byFat_>;

  /// The last class holds all queues from 448 MB on.
  static constexpr size_t kClasses = 116;

  using Classes = std::array<List, kClasses>;

  /// The class of a queue of `held` bytes: four classes between two powers of two; 0 for an empty
  /// queue.
  static uint8_t classOf(size_t held) {
    if (held < 4) return static_cast<uint8_t>(held);
    auto power = static_cast<size_t>(std::bit_width(held)) - 1;
    return static_cast<uint8_t>(std::min(power << 2 | (held >> (power - 2) & 3), kClasses - 1));
  }

  std::unique_ptr<Classes> classes_;  ///< 2 KB, allocated with the first packet
  /// One bit for each class that is not empty.
  std::array<uint64_t, (kClasses + 63) / 64> inUse_{};
};

struct FlowTableOptions {
  size_t maxFlows = 4096;  ///< at most 16384; a change affects flow numbers not used before
  Duration idle = 60s;     ///< a flow without packets for this long is forgotten
};
FlowTableOptions innerFlowOptions(const QueueOptions& options);

/// The inner flows by key, and the flow numbers that they occupy. When all numbers are in use, an
/// idle flow is evicted for a new one. The object and the number of a forgotten flow are reused for
/// another flow. A flow keeps its place in memory while it is known.
///
/// A host (HostTable) gets a free number only while it has fewer flows than kShare (8) times the
/// number of free ones. So neither one host nor a few together can take all numbers, whatever they
/// send. Otherwise, and when no number is free, a new flow replaces an idle flow:
///
///   - of its own host, if no other host has more flows and those are over an eighth of all
///     numbers. If none of the flows looked at is idle, the new one is refused;
///   - else of the host with the most flows, if those are over an eighth of all numbers;
///   - else, or if that host has no idle flow, the least recently used idle flow.
class InnerFlowTable {
 public:
  /// See the class comment. With this value one host gets 8/9 of the numbers, two hosts get 16/17.
  static constexpr size_t kShare = 8;
  /// At most this many flows of a host are looked at when one must be evicted. The first idle one
  /// that was not used for kFresh is evicted, or else the least recently used of the idle ones. The
  /// next search begins with the flows that were not looked at. Bounds the work for a packet.
  static constexpr size_t kHostTries = 16;
  /// A flow that is used again within this time keeps its place in the order of its hosts' flows.
  /// Chosen: a steady flow of packets costs no work for the order, and thousands of short flows a
  /// second are still in order.
  static constexpr Duration kFresh = 100ms;

  /// `seed` keys the hash of flows. It must be unpredictable outside of tests.
  InnerFlowTable(const FlowTableOptions& options, uint64_t seed);
  void setOptions(const FlowTableOptions& options) { options_ = options; }

  /// The flow of this key; a new flow of that lane when the key is not known. nullptr when no
  /// number is free and no flow can be evicted. The first packet of a flow decides its lane,
  /// whether it is reliable, and its recovery class.
  Flow* findOrAdd(Lane& lane, const FlowKey& key, bool reliable, uint8_t recoveryClass, Time now);
  /// From now on the flow, which is of timely datagrams, is ordered.
  static void makeOrdered(Flow& flow) { flow.deliver(Delivery::kOrdered); }
  /// nullptr when the key is not known.
  const Flow* find(const FlowKey& key) const;
  /// The flow is used now.
  void touch(Flow& flow, Time now);
  /// Visits every known flow, idle ones included.
  template <typename F>
  void forEach(F&& visit) {
    for (Flow* flow = byUse_.front(); flow; flow = byUse_.next(*flow)) visit(*flow);
  }
  /// Flows of the recovery classes from `count` on have no class from now on.
  void limitClasses(size_t count);

  /// Number of known flows, idle ones included.
  size_t size() const { return byKey_.size(); }
  /// The `most` flows that have sent the most bytes, in descending order. Only the flows used last
  /// are looked at, at most 16 * `most`, so that the work does not grow with the table.
  std::vector<const Flow*> largest(size_t most) const;

  /// Forgets flows that have been idle for FlowTableOptions::idle.
  void onTimer(Time now);
  Time nextDeadline() const {
    return byUse_.empty() ? kNever : byUse_.front()->lastUse_ + options_.idle;
  }

 private:
  size_t limit() const;
  Flow* takePlace(const FlowKey& key, Time now);
  Flow* takeFree();
  Flow* evictOf(FlowHost& host, Time now);
  Flow* evictOldest();
  void forget(Flow& flow);

  FlowTableOptions options_;
  std::deque<Flow> table_;   // by index
  std::vector<Flow*> free_;  // forgotten flows of table_
  std::unordered_map<FlowKey, Flow*, FlowKeyHash> byKey_;
  IntrusiveList<Flow, &Flow::byUse_> byUse_;  // known flows, the least recently used first
  HostTable hosts_;                           // of the known flows
};

}  // namespace braid
