#include "tunnel/lane/flow_queue.h"

#include <algorithm>
#include <utility>

#include "inet/ecn.h"
#include "inet/frame.h"
#include "tunnel/wire/frames.h"

namespace braid {

namespace {
/// Flows looked at when the table is full and one must go. Ours: keeps a packet's work bounded.
constexpr int kEvictionTries = 64;
constexpr Duration kLeastTarget = 25ms;

size_t charge(const Packet& packet) {
  return std::max(packet.size(), FlowQueues::kMinCharge);
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
  QueuedPacket* hand = nullptr;

  bool pull() {
    hand = queues.takeHead(flow);
    return hand != nullptr;
  }
  Duration sojourn() const { return now - hand->enqueued; }
  size_t bytes() const { return flow.queuedBytes; }
  bool mark() {
    if (!hand->ecnCapable || !queues.markCe(hand->packet)) return false;
    ++flow.marks;
    return true;
  }
  void drop() { queues.drop(flow, hand, Drop::kAqm); }
};

FlowQueues::FlowQueues(const FlowQueueOptions& options, uint64_t seed, DropObserver* observer)
    : options_(options), observer_(observer), byKey_(0, FlowKeyHash(seed, ~seed)) {
  held_.reserve(kMaxHeld);
}

FlowQueues::~FlowQueues() = default;

std::optional<Drop> FlowQueues::enqueue(Packet packet, const FlowKey& key, bool reliable, bool ecnCapable,
                                        Time now, PacketHint hint) {
  Flow* flow = flowOf(key, reliable, hint.recoveryClass, now);
  if (!flow) return Drop::kFlowTableFull;
  if (!flow->head_ && now - flow->lastUse >= kBurstGap) flow->burstBytes = 0;
  if (!flow->head_ && now - flow->lastUse >= kBulkGap) flow->patience = {};
  flow->burstBytes += packet.size();
  flow->ended = hint.fin || (hint.push && flow->burstBytes <= kShortBurst) ||
                (!reliable && flow->burstBytes == packet.size());
  touch(*flow, now);
  QueuedPacket* entry;
  if (freeEntries_.empty()) {
    entry = &entries_.emplace_back();
  } else {
    entry = freeEntries_.back();
    freeEntries_.pop_back();
  }
  flow->queuedBytes += packet.size();
  flow->charged_ += charge(packet);
  charged_ += charge(packet);
  bytes_ += packet.size();
  ++packets_;
  entry->packet = std::move(packet);
  entry->enqueued = now;
  entry->ecnCapable = ecnCapable;
  entry->next = nullptr;
  (flow->tail_ ? flow->tail_->next : flow->head_) = entry;
  flow->tail_ = entry;
  activate(*flow);
  if (readyFlow_ == flow && !flow->hand_)
    readyFlow_ = nullptr;  // its packet goes before its turn without one
  while (charged_ > options_.queueBytes) {
    size_t before = packets_;
    dropFromFattest();
    if (packets_ == before) break;  // only the settled packet is left
  }
  return std::nullopt;
}

const Packet* FlowQueues::peek(Time now) {
  const Flow* flow = peekFlow(now);
  return flow ? &flow->hand_ : nullptr;
}

Flow* FlowQueues::peekFlow(Time now) {
  if (shown_ < held_.size()) return held_[shown_];
  return settle(now) && readyFlow_->hand_ ? readyFlow_ : nullptr;
}

bool FlowQueues::pass(Time now) {
  if (shown_ == held_.size()) {
    if (!peekFlow(now) || held_.size() == kMaxHeld) return false;
    Flow* flow = std::exchange(readyFlow_, nullptr);
    listOf(*flow).pop();
    flow->held_ = true;
    held_.push_back(flow);
  }
  ++shown_;
  return true;
}

// Each flow that takes turns sends as much as this one meanwhile, or what it has. Sparse ones go first.
size_t FlowQueues::drain(const Flow& flow) const {
  size_t own = flow.queuedBytes + flow.hand_.size();
  return flow.place_ == Flow::Place::kNew ? own : std::min(active_ * own, bytes_);
}

void FlowQueues::limitClasses(size_t count) {
  for (Flow& flow : table_) {
    if (flow.recoveryClass >= count) flow.recoveryClass = 0;
  }
}

Flow* FlowQueues::turn(Time now) {
  return shown_ == held_.size() && settle(now) && !readyFlow_->hand_ ? readyFlow_ : nullptr;
}

void FlowQueues::claim(Flow& flow) {
  claims_ += !flow.claims_;
  flow.claims_ = true;
  activate(flow);
}

void FlowQueues::endTurn(size_t bytes, bool again) {
  Flow* flow = std::exchange(readyFlow_, nullptr);
  flow->deficit_ -= static_cast<int64_t>(bytes);
  flow->claims_ = again;
  claims_ -= !again;
}

void FlowQueues::activate(Flow& flow) {
  if (flow.place_ != Flow::Place::kInactive) return;
  flow.deficit_ = kQuantum;
  flow.place_ = Flow::Place::kNew;
  ++active_;
  new_.push(&flow);
}

Packet FlowQueues::pop(Time now, Flow*& flow) {
  flow = peekFlow(now);
  if (!flow) return {};
  if (flow->held_) {
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(shown_));
    flow->held_ = false;
    listOf(*flow).pushFront(flow, readyFlow_);  // the rest of its turn
  } else {
    readyFlow_ = nullptr;
  }
  size_t size = flow->hand_.size();
  ++flow->packets;
  flow->bytes += size;
  bytes_ -= size;
  charged_ -= charge(flow->hand_);
  --packets_;
  if (!flow->head_) flow->patience.since = kNever;
  return std::move(flow->hand_);
}

void FlowQueues::onTimer(Time now) {
  while (oldest_ && oldest_->lastUse + options_.flowIdle <= now) {
    if (isEvictable(*oldest_)) {
      forget(*oldest_);
    } else {
      touch(*oldest_, now);
    }
  }
}

// RFC 8290 section 4.2.
bool FlowQueues::settle(Time now) {
  if (readyFlow_) return true;
  while (true) {
    ActiveList& list = new_.head ? new_ : old_;
    Flow* flow = list.head;
    if (!flow) return false;
    if (flow->deficit_ <= 0) {
      flow->deficit_ += kQuantum;
      old_.push(list.pop());
      flow->place_ = Flow::Place::kOld;
      continue;
    }
    Head head{*this, *flow, now};
    if (flow->codel_.dequeue(head, options_.codel, now)) {
      flow->hand_ = std::move(head.hand->packet);
      readyFlow_ = flow;
      flow->deficit_ -= static_cast<int64_t>(flow->hand_.size());
      release(head.hand);
      return true;
    }
    if (flow->claims_) {
      readyFlow_ = flow;
      return true;
    }
    list.pop();
    // An emptied new flow waits its turn as an old one, lest it come back as new before the others were
    // served.
    bool wasNew = flow->place_ == Flow::Place::kNew;
    flow->place_ = wasNew ? Flow::Place::kOld : Flow::Place::kInactive;
    if (wasNew)
      old_.push(flow);
    else
      --active_;
  }
}

Flow* FlowQueues::flowOf(const FlowKey& key, bool reliable, uint8_t recoveryClass, Time now) {
  auto found = byKey_.find(key);
  if (found != byKey_.end()) return found->second;
  Flow* flow = takeFree();
  if (!flow) flow = evictOldest();
  if (!flow) return nullptr;
  if (flow->reliable != reliable) std::swap(flow->nextDsn, flow->otherDsn_);
  flow->key = key;
  flow->reliable = reliable;
  flow->slot = static_cast<uint16_t>(reliable ? flow->index_ : kDatagramFlow + flow->index_);
  flow->packets = flow->bytes = flow->drops = flow->marks = flow->burstBytes = 0;
  flow->recoveryClass = recoveryClass;
  flow->codel_ = Codel();
  flow->patience = {};
  flow->place_ = Flow::Place::kInactive;
  byKey_.emplace(key, flow);
  touch(*flow, now);
  return flow;
}

Flow* FlowQueues::takeFree() {
  if (free_.empty()) {
    if (table_.size() >= std::min<size_t>(options_.maxFlows, kDatagramFlow)) return nullptr;
    Flow& flow = table_.emplace_back();
    flow.index_ = static_cast<uint16_t>(table_.size() - 1);
    return &flow;
  }
  Flow* flow = free_.back();
  free_.pop_back();
  return flow;
}

// The least recently used flow that may go, out of the first few.
Flow* FlowQueues::evictOldest() {
  Flow* flow = oldest_;
  for (int i = 0; flow && i < kEvictionTries; ++i, flow = flow->newer_) {
    if (!isEvictable(*flow)) continue;
    forget(*flow);
    return takeFree();
  }
  return nullptr;
}

bool FlowQueues::isEvictable(const Flow& flow) const {
  return flow.place_ == Flow::Place::kInactive && flow.unacked == 0 && readyFlow_ != &flow;
}

void FlowQueues::forget(Flow& flow) {
  byKey_.erase(flow.key);
  unlink(flow);
  flow.place_ = Flow::Place::kFree;
  free_.push_back(&flow);
}

void FlowQueues::touch(Flow& flow, Time now) {
  unlink(flow);
  flow.lastUse = now;
  flow.older_ = newest_;
  (newest_ ? newest_->newer_ : oldest_) = &flow;
  newest_ = &flow;
}

void FlowQueues::unlink(Flow& flow) {
  if (oldest_ != &flow && !flow.older_) return;  // in no list
  (flow.older_ ? flow.older_->newer_ : oldest_) = flow.newer_;
  (flow.newer_ ? flow.newer_->older_ : newest_) = flow.older_;
  flow.older_ = flow.newer_ = nullptr;
}

QueuedPacket* FlowQueues::takeHead(Flow& flow) {
  QueuedPacket* entry = flow.head_;
  if (!entry) return nullptr;
  flow.head_ = entry->next;
  if (!flow.head_) flow.tail_ = nullptr;
  flow.queuedBytes -= entry->packet.size();
  flow.charged_ -= charge(entry->packet);
  return entry;
}

void FlowQueues::drop(Flow& flow, QueuedPacket* entry, Drop cause) {
  ++drops_[static_cast<size_t>(cause)];
  ++flow.drops;
  if (observer_ && flow.reliable) observer_->onPacketDropped(entry->packet.view());
  bytes_ -= entry->packet.size();
  charged_ -= charge(entry->packet);
  --packets_;
  release(entry);
}

void FlowQueues::release(QueuedPacket* entry) {
  entry->packet.reset();
  freeEntries_.push_back(entry);
}

// RFC 8290 section 4.1: the head of the flow that holds most bytes. As there, up to kDropBatch packets or
// half its bytes.
void FlowQueues::dropFromFattest() {
  Flow* fattest = nullptr;
  auto compare = [&](Flow* flow) {
    if (flow->head_ && (!fattest || flow->charged_ > fattest->charged_)) fattest = flow;
  };
  for (const ActiveList* list : {&new_, &old_}) {
    for (Flow* flow = list->head; flow; flow = flow->nextActive_) compare(flow);
  }
  for (Flow* flow : held_) compare(flow);
  if (!fattest) return;
  size_t half = fattest->charged_ / 2;
  for (size_t n = 0; n < kDropBatch && fattest->head_; ++n) {
    drop(*fattest, takeHead(*fattest), Drop::kQueueFull);
    if (fattest->charged_ <= half) break;
  }
}

bool FlowQueues::markCe(Packet& packet) const {
  if (!options_.ethernet) return braid::markCe(packet.span());
  std::optional<Frame> frame = parseFrame(packet.view());
  return frame && frame->ip && braid::markCe(packet.span().subspan(frame->payloadOffset));
}

void FlowQueues::ActiveList::push(Flow* flow) {
  flow->nextActive_ = nullptr;
  (tail ? tail->nextActive_ : head) = flow;
  tail = flow;
}

void FlowQueues::ActiveList::pushFront(Flow* flow, const Flow* settled) {
  if (head && head == settled) {
    flow->nextActive_ = std::exchange(head->nextActive_, flow);
    if (tail == head) tail = flow;
    return;
  }
  flow->nextActive_ = std::exchange(head, flow);
  if (!tail) tail = flow;
}

Flow* FlowQueues::ActiveList::pop() {
  Flow* flow = head;
  head = flow->nextActive_;
  if (!head) tail = nullptr;
  flow->nextActive_ = nullptr;
  return flow;
}

}  // namespace braid
