#include "evaluation/racks/rack_tree.h"

#include <utility>

#include "base/random.h"
#include "inet/ip.h"

namespace braid::sim {

namespace {
constexpr int kTreeHops = 4;  // there and back
constexpr size_t kPacket = 1500;

LinkOptions linkOf(const RackTreeOptions& o) {
  return {.rateBitsPerSecond = o.rate,
          .delay = o.rtt / kTreeHops,
          .jitter = o.jitter,
          .queueBytes = size_t{1} << 30};
}
Duration timeOf(size_t bytes, double rate) {
  return fromSeconds(static_cast<double>(bytes) * 8 / rate);
}
}  // namespace

// ---- a link

void Hop::push(Bytes packet) {
  size_t size = packet.size();
  link_.push(std::move(packet), size, timeline_.now());
  wake();
}

void Hop::wake() {
  if (awake_ || link_.nextDelivery() == kNever) return;
  awake_ = true;
  timeline_.at(link_.nextDelivery(), [this] { take(); });
}

void Hop::take() {
  awake_ = false;
  while (std::optional<Bytes> packet = link_.pop(timeline_.now())) sink_(std::move(*packet));
  wake();
}

// ---- a host

RackHost::RackHost(RackTree& tree, std::string name, Address address, const LinkOptions& link,
                   uint64_t seed)
    : down(tree, link, seed, [this](const Bytes& p) { host.arrive(p); }),
      up(tree, link, seed + 1, [&tree](Bytes p) { tree.route(std::move(p)); }),
      host(tree, std::move(name), address, [this](Bytes p) { up.push(std::move(p)); }) {}

// ---- the tree

RackTree::RackTree(const RackTreeOptions& options, uint64_t seed)
    : Simulation(seed),
      options_(options),
      queue_(options.discipline, options.queue, timeOf(kPacket, options.rate), random().next(),
             options.threshold),
      wire_(*this, {.delay = options.rtt / kTreeHops}, random().next(),
            [this](const Bytes& packet) {
              hash_ = (hash_ ^ static_cast<uint64_t>(now().time_since_epoch().count())) *
                      0x9e3779b97f4a7c15;
              hash_ ^= packet.size();
              receiver_->host.arrive(packet);
            }) {
  auto host = [&](const std::string& name, const std::string& text, bool shim) {
    auto made =
        std::make_unique<RackHost>(*this, name, address(text), linkOf(options), random().next());
    // drawn with and without a shim, so that the same seed gives the same traffic
    uint64_t own = random().next();
    if (shim) made->host.addShim(options.shim, own);
    byAddress_[made->host.host(false)] = made.get();
    return made;
  };
  receiver_ = host("receiver", "10.0.0.1", options.receiverShim);
  for (size_t i = 0; i < options.senders; ++i) {
    std::string n = std::to_string(i + 1);
    senders_.push_back(host("sender" + n, "10.1.0." + n, options.senderShim));
  }
}

void RackTree::route(Bytes packet) {
  std::optional<InnerPacket> parsed = parseInnerPacket(packet);
  if (!parsed) return;
  if (parsed->dst != receiver_->host.host(false)) {
    auto to = byAddress_.find(parsed->dst);
    if (to != byAddress_.end()) to->second->down.push(std::move(packet));
    return;
  }
  queue_.push(std::move(packet), now());
  if (!busy_) transmit();
}

void RackTree::transmit() {
  std::optional<Bytes> packet = queue_.pop(now());
  busy_ = packet.has_value();
  if (!packet) return;
  Duration time = timeOf(packet->size(), options_.rate);
  after(time, [this, sent = std::move(*packet)]() mutable {
    ++carried_;
    wire_.push(std::move(sent));
    transmit();
  });
}

ShimCounters RackTree::senderShims() const {
  ShimCounters sum;
  for (const auto& host : senders_) {
    if (host->host.shim()) addCounters(sum, host->host.shim()->counters());
  }
  return sum;
}

void PortQueue::push(Bytes packet, Time now) {
  ++in_;
  bool kept = true;
  if (discipline_ == Discipline::kRedEcn && red_.hits(size(), emptySince_, now, random_))
    kept = markOrDrop(packet);
  if (discipline_ == Discipline::kDctcp && size() > threshold_ && braid::markCe(ByteSpan(packet)))
    ++marked_;
  if (kept && size() < limit_) return waiting_.push_back(std::move(packet));
  ++dropped_;
  if (!kept || discipline_ != Discipline::kDropRand) return;
  size_t victim = random_.below(size() + 1);
  if (victim == size()) return;
  waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(victim));
  waiting_.push_back(std::move(packet));
}

std::optional<Bytes> PortQueue::pop(Time now) {
  if (waiting_.empty()) return std::nullopt;
  Bytes packet = std::move(waiting_.front());
  waiting_.pop_front();
  if (waiting_.empty()) emptySince_ = now;
  return packet;
}

bool PortQueue::markOrDrop(Bytes& packet) {
  bool capable = braid::markCe(ByteSpan(packet));
  marked_ += capable;
  return capable;
}

}  // namespace braid::sim
