#include "tunnel/lane/flow_hosts.h"

#include "tunnel/lane/flow.h"

namespace braid {

namespace {
// A host is known by a key that has nothing but its address, and on which side of a flow it is.
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

void FlowHosts::add(Flow& flow, const FlowKey& key) {
  flow.atSource_.flow = flow.atDestination_.flow = &flow;
  sit(flow.atSource_, sourceOf(key));
  sit(flow.atDestination_, destinationOf(key));
}

void FlowHosts::remove(Flow& flow) {
  leave(flow.atSource_);
  leave(flow.atDestination_);
}

void FlowHosts::touch(Flow& flow) {
  for (HostSeat* seat : {&flow.atSource_, &flow.atDestination_}) {
    seat->host->seats_.erase(*seat);
    seat->host->seats_.pushBack(*seat);
  }
}

FlowHost* FlowHosts::heavier(const FlowKey& flow) {
  auto source = hosts_.find(sourceOf(flow));
  auto destination = hosts_.find(destinationOf(flow));
  if (source == hosts_.end()) return destination == hosts_.end() ? nullptr : &destination->second;
  if (destination == hosts_.end()) return &source->second;
  return source->second.flows() < destination->second.flows() ? &destination->second : &source->second;
}

void FlowHosts::sit(HostSeat& seat, const FlowKey& key) {
  FlowHost& host = hosts_.try_emplace(key, key).first->second;
  seat.host = &host;
  host.seats_.pushBack(seat);
  move(host, host.count_ + 1);
}

void FlowHosts::leave(HostSeat& seat) {
  FlowHost& host = *seat.host;
  host.seats_.erase(seat);
  move(host, host.count_ - 1);
  seat.host = nullptr;
  if (host.count_ == 0) hosts_.erase(FlowKey(host.key_));
}

// One more or one less, so that the largest count is never far to seek.
void FlowHosts::move(FlowHost& host, size_t count) {
  if (host.count_ > 0) byCount_[host.count_].erase(host);
  host.count_ = count;
  while (byCount_.size() <= count) byCount_.emplace_back();
  if (count > 0) byCount_[count].pushBack(host);
  if (count > most_) most_ = count;
  if (most_ > 0 && byCount_[most_].empty()) --most_;
}

}  // namespace braid
