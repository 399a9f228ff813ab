#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ackshim/flow.h"

namespace braid {

/// The flows by 5-tuple, in two parts that do not compete: flows that proved to have two ends, and half-open
/// ones, of which the oldest goes when one more comes. Whoever invents addresses fills only the second part.
/// All operations are O(1); memory is taken at the start.
class FlowTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// `seed` keys the hash; unpredictable outside of tests.
  FlowTable(size_t maxFlows, size_t maxHalfOpen, uint64_t seed);

  size_t hash(const FlowKey& key) const { return hash_(key); }
  uint32_t findProven(const FlowKey& key, size_t hash) const;
  uint32_t findHalfOpen(const FlowKey& key, size_t hash) const;
  ShimFlow& operator[](uint32_t i) { return flows_[i]; }

  /// A fresh half-open flow in the place of the oldest one, or of the one of that key.
  uint32_t addHalfOpen(const FlowKey& key, size_t hash);
  /// Moves a half-open flow to the proven ones; kNone when they are full: erase one first.
  uint32_t prove(uint32_t halfOpen, size_t hash);
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

  size_t proven() const { return proven_; }
  size_t capacity() const { return maxFlows_; }
  bool isFull() const { return proven_ == maxFlows_; }
  /// Visits all proven flows.
  template <typename F>
  void forEach(F&& visit) const {
    for (uint32_t i = 0; i < used_; ++i) {
      if (flows_[i].key.protocol != 0) visit(flows_[i]);
    }
  }

 private:
  /// Flows looked at when one must go. Ours: keeps a packet's work bounded.
  static constexpr size_t kTries = 16;

  uint32_t find(const std::vector<uint32_t>& heads, const FlowKey& key, size_t hash) const;
  void link(std::vector<uint32_t>& heads, uint32_t i, size_t hash);
  void unlink(std::vector<uint32_t>& heads, uint32_t i, size_t hash);

  FlowKeyHash hash_;
  size_t maxFlows_;
  size_t maxHalfOpen_;
  std::unique_ptr<ShimFlow[]> flows_;  // proven ones, then half-open ones
  std::vector<uint32_t> provenHeads_;  // powers of two
  std::vector<uint32_t> halfOpenHeads_;
  uint32_t free_ = kNone;
  uint32_t used_ = 0;          // proven places that were ever used
  uint32_t nextHalfOpen_ = 0;  // the place that is taken next, the oldest once all are used
  uint32_t hand_ = 0;
  size_t proven_ = 0;
};

}  // namespace braid
