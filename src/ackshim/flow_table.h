#pragma once

#include <cstddef>
#include <cstdint>

#include "ackshim/flow.h"
#include "ackshim/flow_index.h"
#include "base/huge_array.h"

namespace braid {

/// A 5-tuple, from the local host, and the table's hash of it.
struct FlowPlace {
  FlowKey key;
  uint64_t hash;
};

/// The flows by 5-tuple, in two parts that do not compete: flows that proved to have two ends, and half-open
/// ones, of which the oldest goes when one more comes. Whoever invents addresses fills only the second part.
/// All operations are O(1); memory is taken as places are first used, and kept.
///
/// A packet of a flow that is in no cache costs two waits for memory, one for the index and one for the
/// record's three lines.
class FlowTable {
 public:
  static constexpr uint32_t kNone = FlowIndex::kNone;

  /// `seed` keys the hash; unpredictable outside of tests.
  FlowTable(size_t maxFlows, size_t maxHalfOpen, uint64_t seed);

  uint64_t hash(const FlowKey& key) const { return hash_(key); }
  uint32_t findProven(const FlowKey& key, uint64_t hash) const;
  uint32_t findHalfOpen(const FlowKey& key, uint64_t hash) const;
  ShimFlow& operator[](uint32_t i) { return flows_[i]; }
  /// Of a proven flow.
  Troubles& troubles(const ShimFlow& flow) { return troubles_[static_cast<size_t>(&flow - flows_.data())]; }

  /// Fetches the record of the proven flow `i`.
  void fetchFlow(uint32_t i) const;

  /// A fresh half-open flow in the place of the oldest one, or of the one of that key.
  uint32_t addHalfOpen(const FlowKey& key, uint64_t hash);
  /// Moves a half-open flow to the proven ones; kNone when they are full: erase one first.
  uint32_t prove(uint32_t halfOpen, uint64_t hash);
  /// Forgets a proven flow.
  void erase(uint32_t i);
  /// The next few proven flows in turn, for the choice of one that may go: mayGo(flow) says so. kNone: none.
  template <typename F>
  uint32_t victim(F&& mayGo) {
    for (size_t n = 0; n < kTries && used_ > 0; ++n) {
      hand_ = (hand_ + 1) % used_;
      if (flows_[hand_].key.protocol != 0 && mayGo(flows_[hand_])) return hand_;
    }
    return kNone;
  }

  /// Proven flows.
  size_t size() const { return size_; }
  size_t capacity() const { return maxFlows_; }
  bool isFull() const { return size_ == maxFlows_; }

 private:
  /// Flows looked at when one must go. Ours: keeps a packet's work bounded.
  static constexpr size_t kTries = 16;

  uint32_t idOf(uint32_t halfOpen) const { return halfOpen - static_cast<uint32_t>(maxFlows_); }

  FlowKeyHash hash_;
  size_t maxFlows_;
  size_t maxHalfOpen_;
  HugeArray<ShimFlow> flows_;  // proven ones, then half-open ones
  HugeArray<Troubles> troubles_;
  FlowIndex proven_;
  FlowIndex halfOpen_;
  uint32_t free_ = kNone;      // the first place that an erased flow left; its lastUse is the next one
  uint32_t used_ = 0;          // proven places that were ever used
  uint32_t usedHalfOpen_ = 0;  // half-open places that were ever used
  uint32_t nextHalfOpen_ = 0;  // the place that is taken next, the oldest once all are used
  uint32_t hand_ = 0;
  size_t size_ = 0;
};

}  // namespace braid
