#include "sim/rack_tree.h"

#include <utility>

#include "base/random.h"

namespace braid::sim {

namespace {
constexpr int kTreeHops = 4;  // there and back
constexpr size_t kPacket = 1500;
constexpr size_t kTreePool = 4096;
/// A host has one flow a round: a table for the default's thousands would only take memory.
constexpr size_t kFlows = 4096;

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

RackHost::RackHost(RackTree& tree, std::string name, Address address, const LinkOptions& link, uint64_t seed)
    : down(tree, link, seed, [this](const Bytes& p) { arrive(p); }),
      timeline_(tree),
      name_(std::move(name)),
      address_(address),
      up_(tree, link, seed + 1, [&tree](Bytes p) { tree.route(std::move(p)); }) {}

void RackHost::listen(uint8_t protocol, uint16_t port, Handler handler) {
  handlers_[{protocol, port}] = std::move(handler);
}

void RackHost::addShim(AckShimOptions options, uint64_t seed) {
  options.maxFlows = options.maxHalfOpen = kFlows;
  pool_ = std::make_unique<PacketPool>(kPacket + 500, kTreePool);
  shim_ = std::make_unique<AckShim>(options, *pool_, nullptr, AckShim::Seeds{seed, Random(seed).next()});
}

void RackHost::send(ByteView packet) {
  if (shim_) {
    std::optional<InnerPacket> parsed = parseInnerPacket(packet);
    if (parsed) shim_->onFromHost(packet, *parsed, timeline_.now());
  }
  up_.push({packet.begin(), packet.end()});
  pollShim();
}

void RackHost::arrive(ByteView packet) {
  std::optional<InnerPacket> parsed = parseInnerPacket(packet);
  if (!parsed) return;
  auto verdict = AckShim::Verdict::kPass;
  if (shim_) verdict = shim_->onToHost(packet, *parsed, timeline_.now());
  if (verdict == AckShim::Verdict::kPass) deliver(packet);
  pollShim();
}

void RackHost::deliver(ByteView packet) {
  std::optional<InnerPacket> parsed = parseInnerPacket(packet);
  if (!parsed) return;
  auto handler = handlers_.find({parsed->protocol, parsed->dport});
  if (handler != handlers_.end()) handler->second(packet, *parsed);
}

// What the shim says reaches the host a moment later: the host may be in the middle of sending.
void RackHost::pollShim() {
  if (!shim_) return;
  while (Packet packet = shim_->pollToHost()) {
    ByteView v = packet.view();
    timeline_.after(Duration(0), [this, bytes = Bytes(v.begin(), v.end())] { deliver(bytes); });
  }
  while (Packet packet = shim_->pollToPeer()) up_.push({packet.view().begin(), packet.view().end()});
  armShim();
}

void RackHost::armShim() {
  Time next = shim_->nextDeadline();
  if (next >= shimAt_) return;
  shimAt_ = next;
  timeline_.at(next, [this, next] {
    if (shimAt_ != next) return;  // an earlier one was armed
    shimAt_ = kNever;
    shim_->onTimer(timeline_.now());
    pollShim();
  });
}

// ---- the tree

RackTree::RackTree(const RackTreeOptions& options, uint64_t seed)
    : Timeline(seed),
      options_(options),
      queue_(options.discipline, options.queue, timeOf(kPacket, options.rate), random().next(),
             options.threshold),
      wire_(*this, {.delay = options.rtt / kTreeHops}, random().next(), [this](const Bytes& packet) {
        hash_ = (hash_ ^ static_cast<uint64_t>(now().time_since_epoch().count())) * 0x9e3779b97f4a7c15;
        hash_ ^= packet.size();
        receiver_->arrive(packet);
      }) {
  auto host = [&](const std::string& name, const std::string& text, bool shim) {
    auto made = std::make_unique<RackHost>(*this, name, address(text), linkOf(options), random().next());
    uint64_t own = random().next();  // drawn with and without: the same seed means the same traffic
    if (shim) made->addShim(options.shim, own);
    byAddress_[made->host(false)] = made.get();
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
  if (parsed->dst != receiver_->host(false)) {
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

void RackTree::run(Duration d) {
  runUntil(now_ + d);
}

ShimCounters RackTree::senderShims() const {
  ShimCounters sum;
  for (const auto& host : senders_) {
    if (host->shim()) addCounters(sum, host->shim()->counters());
  }
  return sum;
}

}  // namespace braid::sim
