#include "ackshim/flow_table.h"

#include <algorithm>
#include <bit>

namespace braid {

namespace {
constexpr size_t kCacheLine = 64;  // bytes, of the machines Braid runs on
}

FlowTable::FlowTable(size_t maxFlows, size_t maxHalfOpen, uint64_t seed)
    : hash_(seed, ~seed),
      maxFlows_(std::clamp<size_t>(maxFlows, 1, size_t{1} << 30)),
      maxHalfOpen_(std::clamp<size_t>(maxHalfOpen, 1, size_t{1} << 30)),
      flows_(std::make_unique<ShimFlow[]>(maxFlows_ + maxHalfOpen_)),
      provenHeads_(std::bit_ceil(maxFlows_), kNone),
      halfOpenHeads_(std::bit_ceil(maxHalfOpen_), kNone) {}

uint32_t FlowTable::find(const std::vector<uint32_t>& heads, const FlowKey& key, size_t hash) const {
  uint32_t i = heads[hash & (heads.size() - 1)];
  while (i != kNone) {
    const ShimFlow& flow = flows_[i];
    // Nearly all of the record is used.
    const char* record = reinterpret_cast<const char*>(&flow);
    for (size_t at = kCacheLine; at < sizeof(ShimFlow); at += kCacheLine) __builtin_prefetch(record + at);
    __builtin_prefetch(record + sizeof(ShimFlow) - 1);
    if (flow.key == key) break;
    i = flow.next;
  }
  return i;
}

uint32_t FlowTable::findProven(const FlowKey& key, size_t hash) const {
  return find(provenHeads_, key, hash);
}

uint32_t FlowTable::findHalfOpen(const FlowKey& key, size_t hash) const {
  return find(halfOpenHeads_, key, hash);
}

void FlowTable::link(std::vector<uint32_t>& heads, uint32_t i, size_t hash) {
  uint32_t& head = heads[hash & (heads.size() - 1)];
  flows_[i].next = head;
  head = i;
}

void FlowTable::unlink(std::vector<uint32_t>& heads, uint32_t i, size_t hash) {
  uint32_t* link = &heads[hash & (heads.size() - 1)];
  while (*link != i) link = &flows_[*link].next;
  *link = flows_[i].next;
}

uint32_t FlowTable::addHalfOpen(const FlowKey& key, size_t hash) {
  uint32_t i = findHalfOpen(key, hash);
  if (i == kNone) {
    i = static_cast<uint32_t>(maxFlows_) + nextHalfOpen_;
    nextHalfOpen_ = (nextHalfOpen_ + 1) % static_cast<uint32_t>(maxHalfOpen_);
    if (flows_[i].key.protocol != 0) unlink(halfOpenHeads_, i, hash_(flows_[i].key));
    flows_[i] = ShimFlow{};
    flows_[i].key = key;
    link(halfOpenHeads_, i, hash);
    return i;
  }
  uint32_t next = flows_[i].next;
  flows_[i] = ShimFlow{};
  flows_[i].key = key;
  flows_[i].next = next;
  return i;
}

uint32_t FlowTable::prove(uint32_t halfOpen, size_t hash) {
  if (isFull()) return kNone;
  uint32_t i = free_;
  if (i != kNone) {
    free_ = flows_[i].next;
  } else {
    i = used_++;
  }
  unlink(halfOpenHeads_, halfOpen, hash);
  flows_[i] = flows_[halfOpen];
  flows_[halfOpen] = ShimFlow{};
  link(provenHeads_, i, hash);
  ++proven_;
  return i;
}

void FlowTable::erase(uint32_t i) {
  unlink(provenHeads_, i, hash_(flows_[i].key));
  flows_[i] = ShimFlow{};
  flows_[i].next = free_;
  free_ = i;
  --proven_;
}

}  // namespace braid
