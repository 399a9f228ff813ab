#include "tunnel/session/session.h"

#include <algorithm>

namespace braid {

namespace {
/// Keys of the epoch before open reordered packets for so long until an RTT is known.
constexpr Duration kKeepKeys = 3s;

KeyLimits keyLimits(const SessionOptions& options) {
  KeyLimits limits;
  limits.rekeyPackets = options.rekeyPackets;
  limits.rekeyAfter = options.rekeyAfter;
  limits.keepPrevious = kKeepKeys;
  return limits;
}

DecoderOptions decoderOptions(const SessionOptions& options, const PacketPool& pool) {
  DecoderOptions decoder;
  decoder.symbolCapacity = pool.payload();
  decoder.packets = options.decodeBuffer;
  return decoder;
}
}  // namespace

Session::Session(const SessionSecrets& secrets, KeySchedule::Role role, const SessionOptions& options,
                 PacketPool& pool, SessionOwner& owner, Random random, Time now)
    : id_(secrets.sessionId),
      pin_(secrets.peer),
      role_(role),
      options_(options),
      pool_(pool),
      owner_(owner),
      random_(random),
      keys_(secrets, role, keyLimits(options), now),
      sealer_(id_, keys_),
      ledger_(options.repairTime, &owner),
      flows_(flowQueueOptions(options), random_.next(), &owner),
      resequencer_(resequencerOptions(options)),
      scheduler_(makePathScheduler(options.scheduler)),
      schedulerName_(options.scheduler),
      decoder_(decoderOptions(options, pool)),
      start_(now),
      lastHeard_(now),
      unusableSince_(now),
      innerMtu_(MtuDiscovery::kBaseDatagram - kDatagramOverhead) {
  recovered_.reserve(kMaxRecovered);
  setPolicies();
}

Session::~Session() {
  while (!duplicates_.empty()) {
    ledger_.forget(duplicates_.front());
    duplicates_.popFront();
  }
  // Subflows hand their data back to the ledger, and the ledger to the flows.
  subflows_.clear();
  ledger_.giveUpAll(Drop::kPeerDown);
  DropCounts counts = drops();
  for (size_t i = 0; i < kDropCount; ++i) owner_.onDrop(static_cast<Drop>(i), counts[i]);
}

void Session::setTunables() {
  if (schedulerName_ != options_.scheduler) {
    scheduler_ = makePathScheduler(options_.scheduler);
    schedulerName_ = options_.scheduler;
  }
  setPolicies();
  ledger_.setRepairTime(options_.repairTime);
  flows_.setOptions(flowQueueOptions(options_));
  resequencer_.setOptions(resequencerOptions(options_));
  keys_.setRekey(options_.rekeyPackets, options_.rekeyAfter);
}

bool Session::openSubflow(const std::string& name, const std::string& uplink, const Route& route, Time now) {
  if (std::optional<size_t> position = subflows_.named(name)) {
    Subflow& s = subflows_[*position];
    bool same = s.route().socket == route.socket && s.route().remote == route.remote;  // local: it has learnt
    if (s.state() == Subflow::State::kClosed || !same) {
      s.open(route, now);
      controls_.announce(SubflowStatusFrame{s.id(), controls_.takeSequence(), true});
    }
    return true;
  }
  if (subflows_.size() >= std::min(options_.maxSubflows, SubflowSet::kMost)) return false;
  auto id = static_cast<uint8_t>(subflows_.size());
  subflows_.add(std::make_unique<Subflow>(id, uplink, route, true, options_, *this, ledger_, controllers_,
                                          random_, now),
                name);
  marks_.emplace_back();
  wishes_.push_back({id, 0, {}});
  return true;
}

void Session::closeSubflow(const std::string& name, Time now) {
  std::optional<size_t> position = subflows_.named(name);
  if (position && subflows_[*position].state() != Subflow::State::kClosed) {
    Subflow& s = subflows_[*position];
    s.close(now);
    controls_.announce(SubflowStatusFrame{s.id(), controls_.takeSequence(), false});
  }
  refresh(now);
}

std::optional<Drop> Session::onInnerPacket(Packet packet, const FlowKey& key, bool reliable, bool ecnCapable,
                                           Time now, PacketHint hint) {
  return flows_.enqueue(std::move(packet), key, reliable, ecnCapable, now, hint);
}

void Session::onSendError(const Route& route, Time now) {
  for (Subflow* s : subflows_) {
    if (s->route() == route) s->onSendError(now);
  }
  refresh(now);
}

void Session::onTooBig(const Route& route, size_t size, Time now) {
  for (Subflow* s : subflows_) {
    if (s->route() == route) s->onTooBig(size, now);
  }
  refresh(now);
}

void Session::onTimer(Time now) {
  for (Subflow* s : subflows_) {
    s->onTimer(now);
    if (keepalive_ > 0ns && s->usable() && now - s->lastSentAt() >= keepalive_) s->requestPing();
  }
  if (meteredWait_) setSaturated(now);
  keys_.onTimer(now);
  flows_.onTimer(now);
  resequencer_.onTimer(now);
  deliverInOrder();
  refresh(now);
}

Time Session::nextDeadline(Time now) const {
  Time next = std::min({keys_.deadline(), flows_.nextDeadline(), resequencer_.nextDeadline()});
  bool waiting = flows_.packets() + flows_.claims() + ledger_.queued() > 0 || !duplicates_.empty();
  for (const Subflow* s : subflows_) {
    next = std::min(next, s->nextDeadline());
    if (s->state() == Subflow::State::kClosed && anyUsable()) next = std::min(next, s->acks().deadline());
    if (keepalive_ > 0ns && s->usable()) next = std::min(next, s->lastSentAt() + keepalive_);
    if (waiting && s->opensAt(true) > now) next = std::min(next, s->opensAt(true));
    if (ledger_.queued() > 0 && s->opensForRepairAt() > now) next = std::min(next, s->opensForRepairAt());
  }
  if (ledger_.queued() > 0) next = std::min(next, std::max(now, repairAt_));
  if (flows_.packets() == 0 && ledger_.live() > 0) next = std::min(next, std::max(now, protectAt_));
  if (flows_.held() > 0) next = std::min(next, std::max(now, patienceEnd_));
  if (meteredWait_) next = std::min(next, saturation_.nextDeadline(now));
  if (unusableSince_ != kNever && waiting)
    next = std::min(next, std::max(now, unusableSince_ + options_.repairTime));
  return next;
}

// What follows from the states of the subflows.
void Session::refresh(Time now) {
  if (dutiesDue_) updateDuties(now);
  if (anyUsable()) {
    unusableSince_ = kNever;
    updateInnerMtu();
    return;
  }
  if (unusableSince_ == kNever) unusableSince_ = now;
  if (now - unusableSince_ > options_.repairTime) clearQueues(now);
}

// What every path carries; but a path below IPv6's minimum carries small packets only, unless every path is
// so. A path that still searches does not count: it may yet turn out to carry more. Nor does one that rests
// or takes only what is too much for others: a packet that fits nowhere else would wait for it.
void Session::updateInnerMtu() {
  size_t smallest = SIZE_MAX;
  size_t largest = 0;
  for (const Subflow* s : subflows_) {
    if (!s->usable() || s->duty() != PathDuty::kAll || s->searchesMtu()) continue;
    smallest = std::min(smallest, s->mtu());
    largest = std::max(largest, s->mtu());
  }
  if (largest == 0) return;
  size_t mtu = std::max(smallest, std::min(largest, MtuDiscovery::kBaseDatagram)) - kDatagramOverhead;
  if (mtu == innerMtu_) return;
  innerMtu_ = mtu;
  event({Event::Kind::kInnerMtu, {}, "inner MTU is now " + std::to_string(mtu)});
}

DropCounts Session::drops() const {
  DropCounts sum{};
  for (size_t i = 0; i < kDropCount; ++i)
    sum[i] = ledger_.drops()[i] + flows_.drops()[i] + resequencer_.drops()[i];
  return sum;
}

// All uplinks have been gone for the repair time: nobody waits for these packets any more.
void Session::clearQueues(Time now) {
  ledger_.giveUpAll(Drop::kPeerDown);
  if (ledger_.live() > 0) {
    for (Subflow* s : subflows_) s->giveUpData(Drop::kPeerDown);
  }
  Flow* flow = nullptr;
  uint64_t dropped = 0;
  flows_.rewind();
  while (flows_.packets() + flows_.claims() > 0) {
    if (flows_.turn(now)) {
      flows_.endTurn(0, false);
    } else if (flows_.pop(now, flow)) {
      ++dropped;
    } else {
      break;
    }
  }
  if (dropped > 0) owner_.onDrop(Drop::kPeerDown, dropped);
}

void Session::close() {
  closing_ = true;
  closesLeft_ = subflows_.size();
}

void Session::onControlFate(Subflow& subflow, uint64_t pn, bool delivered) {
  controls_.onFate(subflow.id(), pn, delivered);
}

void Session::onStateChange(Subflow& s) {
  dutiesDue_ = true;
  switch (s.state()) {
    case Subflow::State::kValidating:
      break;
    case Subflow::State::kActive:
      event(Event::Kind::kSubflowUp, s, s.preference().use == PathUse::kNormal ? "is in use" : "is usable");
      tellPreference(s);
      break;
    case Subflow::State::kSuspect:
      event(Event::Kind::kSubflowSuspect, s, "is silent, its packets are moved");
      break;
    case Subflow::State::kClosed:
      event(Event::Kind::kSubflowFailed, s, "lost its uplink");
      break;
  }
}

void Session::onAddressChange(Subflow& s) {
  event({Event::Kind::kAddressChanged,
         {},
         "subflow " + std::to_string(s.id()) + " is now at " + s.route().remote.toString()});
}

void Session::event(Event event) {
  owner_.onEvent(std::move(event));
}

void Session::event(Event::Kind kind, const Subflow& s, const char* what) {
  std::string name = s.uplink().empty() ? "subflow " + std::to_string(s.id()) : s.uplink();
  event({kind, {}, name + " (" + s.route().remote.toString() + ") " + what});
}

void Session::fill(SessionStatus& status, Time now) const {
  status.age = now - start_;
  status.keyEpoch = keys_.epoch();
  status.cipher = aeadName(keys_.aead());
  status.innerMtu = innerMtu_;
  status.innerSentPackets = counts_.sentPackets;
  status.innerSentBytes = counts_.sentBytes;
  status.innerReceivedPackets = counts_.receivedPackets;
  status.innerReceivedBytes = counts_.receivedBytes;
  status.retransmitted = counts_.repaired;
  status.heldPackets = resequencer_.heldPackets();
  status.heldBytes = resequencer_.heldBytes();
  status.suppressions = controllers_.episodes();
  status.recovery = options_.recovery;
  status.blocks = counts_.blocks;
  status.paritiesReceived = counts_.parities;
  status.blocksDecoded = decoder_.counts().blocksDecoded;
  status.packetsDecoded = decoder_.counts().restored;
  status.blocksEvicted = decoder_.counts().evicted;
  for (const Subflow* s : subflows_) status.subflows.push_back(s->status(now));
  flows_.forEachFlow([&](const Flow& flow) {
    FlowStatus f;
    f.name = flow.key().toString();
    f.packets = flow.queue.counts().packets;
    f.bytes = flow.queue.counts().bytes;
    f.queuedBytes = flow.queue.bytes();
    f.drops = flow.queue.counts().drops;
    f.marks = flow.queue.counts().marks;
    f.unacked = flow.sent.unacked();
    status.flows.push_back(std::move(f));
  });
}

}  // namespace braid
