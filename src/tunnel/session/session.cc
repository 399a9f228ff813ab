#include "tunnel/session/session.h"

#include <algorithm>
#include <utility>

namespace braid {

namespace {
/// Keys of the previous epoch open reordered packets for this long after a change.
constexpr Duration kKeepKeys = 3s;

KeyLimits keyLimits(const SessionOptions& options) {
  KeyLimits limits;
  limits.rekeyPackets = options.rekeyPackets;
  limits.rekeyAfter = options.rekeyAfter;
  limits.keepPrevious = kKeepKeys;
  return limits;
}

/// The parameters that this side sends in PARAMS.
Params ownParams(const SessionOptions& options, const PacketPool& pool,
                 const SessionStreams& streams) {
  Params own;
  own.largestDatagram = std::max<uint64_t>(pool.payload(), Params::kMinDatagram);
  own.symbols = options.decodeBuffer;
  own.heldSpan = kGuaranteedSpan;
  own.receiveTimes = 1;
  streams.writeParams(own);
  return own;
}

/// A frame without meaning, so that every peer is tested to skip unknown frames (GREASE, RFC 8701).
OptionalAskingFrame greaseFrame(uint64_t random) {
  constexpr uint64_t kTypes = OptionalAskingFrame::kLast - OptionalAskingFrame::kFirst + 1;
  return {static_cast<uint8_t>(OptionalAskingFrame::kFirst + random % kTypes),
          static_cast<uint16_t>(random / kTypes % (kMaxGrease + 1))};
}

/// Calls `take` with each packet that waits in the scheduler.
template <typename F>
void drain(DrrScheduler& drr, Time now, F&& take) {
  DrrCursor cursor(drr);
  while (drr.hasWork()) {
    Candidate offer = cursor.peek(now);
    if (!offer) break;
    if (offer.isBareTurn()) {
      cursor.endTurn(0, false);
    } else {
      take(cursor.take());
    }
  }
}

PacketNumber numberOf(const DatagramHeader& header, const Subflow* subflow) {
  return expandPacketNumber(header.packetNumber,
                            subflow ? subflow->receiver().expected() : PacketNumber{});
}

PathManager::Side sideOf(KeySchedule::Role role) {
  using Side = PathManager::Side;
  return role == KeySchedule::Role::kInitiator ? Side::kInitiator : Side::kResponder;
}
}  // namespace

Session::Session(const SessionSecrets& secrets, KeySchedule::Role role,
                 const SessionOptions& options, const SessionContext& context, Time now)
    : options_(options),
      events_(context.events),
      packets_(context.packets),
      random_(context.random),
      keys_(secrets, role, keyLimits(options), now),
      sealer_(secrets.sessionId, keys_),
      trace_(context.shared.trace, secrets.sessionId),
      dataTracker_(options.repairTime, &packets_, &context.pool.quota(PacketUse::kSent)),
      queues_(options,
              {options.streams, context.pool, dataTracker_, trace_, context.rateLimits,
               context.shared.streams, context.shared.streamMemory, secrets.sessionId,
               role == KeySchedule::Role::kInitiator},
              packets_, random_.next()),
      renewal_(keys_, controls_),
      paths_(sideOf(role), options, controls_, dataTracker_, events_, trace_, random_, now),
      proactiveRecovery_({options, options.recoveryOptions, paths_.subflows(), dataTracker_,
                          context.pool, sealer_, trace_}),
      receiver_(options, context.pool.payload(), paths_.subflows(), trace_,
                context.shared.decodeMemory),
      data_(options, context.pool, sealer_, paths_, dataTracker_, queues_, proactiveRecovery_,
            packets_),
      outbound_(context.pool, sealer_, paths_, controls_, dataTracker_, queues_.streams,
                proactiveRecovery_, receiver_, data_),
      inbound_(options, context.pool, paths_, renewal_, queues_.streams, proactiveRecovery_,
               receiver_, packets_, context.shared.orderMemory),
      version_(secrets.version),
      start_(now) {
  proactiveRecovery_.setPolicies(random_);
  queues_.flows.limitClasses(proactiveRecovery_.policies().size());
  controls_.add(ParamsFrame{ownParams(options, context.pool, queues_.streams), random_.next()});
  controls_.add(greaseFrame(random_.next()));
}

Session::~Session() {
  giveUp();
}

// The subflows hand their data back to the data tracker, which hands it to the flows.
void Session::giveUp() {
  queues_.streams.endAll(StreamCause::kGone, false);
  proactiveRecovery_.clear();
  paths_.clear();
  dataTracker_.giveUpRepairs(Drop::kPeerDown);
}

void Session::setTunables() {
  data_.setTunables();
  proactiveRecovery_.setPolicies(random_);
  queues_.flows.limitClasses(proactiveRecovery_.policies().size());
  dataTracker_.setRepairTime(options_.repairTime);
  queues_.flows.setOptions(innerFlowOptions(options_));
  queues_.packets.setOptions(packetLaneOptions(options_));
  inbound_.setTunables();
  keys_.setRekey(options_.rekeyPackets, options_.rekeyAfter);
}

// ---- subflows

void Session::closeSubflow(const std::string& name, Time now) {
  paths_.close(name, now);
  refresh(now);
}

void Session::setPreference(const std::string& name, const PathPreference& own,
                            const PathPreference& peers, std::shared_ptr<Pacer> ceiling, Time now) {
  paths_.setPreference(name, own, peers, std::move(ceiling));
  refresh(now);
}

// ---- what arrives

std::optional<Drop> Session::onDatagram(const DatagramHeader& header, const Route& from, Ecn ecn,
                                        Packet datagram, Time now) {
  size_t size = datagram.size();
  Subflow* subflow = paths_.subflows().find(header.subflow);
  PacketNumber pn = numberOf(header, subflow);
  if (subflow && subflow->receiver().isReplay(pn)) return Drop::kReplay;

  unsigned generation = keys_.generation(), epoch = keys_.epoch();
  ByteView aad = datagram.view().first(kHeaderSize);
  ByteSpan sealed = datagram.span().subspan(kHeaderSize);
  if (!keys_.open(header.generation, header.epoch, header.subflow, pn, aad, sealed, now)) {
    if (keys_.spent()) over_ = true;
    return Drop::kBadSeal;
  }
  bool isFresh = keys_.generation() != generation;
  if (!isFresh && keys_.epoch() != epoch)
    events_.tell(Event::Kind::kRekeyed, "the peer changed keys");
  if (!subflow && !(subflow = paths_.accept(header.subflow, from, now)))
    return Drop::kUnknownSubflow;
  heardAt_ = now;

  datagram.trimFront(kHeaderSize);
  datagram.setSize(datagram.size() - kTagSize);
  bool good = inbound_.onDatagram(*subflow, std::move(datagram), {pn, ecn, size, from, now});
  if (keys_.generation() != generation)
    events_.tell(Event::Kind::kRekeyed, "keys of a fresh handshake");
  if (inbound_.isClosed()) over_ = true;
  // Nothing that such a peer says about losses can be trusted (RFC 9000 sections 13.1 and 21.4).
  if (inbound_.hasForgedAck() && !over_) {
    events_.tell(Event::Kind::kForgedAck,
                 "acknowledged what was never sent, its session is closed");
    end({CloseFrame::kForgedAck});
  }
  refresh(now);
  if (!good) return Drop::kBadFrame;
  return std::nullopt;
}

void Session::close(const CloseFrame& close) {
  close_ = close;
  closesLeft_ = paths_.subflows().size();
}

void Session::end(const CloseFrame& last) {
  close(last);
  over_ = true;
}

bool Session::onSendError(const Route& route, Time now) {
  bool ours = paths_.onSendError(route, now);
  refresh(now);
  return ours;
}

bool Session::onTooBig(const Route& route, size_t size, Time now) {
  bool ours = paths_.onTooBig(route, size, now);
  refresh(now);
  return ours;
}

// ---- time

void Session::onTimer(Time now) {
  paths_.onTimer(now);
  keys_.onTimer(now);
  queues_.flows.onTimer(now);
  inbound_.onTimer(now);
  refresh(now);
}

Time Session::nextDeadline(Time now) const {
  Time next = std::min({keys_.deadline(), queues_.flows.nextDeadline(), inbound_.nextDeadline(),
                        queues_.streams.nextDeadline(), outbound_.nextDeadline(now),
                        paths_.nextDeadline(now)});
  if (unusableSince() != kNever && (queues_.streams.size() > 0 || data_.hasWaiting()))
    next = std::min(next, std::max(now, unusableSince() + patience() + 1ns));
  return next;
}

Duration Session::patience() const {
  return std::max(options_.repairTime, std::min(paths_.answerTime(), kLongestPatience));
}

// Updates what depends on the states of the subflows.
void Session::refresh(Time now) {
  paths_.update(now);
  queues_.streams.update(now);
  if (unusableSince() != kNever && now - unusableSince() > patience()) clearQueues(now);
}

// No subflow has been usable for patience(): nobody waits for these packets any more.
void Session::clearQueues(Time now) {
  queues_.streams.endAll(StreamCause::kGone, true);
  dataTracker_.giveUpRepairs(Drop::kPeerDown);
  if (dataTracker_.records() > 0) {
    for (Subflow* s : paths_.subflows()) s->sender().giveUpData(Drop::kPeerDown);
  }
  drain(queues_.drr, now, [this](Packet) { countDrop(drops_, Drop::kPeerDown); });
}

// Only TCP packets are handed back once sent. Datagrams may have arrived, and UDP hosts would see
// the duplicates.
void Session::handBack() {
  inbound_.releaseHeld();
  queues_.streams.endAll(StreamCause::kGone, false);
  auto take = [&](Packet packet) {
    packets_.push(PacketEvent::Kind::kReturned, std::move(packet));
  };
  queues_.flows.forEach([&](Flow& flow) {
    if (flow.reliable()) dataTracker_.takeBack(flow, take);
  });
  // At the earliest possible time no packet has waited long for CoDel: what the dead path delayed
  // is not congestion.
  drain(queues_.drr, Time{}, take);
}

// ---- what leaves

bool Session::pollDatagram(Datagram& out, Time now) {
  if (over_ && !closesLeft_) return false;
  unsigned epoch = keys_.epoch();
  bool sent =
      closesLeft_ ? outbound_.pollClose(close_, *closesLeft_, out, now) : outbound_.poll(out, now);
  if (keys_.epoch() != epoch) events_.tell(Event::Kind::kRekeyed, "new keys");
  if (sealer_.failed()) over_ = true;  // a new session takes over
  return sent;
}

// ---- for the operator

DropCounts Session::drops() const {
  DropCounts sum = drops_;
  addDrops(sum, dataTracker_.drops());
  addDrops(sum, queues_.packets.drops());
  addDrops(sum, inbound_.drops());
  addDrops(sum, data_.drops());
  return sum;
}

void Session::fill(SessionStatus& status, Time now, size_t flows) const {
  status.age = now - start_;
  status.keyEpoch = keys_.epoch();
  status.keyGeneration = keys_.generation();
  status.keyAge = now - keys_.renewedAt();
  status.cipher = aeadName(keys_.aead());
  status.version = version_;
  paths_.fill(status, now);
  static_cast<OutboundCounts&>(status) = data_.counts();
  static_cast<InboundCounts&>(status) = inbound_.packets().counts();
  status.heldPackets = inbound_.packets().heldPackets();
  status.heldBytes = inbound_.packets().heldBytes();
  status.orderMemory = inbound_.packets().footprint();
  status.decodeMemory = receiver_.footprint();
  status.recovery = options_.recovery;
  status.blocks = proactiveRecovery_.blocks();
  status.paritiesReceived = receiver_.parities();
  static_cast<BlockDecoder::Counts&>(status) = receiver_.counts();
  static_cast<StreamCounts&>(status) = queues_.streams.counts();
  status.sentBytes = status.innerSentBytes + status.streamSentBytes;
  status.receivedBytes = status.innerReceivedBytes + status.streamReceivedBytes;
  status.streamCount = queues_.streams.size();
  status.streamsHeldBytes = queues_.streams.heldBytes();
  status.streams = queues_.streams.list(flows, now);
  status.flowCount = queues_.flows.size();
  for (const Flow* flow : queues_.flows.largest(flows)) {
    const FlowQueue& queue = flow->queue;
    status.flows.push_back({queue.counts(), flow->key().toString(),
                            std::string(deliveryName(flow->delivery())), queue.bytes(),
                            flow->sent.unacked(),
                            flow->isCarried() ? Duration::zero() : now - flow->lastUse()});
  }
}

}  // namespace braid
