#include "tunnel/lane/flow_queues.h"

#include <algorithm>
#include <utility>

#include "inet/ecn.h"
#include "inet/frame.h"

namespace braid {

namespace {
constexpr Duration kLeastTarget = 25ms;

InnerFlowOptions innerFlowOptions(const FlowQueueOptions& options) {
  return {.maxFlows = options.maxFlows, .idle = options.flowIdle};
}
}  // namespace

FlowQueueOptions flowQueueOptions(const LaneOptions& options) {
  FlowQueueOptions o;
  o.codel.target = queueTarget(options, 0s);
  o.codel.interval = options.codelInterval;
  o.queueBytes = options.queueBytes;
  o.maxFlows = options.maxFlows;
  o.flowIdle = options.flowIdle;
  o.ethernet = options.mode == LaneOptions::Mode::kTap;
  return o;
}

Duration queueTarget(const LaneOptions& options, Duration slowest) {
  if (options.codelTarget > 0s) return options.codelTarget;
  return std::min(std::max<Duration>(kLeastTarget, slowest * 3 / 2), options.codelInterval / 2);
}

struct FlowQueues::Head {
  FlowQueues& queues;
  Flow& flow;
  Time now;
  QueuedPacket* packet = nullptr;

  bool pull() {
    packet = flow.queue.pop();
    return packet != nullptr;
  }
  Duration sojourn() const { return now - packet->enqueued; }
  size_t bytes() const { return flow.queue.bytes(); }
  bool mark() {
    if (!packet->ecnCapable || !queues.markCe(packet->packet)) return false;
    ++flow.queue.counts_.marks;
    return true;
  }
  void drop() { queues.drop(flow, packet, Drop::kAqm); }
};

FlowQueues::FlowQueues(const FlowQueueOptions& options, uint64_t seed, DropObserver* observer)
    : options_(options), observer_(observer), flows_(*this, innerFlowOptions(options), seed) {}

FlowQueues::~FlowQueues() = default;

void FlowQueues::setOptions(const FlowQueueOptions& options) {
  options_ = options;
  flows_.setOptions(innerFlowOptions(options));
}

std::optional<Drop> FlowQueues::enqueue(Packet packet, const FlowKey& key, bool reliable, bool ecnCapable,
                                        Time now, PacketHint hint) {
  Flow* flow = flows_.findOrAdd(key, reliable, hint.recoveryClass, now);
  if (!flow) return Drop::kFlowTableFull;
  bool waits = !flow->queue.empty();
  Duration quiet = now - flow->lastUse();
  if (!waits && quiet >= kBulkGap) flow->patience.restart();
  flow->burst.onPacket(packet.size(), reliable, hint, quiet, waits);
  flows_.touch(*flow, now);
  charged_ += FlowQueue::charge(packet);
  bytes_ += packet.size();
  ++packets_;
  QueuedPacket* entry = entries_.take();
  entry->packet = std::move(packet);
  entry->enqueued = now;
  entry->ecnCapable = ecnCapable;
  flow->queue.push(*entry);
  round_.onData(*flow);
  while (charged_ > options_.queueBytes) {
    size_t before = packets_;
    dropFromFattest();
    if (packets_ == before) break;  // only packets in hands are left
  }
  return std::nullopt;
}

const Packet* FlowQueues::peek(Time now) {
  const Flow* flow = peekFlow(now);
  return flow ? &flow->queue.hand() : nullptr;
}

Flow* FlowQueues::peekFlow(Time now) {
  Offer offer = walk_.offer(now);
  return offer.isClaim ? nullptr : offer.flow;
}

Flow* FlowQueues::turn(Time now) {
  Offer offer = walk_.offer(now);
  return offer.isClaim ? offer.flow : nullptr;
}

// Each flow that takes turns sends as much as this one meanwhile, or what it has. Sparse ones go first.
size_t FlowQueues::drain(const Flow& flow) const {
  size_t own = flow.queue.waiting();
  return flow.isSparse() ? own : std::min(round_.seated() * own, bytes_);
}

Packet FlowQueues::pop(Time now, Flow*& flow) {
  flow = peekFlow(now);
  if (!flow) return {};
  FlowQueue& queue = flow->queue;
  size_t size = queue.hand_.size();
  walk_.take(size);
  ++queue.counts_.packets;
  queue.counts_.bytes += size;
  bytes_ -= size;
  charged_ -= FlowQueue::charge(queue.hand_);
  --packets_;
  if (queue.empty()) flow->patience.onDrained();
  return std::move(queue.hand_);
}

bool FlowQueues::prepare(Flow& flow, Time now) {
  Head head{*this, flow, now};
  if (!flow.queue.codel_.dequeue(head, options_.codel, now)) return false;
  flow.queue.hand_ = std::move(head.packet->packet);
  release(head.packet);
  return true;
}

void FlowQueues::drop(Flow& flow, QueuedPacket* entry, Drop cause) {
  ++drops_[static_cast<size_t>(cause)];
  ++flow.queue.counts_.drops;
  if (observer_ && flow.reliable()) observer_->onPacketDropped(entry->packet.view());
  bytes_ -= entry->packet.size();
  charged_ -= FlowQueue::charge(entry->packet);
  --packets_;
  release(entry);
}

void FlowQueues::release(QueuedPacket* entry) {
  entry->packet.reset();
  entries_.give(entry);
}

// RFC 8290 section 4.1: the head of the flow that holds most bytes. As there, up to kDropBatch packets or
// half its bytes.
void FlowQueues::dropFromFattest() {
  Flow* fattest = nullptr;
  round_.forEachSeated([&](Flow& flow) {
    if (flow.queue.empty()) return;
    if (!fattest || flow.queue.charged() > fattest->queue.charged()) fattest = &flow;
  });
  if (!fattest) return;
  size_t half = fattest->queue.charged() / 2;
  for (size_t n = 0; n < kDropBatch && !fattest->queue.empty(); ++n) {
    drop(*fattest, fattest->queue.pop(), Drop::kQueueFull);
    if (fattest->queue.charged() <= half) break;
  }
}

bool FlowQueues::markCe(Packet& packet) const {
  if (!options_.ethernet) return braid::markCe(packet.span());
  std::optional<Frame> frame = parseFrame(packet.view());
  return frame && frame->ip && braid::markCe(packet.span().subspan(frame->payloadOffset));
}

}  // namespace braid
