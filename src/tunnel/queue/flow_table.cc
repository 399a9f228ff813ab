#include "tunnel/queue/flow_table.h"

#include <algorithm>

#include "tunnel/wire/frames.h"

namespace braid {

namespace {
/// At most this many flows are looked at for the least recently used one that may be evicted.
/// Bounds the work for a packet.
constexpr int kEvictionTries = 64;
}  // namespace

FlowTableOptions innerFlowOptions(const QueueOptions& options) {
  return {.maxFlows = options.maxFlows, .idle = options.flowIdle};
}

InnerFlowTable::InnerFlowTable(const FlowTableOptions& options, uint64_t seed)
    : options_(options), byKey_(0, FlowKeyHash(seed, ~seed)), hosts_(seed) {}

Flow* InnerFlowTable::findOrAdd(Lane& lane, const FlowKey& key, bool reliable,
                                uint8_t recoveryClass, Time now) {
  auto found = byKey_.find(key);
  if (found != byKey_.end()) return found->second;
  Flow* flow = takePlace(key, now);
  if (!flow) return nullptr;
  flow->begin(lane, key, reliable ? Delivery::kReliable : Delivery::kTimely, recoveryClass);
  flow->known_ = true;
  flow->lastUse_ = now;
  byUse_.pushBack(*flow);
  byKey_.emplace(key, flow);
  hosts_.add(*flow, key);
  return flow;
}

const Flow* InnerFlowTable::find(const FlowKey& key) const {
  auto found = byKey_.find(key);
  return found == byKey_.end() ? nullptr : found->second;
}

void InnerFlowTable::touch(Flow& flow, Time now) {
  if (now - flow.lastUse_ >= kFresh) hosts_.touch(flow);
  flow.lastUse_ = now;
  byUse_.erase(flow);
  byUse_.pushBack(flow);
}

std::vector<const Flow*> InnerFlowTable::largest(size_t most) const {
  constexpr size_t kLookedAt = 16;
  std::vector<const Flow*> out;
  for (const Flow* flow = byUse_.back(); flow && out.size() / kLookedAt < most;
       flow = byUse_.previous(*flow))
    out.push_back(flow);
  auto bytes = [](const Flow* a, const Flow* b) {
    return a->queue.counts().bytes > b->queue.counts().bytes;
  };
  auto cut = out.begin() + static_cast<std::ptrdiff_t>(std::min(most, out.size()));
  std::partial_sort(out.begin(), cut, out.end(), bytes);
  out.erase(cut, out.end());
  return out;
}

void InnerFlowTable::limitClasses(size_t count) {
  for (Flow& flow : table_) {
    if (flow.recoveryClass_ >= count) flow.recoveryClass_ = 0;
  }
}

void InnerFlowTable::onTimer(Time now) {
  while (nextDeadline() <= now) {
    Flow& oldest = *byUse_.front();
    if (oldest.isIdle()) {
      forget(oldest);
    } else {
      touch(oldest, now);
    }
  }
}

size_t InnerFlowTable::limit() const {
  return std::min<size_t>(options_.maxFlows, kOrderedDatagramFlow.value());
}

// A place for a flow of that key; nullptr when there is none.
Flow* InnerFlowTable::takePlace(const FlowKey& key, Time now) {
  size_t free = limit() - std::min(limit(), size());
  FlowHost* own = hosts_.heavier(key);
  if (free > 0 && (!own || own->flows() < kShare * free)) return takeFree();
  FlowHost* heaviest = hosts_.heaviest();
  if (heaviest && heaviest->flows() > limit() / kShare) {
    bool isOwn = own && own->flows() == heaviest->flows();
    if (Flow* flow = evictOf(isOwn ? *own : *heaviest, now)) return flow;
    if (isOwn) return nullptr;
  }
  return evictOldest();
}

Flow* InnerFlowTable::takeFree() {
  if (free_.empty()) {
    if (table_.size() >= limit()) return nullptr;
    return &table_.emplace_back(static_cast<uint16_t>(table_.size()));
  }
  Flow* flow = free_.back();
  free_.pop_back();
  return flow;
}

// The host's flows are in the order of their use, except those that were used again within kFresh
// of their last use and those that were looked at.
Flow* InnerFlowTable::evictOf(FlowHost& host, Time now) {
  Flow* oldest = nullptr;
  for (size_t left = std::min(kHostTries, host.flows()); left > 0; --left) {
    Flow& flow = host.lookAtNext();
    if (!flow.isIdle()) continue;
    if (!oldest || flow.lastUse() < oldest->lastUse()) oldest = &flow;
    if (now - flow.lastUse() >= kFresh) break;
  }
  if (!oldest) return nullptr;
  forget(*oldest);
  return takeFree();
}

// Evicts the least recently used idle flow among the first kEvictionTries.
Flow* InnerFlowTable::evictOldest() {
  Flow* flow = byUse_.front();
  for (int i = 0; flow && i < kEvictionTries; ++i, flow = byUse_.next(*flow)) {
    if (!flow->isIdle()) continue;
    forget(*flow);
    return takeFree();
  }
  return nullptr;
}

void InnerFlowTable::forget(Flow& flow) {
  byKey_.erase(flow.key());
  byUse_.erase(flow);
  hosts_.remove(flow);
  flow.known_ = false;
  free_.push_back(&flow);
}

}  // namespace braid
