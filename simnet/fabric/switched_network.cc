#include "simnet/fabric/switched_network.h"

#include <utility>

namespace braid::sim {

namespace {
uint64_t spread(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15;
  return x ^ (x >> 29);
}
}  // namespace

SwitchedNetwork::SwitchedNetwork(Timeline& timeline, const Topology& topology, uint64_t seed)
    : timeline_(timeline),
      topology_(topology),
      seed_(seed),
      routes_(topology.routes()),
      hostPort_(topology.hosts().size()),
      nicPort_(topology.hosts().size()),
      hostAt_(topology.nodes(), -1),
      sinks_(topology.hosts().size()) {
  for (size_t h = 0; h < sinks_.size(); ++h) hostAt_[topology.hosts()[h]] = static_cast<int64_t>(h);
  Random seeds(seed);
  const std::vector<Topology::Cable>& cables = topology_.cables();
  for (uint32_t c = 0; c < cables.size(); ++c) {
    ports_.emplace_back(cables[c].options, seeds.next());
    if (hostAt_[cables[c].to] >= 0) hostPort_[static_cast<size_t>(hostAt_[cables[c].to])] = c;
    if (hostAt_[cables[c].from] >= 0) nicPort_[static_cast<size_t>(hostAt_[cables[c].from])] = c;
  }
}

void SwitchedNetwork::send(size_t host, Parcel&& parcel) {
  push(nicPort_[host], std::move(parcel));
}

std::vector<size_t> SwitchedNetwork::way(size_t from, size_t to, uint64_t flow) const {
  std::vector<size_t> way{nicPort_[from]};
  size_t node = topology_.switchOf(from);
  while (hostAt_[node] < 0) {
    way.push_back(choose(node, static_cast<uint32_t>(to), flow));
    node = topology_.cables()[way.back()].to;
  }
  return way;
}

uint32_t SwitchedNetwork::choose(size_t node, uint32_t host, uint64_t flow) const {
  size_t goal = topology_.switchOf(host);
  if (goal == node) return hostPort_[host];
  const std::vector<uint32_t>& ways = routes_[node][goal];
  if (ways.size() == 1) return ways[0];
  return ways[spread(flow ^ spread(seed_ + node)) % ways.size()];
}

void SwitchedNetwork::push(uint32_t port, Parcel&& parcel) {
  bool idle = ports_[port].nextDelivery() == kNever;
  ++hops_;
  ports_[port].push(std::move(parcel), timeline_.now());
  if (idle) schedule(port);
}

void SwitchedNetwork::schedule(uint32_t port) {
  Time when = ports_[port].nextDelivery();
  if (when == kNever) return;
  events_.push({when, port});
  if (!running_) wakeAt(when);
}

void SwitchedNetwork::wakeAt(Time when) {
  if (when >= wake_) return;
  wake_ = when;
  timeline_.at(when, [this] { run(); });
}

void SwitchedNetwork::run() {
  Time now = timeline_.now();
  if (now < wake_) return;  // this timer was replaced by an earlier one
  wake_ = kNever;
  running_ = true;
  Parcel parcel;
  while (!events_.empty() && events_.top().when <= now) {
    uint32_t port = events_.top().port;
    events_.pop();
    bool arrived = ports_[port].pop(parcel);
    schedule(port);
    if (!arrived) continue;
    size_t node = topology_.cables()[port].to;
    int64_t host = hostAt_[node];
    if (host >= 0) {
      hash_ = spread(hash_ ^ static_cast<uint64_t>(now.time_since_epoch().count()) ^ parcel.flow) +
              parcel.bytes;
    }
    if (host < 0) {
      push(choose(node, parcel.host, parcel.flow), std::move(parcel));
    } else if (const Sink& sink =
                   sinks_[static_cast<size_t>(host)][static_cast<size_t>(parcel.lane)]) {
      sink(std::move(parcel));
    }
  }
  running_ = false;
  if (!events_.empty()) wakeAt(events_.top().when);
}

}  // namespace braid::sim
