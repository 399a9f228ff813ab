#include "tunnel/queue/packet_queue.h"

#include <algorithm>
#include <utility>

#include "inet/frame.h"
#include "inet/ip.h"

namespace braid {

namespace {
constexpr Duration kLeastTarget = 25ms;
}  // namespace

PacketQueuesOptions packetLaneOptions(const QueueOptions& options) {
  PacketQueuesOptions o;
  o.codel.target = queueTarget(options, 0s);
  o.codel.interval = options.codelInterval;
  o.queueBytes = options.queueBytes;
  o.ethernet = options.mode == QueueOptions::Mode::kTap;
  return o;
}

Duration queueTarget(const QueueOptions& options, Duration slowest) {
  if (options.codelTarget > 0s) return options.codelTarget;
  return std::min(std::max<Duration>(kLeastTarget, slowest * 3 / 2), options.codelInterval / 2);
}

Duration queueInterval(const QueueOptions& options, Duration slowest, Duration target) {
  return std::max<Duration>(options.codelInterval, 2 * slowest + target);
}

struct PacketQueues::Head {
  PacketQueues& lane;
  Flow& flow;
  Time now;
  QueuedPacket* packet = nullptr;

  bool pull() {
    packet = lane.pop(flow);
    return packet != nullptr;
  }
  Duration sojourn() const { return now - packet->enqueued; }
  size_t bytes() const { return flow.queue.bytes(); }
  bool mark() {
    if (!packet->ecnCapable || !lane.markCe(packet->packet)) return false;
    ++flow.queue.counts_.marks;
    return true;
  }
  void drop() { lane.drop(flow, packet, Drop::kAqm); }
};

std::optional<Drop> PacketQueues::enqueue(Packet packet, const FlowKey& key, bool reliable,
                                          bool ecnCapable, Time now, PacketHint hint) {
  Flow* flow = flows_.findOrAdd(*this, key, reliable, hint.recoveryClass, now);
  if (!flow) return Drop::kFlowTableFull;
  if (!flow->reliable() && flow->order.onPacket(packet.size(), hint.sign, now))
    InnerFlowTable::makeOrdered(*flow);
  bool waits = !flow->queue.empty();
  Duration quiet = now - flow->lastUse();
  size_t size = packet.size();
  flow->burst.onPacket(size, flow->delivery(), hint, quiet, waits);
  flows_.touch(*flow, now);
  footprint_ += packet.footprint();
  ++packets_;
  QueuedPacket* entry = entries_.take();
  entry->packet = std::move(packet);
  entry->enqueued = now;
  entry->ecnCapable = ecnCapable;
  flow->queue.push(*entry);
  fat_.onChange(*flow);
  drr_.onData(*flow, size);
  while (footprint_ > options_.queueBytes && dropFromFattest()) {
  }
  setUsed(packets_);
  return std::nullopt;
}

const Packet* PacketQueues::prepare(Flow& flow, Time now) {
  Head head{*this, flow, now};
  if (!flow.queue.codel_.dequeue(head, options_.codel, now)) return nullptr;
  flow.queue.hand_ = std::move(head.packet->packet);
  release(head.packet);
  return &flow.queue.hand_;
}

Packet PacketQueues::handOut(Flow& flow) {
  FlowQueue& queue = flow.queue;
  ++queue.counts_.packets;
  queue.counts_.bytes += queue.hand_.size();
  footprint_ -= queue.hand_.footprint();
  setUsed(--packets_);
  if (queue.empty()) flow.burst.onDrained();
  return std::move(queue.hand_);
}

QueuedPacket* PacketQueues::pop(Flow& flow) {
  QueuedPacket* entry = flow.queue.pop();
  fat_.onChange(flow);
  return entry;
}

void PacketQueues::drop(Flow& flow, QueuedPacket* entry, Drop cause) {
  countDrop(drops_, cause);
  ++flow.queue.counts_.drops;
  footprint_ -= entry->packet.footprint();
  setUsed(--packets_);
  drr_.onDropped(flow, entry->packet.size());
  if (events_ && flow.reliable())
    events_->push(PacketEvent::Kind::kDropped, std::move(entry->packet));
  release(entry);
}

void PacketQueues::release(QueuedPacket* entry) {
  entry->packet.reset();
  entries_.give(entry);
}

// Drops packets at the head of the queue that takes the most memory, or nearly so: up to kDropBatch
// packets or half of the queue (RFC 8290 section 4.1). False when only ready packets are left.
bool PacketQueues::dropFromFattest() {
  Flow* fattest = fat_.fattest();
  if (!fattest) return false;
  size_t half = fattest->queue.footprint() / 2;
  for (size_t n = 0; n < kDropBatch && !fattest->queue.empty(); ++n) {
    drop(*fattest, pop(*fattest), Drop::kQueueFull);
    if (fattest->queue.footprint() <= half) break;
  }
  return true;
}

bool PacketQueues::markCe(Packet& packet) const {
  if (!options_.ethernet) return braid::markCe(packet.span());
  std::optional<Frame> frame = parseFrame(packet.view());
  return frame && frame->ip && braid::markCe(packet.span().subspan(frame->payloadOffset));
}

}  // namespace braid
