#include "tunnel/session/session.h"

#include <algorithm>
#include <utility>

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

PathDuties::Side sideOf(KeySchedule::Role role) {
  return role == KeySchedule::Role::kInitiator ? PathDuties::Side::kInitiator : PathDuties::Side::kResponder;
}
}  // namespace

Session::Session(const SessionSecrets& secrets, KeySchedule::Role role, const SessionOptions& options,
                 PacketPool& pool, SessionOwner& owner, Random random, Time now)
    : id_(secrets.sessionId),
      pin_(secrets.peer),
      role_(role),
      options_(options),
      owner_(owner),
      random_(random),
      keys_(secrets, role, keyLimits(options), now),
      sealer_(id_, keys_),
      trace_(options.trace, id_),
      ledger_(options.repairTime, &owner),
      flows_(flowQueueOptions(options), random_.next(), &owner),
      duties_(sideOf(role), options.maxOuterMtu, subflows_, controls_, owner_),
      watch_(subflows_, controls_, duties_, owner_, trace_),
      protector_({options, options.recoveryOptions, subflows_, ledger_, pool, sealer_, trace_}),
      receiver_(options, pool.payload(), subflows_, trace_),
      outbound_({options, pool, sealer_, subflows_, controls_, duties_, ledger_, flows_, protector_,
                 receiver_, owner_}),
      inbound_({options, pool, sealer_, subflows_, controls_, duties_, ledger_, flows_, protector_, receiver_,
                owner_},
               watch_),
      start_(now),
      unusableSince_(now),
      innerMtu_(MtuDiscovery::kBaseDatagram - kDatagramOverhead) {
  protector_.setPolicies(random_);
  flows_.limitClasses(protector_.policies().size());
}

Session::~Session() {
  protector_.clear();
  // Subflows hand their data back to the ledger, and the ledger to the flows.
  subflows_.clear();
  ledger_.giveUpAll(Drop::kPeerDown);
  DropCounts counts = drops();
  for (size_t i = 0; i < kDropCount; ++i) owner_.onDrop(static_cast<Drop>(i), counts[i]);
}

void Session::setTunables() {
  outbound_.setTunables();
  protector_.setPolicies(random_);
  flows_.limitClasses(protector_.policies().size());
  ledger_.setRepairTime(options_.repairTime);
  flows_.setOptions(flowQueueOptions(options_));
  inbound_.setTunables();
  keys_.setRekey(options_.rekeyPackets, options_.rekeyAfter);
}

// ---- subflows

bool Session::openSubflow(const std::string& name, const std::string& uplink, const Route& route, Time now) {
  if (std::optional<size_t> position = subflows_.named(name)) {
    Subflow& s = subflows_[*position];
    bool same = s.route().socket == route.socket && s.route().remote == route.remote;  // local: it has learnt
    if (s.state() == Subflow::State::kClosed || !same) {
      s.open(route, now);
      watch_.settle(now);
      controls_.announce(SubflowStatusFrame{s.id(), controls_.takeSequence(), true});
    }
    return true;
  }
  if (subflows_.size() >= std::min(options_.maxSubflows, SubflowSet::kMost)) return false;
  addSubflow(static_cast<uint8_t>(subflows_.size()), name, uplink, route, now);
  return true;
}

// Only the initiator makes subflows; the responder learns of one from its first packet.
Subflow* Session::acceptSubflow(uint8_t id, const Route& from, Time now) {
  if (role_ == KeySchedule::Role::kInitiator || subflows_.size() >= options_.maxSubflows) return nullptr;
  return &addSubflow(id, "", "", from, now);
}

Subflow& Session::addSubflow(uint8_t id, const std::string& name, const std::string& uplink,
                             const Route& route, Time now) {
  bool trusted = role_ == KeySchedule::Role::kInitiator;  // then our configuration names the address
  return subflows_.add(std::make_unique<Subflow>(id, uplink, route, trusted, options_, watch_.events(),
                                                 ledger_, controllers_, random_, now),
                       name);
}

void Session::closeSubflow(const std::string& name, Time now) {
  std::optional<size_t> position = subflows_.named(name);
  if (position && subflows_[*position].state() != Subflow::State::kClosed) {
    Subflow& s = subflows_[*position];
    s.close(now);
    watch_.settle(now);
    controls_.announce(SubflowStatusFrame{s.id(), controls_.takeSequence(), false});
  }
  refresh(now);
}

void Session::setPreference(const std::string& name, const PathPreference& own, const PathPreference& peers,
                            std::shared_ptr<Pacer> ceiling, Time now) {
  std::optional<size_t> position = subflows_.named(name);
  if (!position) return;
  duties_.setPreference(subflows_[*position], own, peers, std::move(ceiling));
  refresh(now);
}

// ---- what arrives

std::optional<Drop> Session::onDatagram(const DatagramHeader& header, const Route& from, Ecn ecn,
                                        Packet datagram, Time now) {
  size_t size = datagram.size();
  Subflow* subflow = subflows_.find(header.subflow);
  uint64_t pn = expandPacketNumber(header.packetNumber, subflow ? subflow->receiver().expected() : 0);
  if (subflow && subflow->receiver().isReplay(pn)) return Drop::kReplay;

  unsigned epoch = keys_.epoch();
  ByteView aad = datagram.view().first(kHeaderSize);
  if (!keys_.open(header.epoch, header.subflow, pn, aad, datagram.span().subspan(kHeaderSize), now)) {
    if (keys_.spent()) over_ = true;
    return Drop::kBadSeal;
  }
  if (keys_.epoch() != epoch) owner_.onEvent({Event::Kind::kRekeyed, {}, "the peer changed keys"});
  if (!subflow && !(subflow = acceptSubflow(header.subflow, from, now))) return Drop::kUnknownSubflow;
  heardAt_ = now;

  datagram.trimFront(kHeaderSize);
  datagram.setSize(datagram.size() - kTagSize);
  bool good = inbound_.onDatagram(*subflow, std::move(datagram), {pn, ecn, size, from, now});
  if (inbound_.isClosed()) over_ = true;
  refresh(now);
  if (!good) return Drop::kBadFrame;
  return std::nullopt;
}

bool Session::onSendError(const Route& route, Time now) {
  bool ours = false;
  for (Subflow* s : subflows_) {
    if (s->route() != route) continue;
    s->onSendError(now);
    ours = true;
  }
  watch_.settle(now);
  refresh(now);
  return ours;
}

bool Session::onTooBig(const Route& route, size_t size, Time now) {
  bool ours = false;
  for (Subflow* s : subflows_) {
    if (s->route() != route) continue;
    s->sender().mtu().onTooBig(size, now);
    ours = true;
  }
  refresh(now);
  return ours;
}

// ---- time

void Session::onTimer(Time now) {
  for (Subflow* s : subflows_) {
    s->onTimer(now);
    if (keepalive_ > 0ns && s->usable() && now - s->sender().lastSentAt() >= keepalive_) s->requestPing();
  }
  watch_.settle(now);
  duties_.onTimer(now);
  keys_.onTimer(now);
  flows_.onTimer(now);
  inbound_.onTimer(now);
  refresh(now);
}

Time Session::nextDeadline(Time now) const {
  Time next = std::min({keys_.deadline(), flows_.nextDeadline(), inbound_.nextDeadline(),
                        outbound_.nextDeadline(now), duties_.nextDeadline(now)});
  bool usable = anyUsable();
  for (const Subflow* s : subflows_) {
    next = std::min(next, s->nextDeadline());
    if (s->state() == Subflow::State::kClosed && usable)
      next = std::min(next, s->receiver().acks().deadline());
    if (keepalive_ > 0ns && s->usable()) next = std::min(next, s->sender().lastSentAt() + keepalive_);
  }
  if (unusableSince_ != kNever && outbound_.hasWaiting())
    next = std::min(next, std::max(now, unusableSince_ + options_.repairTime));
  return next;
}

// What follows from the states of the subflows.
void Session::refresh(Time now) {
  duties_.update(now);
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
    if (!s->usable() || s->gate().duty() != PathDuty::kAll || s->mtu().searching()) continue;
    smallest = std::min(smallest, s->mtu().current());
    largest = std::max(largest, s->mtu().current());
  }
  if (largest == 0) return;
  size_t mtu = std::max(smallest, std::min(largest, MtuDiscovery::kBaseDatagram)) - kDatagramOverhead;
  if (mtu == innerMtu_) return;
  innerMtu_ = mtu;
  owner_.onEvent({Event::Kind::kInnerMtu, {}, "inner MTU is now " + std::to_string(mtu)});
}

// All uplinks have been gone for the repair time: nobody waits for these packets any more.
void Session::clearQueues(Time now) {
  ledger_.giveUpAll(Drop::kPeerDown);
  if (ledger_.live() > 0) {
    for (Subflow* s : subflows_) s->sender().giveUpData(Drop::kPeerDown);
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

// ---- what leaves

bool Session::pollDatagram(Datagram& out, Time now) {
  if (over_ && !closesLeft_) return false;
  unsigned epoch = keys_.epoch();
  bool sent = closesLeft_ ? outbound_.pollClose(*closesLeft_, out, now) : outbound_.poll(out, now);
  if (keys_.epoch() != epoch) owner_.onEvent({Event::Kind::kRekeyed, {}, "new keys"});
  if (sealer_.failed()) over_ = true;  // a new session takes over
  return sent;
}

// ---- for the operator

DropCounts Session::drops() const {
  DropCounts sum{};
  for (size_t i = 0; i < kDropCount; ++i)
    sum[i] = ledger_.drops()[i] + flows_.drops()[i] + inbound_.drops()[i];
  return sum;
}

void Session::fill(SessionStatus& status, Time now) const {
  status.age = now - start_;
  status.keyEpoch = keys_.epoch();
  status.cipher = aeadName(keys_.aead());
  status.innerMtu = innerMtu_;
  outbound_.fill(status);
  inbound_.fill(status);
  status.suppressions = controllers_.episodes();
  status.recovery = options_.recovery;
  status.blocks = protector_.blocks();
  status.paritiesReceived = receiver_.parities();
  status.blocksDecoded = receiver_.counts().blocksDecoded;
  status.packetsDecoded = receiver_.counts().restored;
  status.blocksEvicted = receiver_.counts().evicted;
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
