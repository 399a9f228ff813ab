#include "ackshim/flow_table.h"

#include <algorithm>
#include <bit>

namespace braid {

namespace {
constexpr size_t kIdsPerBucket = 8;
}

FlowIndex::FlowIndex(size_t ids)
    : idBits_(static_cast<unsigned>(std::bit_width(ids))),
      buckets_((ids + kIdsPerBucket - 1) / kIdsPerBucket) {}

void FlowIndex::insert(uint64_t hash, uint32_t id) {
  for (size_t at = home(hash);; at = next(at)) {
    Bucket& bucket = buckets_[at];
    auto* place = std::find(bucket.entries.begin(), bucket.entries.end(), kNone);
    if (place != bucket.entries.end()) {
      *place = tag(hash) | id;
      return;
    }
    ++bucket.passed;
  }
}

void FlowIndex::erase(uint64_t hash, uint32_t id) {
  for (size_t at = home(hash);; at = next(at)) {
    Bucket& bucket = buckets_[at];
    auto* place = std::find(bucket.entries.begin(), bucket.entries.end(), tag(hash) | id);
    if (place != bucket.entries.end()) {
      *place = kNone;
      return;
    }
    --bucket.passed;
  }
}

namespace {
constexpr size_t kMost = size_t{1} << 29;  // limit on the size of either part
}

FlowTable::FlowTable(size_t maxFlows, size_t maxHalfOpen, uint64_t seed)
    : hash_(seed, ~seed),
      maxFlows_(std::clamp<size_t>(maxFlows, 1, kMost)),
      maxHalfOpen_(std::clamp<size_t>(maxHalfOpen, 1, kMost)),
      flows_(maxFlows_ + maxHalfOpen_, ArrayInit::kNone),
      lossStates_(maxFlows_, ArrayInit::kNone),
      proven_(maxFlows_),
      halfOpen_(maxHalfOpen_) {}

uint32_t FlowTable::findProven(const FlowKey& key, uint64_t hash) const {
  return proven_.find(hash, [&](uint32_t id) {
    prefetch(id);  // fetched in parallel with the comparison of the key
    return flows_[id].key == key;
  });
}

uint32_t FlowTable::findHalfOpen(const FlowKey& key, uint64_t hash) const {
  uint32_t id = halfOpen_.find(hash, [&](uint32_t n) { return flows_[maxFlows_ + n].key == key; });
  return id == kNone ? kNone : static_cast<uint32_t>(maxFlows_) + id;
}

void FlowTable::prefetch(uint32_t i) const {
  const ShimFlow& flow = flows_[i];
  __builtin_prefetch(&flow.key);
  __builtin_prefetch(&flow.out);
  __builtin_prefetch(&flow.in);
}

uint32_t FlowTable::addHalfOpen(const FlowKey& key, uint64_t hash) {
  uint32_t i = findHalfOpen(key, hash);
  if (i == kNone) {
    i = static_cast<uint32_t>(maxFlows_) + nextHalfOpen_;
    nextHalfOpen_ = (nextHalfOpen_ + 1) % static_cast<uint32_t>(maxHalfOpen_);
    bool isFresh = idOf(i) == usedHalfOpen_;
    usedHalfOpen_ += isFresh;
    if (!isFresh && flows_[i].key.protocol != 0) halfOpen_.erase(hash_(flows_[i].key), idOf(i));
    halfOpen_.insert(hash, idOf(i));
  }
  flows_[i] = ShimFlow{};
  flows_[i].key = key;
  return i;
}

uint32_t FlowTable::prove(uint32_t halfOpen, uint64_t hash) {
  if (isFull()) return kNone;
  uint32_t i = free_;
  if (i != kNone) {
    free_ = flows_[i].lastUse.us;
  } else {
    i = used_++;
  }
  halfOpen_.erase(hash, idOf(halfOpen));
  flows_[i] = flows_[halfOpen];
  flows_[halfOpen] = ShimFlow{};
  lossStates_[i] = LossState{};
  proven_.insert(hash, i);
  ++size_;
  return i;
}

void FlowTable::erase(uint32_t i) {
  proven_.erase(hash_(flows_[i].key), i);
  flows_[i] = ShimFlow{};
  flows_[i].lastUse.us = free_;
  free_ = i;
  --size_;
}

}  // namespace braid
