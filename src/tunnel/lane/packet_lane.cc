#include "tunnel/lane/packet_lane.h"

#include <algorithm>
#include <utility>

#include "inet/ecn.h"
#include "inet/frame.h"

namespace braid {

namespace {
constexpr Duration kLeastTarget = 25ms;
}  // namespace

PacketLaneOptions packetLaneOptions(const LaneOptions& options) {
  PacketLaneOptions o;
  o.codel.target = queueTarget(options, 0s);
  o.codel.interval = options.codelInterval;
  o.queueBytes = options.queueBytes;
  o.ethernet = options.mode == LaneOptions::Mode::kTap;
  return o;
}

Duration queueTarget(const LaneOptions& options, Duration slowest) {
  if (options.codelTarget > 0s) return options.codelTarget;
  return std::min(std::max<Duration>(kLeastTarget, slowest * 3 / 2), options.codelInterval / 2);
}

Duration queueInterval(const LaneOptions& options, Duration slowest) {
  return std::max<Duration>(options.codelInterval, 2 * slowest + queueTarget(options, slowest));
}

struct PacketLane::Head {
  PacketLane& lane;
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

std::optional<Drop> PacketLane::enqueue(Packet packet, const FlowKey& key, bool reliable, bool ecnCapable,
                                        Time now, PacketHint hint) {
  Flow* flow = flows_.findOrAdd(*this, key, reliable, hint.recoveryClass, now);
  if (!flow) return Drop::kFlowTableFull;
  if (!flow->reliable() && flow->order.onPacket(packet.size(), hint.sign, now))
    InnerFlows::makeOrdered(*flow);
  bool waits = !flow->queue.empty();
  Duration quiet = now - flow->lastUse();
  if (!waits && quiet >= kBulkGap) flow->patience.restart();
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
  round_.onData(*flow, size);
  while (footprint_ > options_.queueBytes && dropFromFattest()) {
  }
  keep(packets_);
  return std::nullopt;
}

const Packet* PacketLane::prepare(Flow& flow, Time now) {
  Head head{*this, flow, now};
  if (!flow.queue.codel_.dequeue(head, options_.codel, now)) return nullptr;
  flow.queue.hand_ = std::move(head.packet->packet);
  release(head.packet);
  return &flow.queue.hand_;
}

Packet PacketLane::handOut(Flow& flow) {
  FlowQueue& queue = flow.queue;
  ++queue.counts_.packets;
  queue.counts_.bytes += queue.hand_.size();
  footprint_ -= queue.hand_.footprint();
  keep(--packets_);
  if (queue.empty()) flow.patience.onDrained();
  return std::move(queue.hand_);
}

QueuedPacket* PacketLane::pop(Flow& flow) {
  QueuedPacket* entry = flow.queue.pop();
  fat_.onChange(flow);
  return entry;
}

void PacketLane::drop(Flow& flow, QueuedPacket* entry, Drop cause) {
  countDrop(drops_, cause);
  ++flow.queue.counts_.drops;
  if (observer_ && flow.reliable()) observer_->onPacketDropped(entry->packet.view());
  footprint_ -= entry->packet.footprint();
  keep(--packets_);
  round_.onDropped(flow, entry->packet.size());
  release(entry);
}

void PacketLane::release(QueuedPacket* entry) {
  entry->packet.reset();
  entries_.give(entry);
}

// RFC 8290 section 4.1: the head of the flow that takes most memory, or nearly so. As there, up to kDropBatch packets or
// half of it. False when only packets in hands are left.
bool PacketLane::dropFromFattest() {
  Flow* fattest = fat_.fattest();
  if (!fattest) return false;
  size_t half = fattest->queue.footprint() / 2;
  for (size_t n = 0; n < kDropBatch && !fattest->queue.empty(); ++n) {
    drop(*fattest, pop(*fattest), Drop::kQueueFull);
    if (fattest->queue.footprint() <= half) break;
  }
  return true;
}

bool PacketLane::markCe(Packet& packet) const {
  if (!options_.ethernet) return braid::markCe(packet.span());
  std::optional<Frame> frame = parseFrame(packet.view());
  return frame && frame->ip && braid::markCe(packet.span().subspan(frame->payloadOffset));
}

}  // namespace braid
