#include "tunnel/queue/flow.h"

namespace braid {

namespace {
// The key of a host is a flow key that has only the host's address, and tells whether the host is
// the source or the destination.
FlowKey sourceOf(const FlowKey& flow) {
  FlowKey host;
  host.family = flow.family;
  host.src = flow.src;
  return host;
}

FlowKey destinationOf(const FlowKey& flow) {
  FlowKey host;
  host.family = flow.family;
  host.dst = flow.dst;
  host.dport = 1;
  return host;
}
}  // namespace

void HostTable::add(Flow& flow, const FlowKey& key) {
  flow.atSource_.flow = flow.atDestination_.flow = &flow;
  enter(flow.atSource_, sourceOf(key));
  enter(flow.atDestination_, destinationOf(key));
}

void HostTable::remove(Flow& flow) {
  leave(flow.atSource_);
  leave(flow.atDestination_);
}

void HostTable::touch(Flow& flow) {
  for (HostEntry* entry : {&flow.atSource_, &flow.atDestination_}) {
    entry->host->entries_.erase(*entry);
    entry->host->entries_.pushBack(*entry);
  }
}

FlowHost* HostTable::heavier(const FlowKey& flow) {
  auto source = hosts_.find(sourceOf(flow));
  auto destination = hosts_.find(destinationOf(flow));
  if (source == hosts_.end()) return destination == hosts_.end() ? nullptr : &destination->second;
  if (destination == hosts_.end()) return &source->second;
  return source->second.flows() < destination->second.flows() ? &destination->second
                                                              : &source->second;
}

void HostTable::enter(HostEntry& entry, const FlowKey& key) {
  FlowHost& host = hosts_.try_emplace(key, key).first->second;
  entry.host = &host;
  host.entries_.pushBack(entry);
  move(host, host.count_ + 1);
}

void HostTable::leave(HostEntry& entry) {
  FlowHost& host = *entry.host;
  host.entries_.erase(entry);
  move(host, host.count_ - 1);
  entry.host = nullptr;
  if (host.count_ == 0) hosts_.erase(FlowKey(host.key_));
}

// `count` is one more or one less than before, so the largest count is found in one step.
void HostTable::move(FlowHost& host, size_t count) {
  if (host.count_ > 0) byCount_[host.count_].erase(host);
  host.count_ = count;
  while (byCount_.size() <= count) byCount_.emplace_back();
  if (count > 0) byCount_[count].pushBack(host);
  if (count > most_) most_ = count;
  if (most_ > 0 && byCount_[most_].empty()) --most_;
}

}  // namespace braid
