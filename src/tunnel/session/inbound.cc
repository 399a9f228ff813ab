#include "tunnel/session/inbound.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace braid {

namespace {
/// Maximum number of data-unit frames of one datagram that count for decoding: more than a sender
/// packs into one.
constexpr size_t kMaxSymbolPieces = 64;
/// Maximum number of held packets released by one reclaim().
constexpr size_t kReleaseBatch = 64;
/// Interval at which the paths are looked at to set the patience of ordered datagrams.
constexpr Duration kPatienceAge = 10ms;

/// The frame if it carries a data unit, else none.
Inbound::UnitFrame unitIn(const WireFrame& frame) {
  if (const auto* data = std::get_if<DataFrame>(&frame)) return *data;
  if (const auto* stream = std::get_if<StreamFrame>(&frame)) return *stream;
  return {};
}
bool isUnit(const Inbound::UnitFrame& frame) {
  return frame.index() != 0;
}
bool isOfStream(const Inbound::UnitFrame& frame) {
  return std::holds_alternative<StreamFrame>(frame);
}

// The header and the data unit of the frame.
ByteView bytesOf(const Inbound::UnitFrame& frame) {
  ByteView unit =
      isOfStream(frame) ? std::get<StreamFrame>(frame).payload : std::get<DataFrame>(frame).payload;
  return {unit.data() - kDataFrameHeader, unit.size() + kDataFrameHeader};
}
}  // namespace

Inbound::Inbound(const QueueOptions& options, PacketPool& pool, PathManager& paths,
                 KeyUpdate& renewal, SessionStreams& streams, ProactiveRecovery& proactiveRecovery,
                 FecReceiver& receiver, PacketEvents& events, MemoryQuota* orderMemory)
    : QuotaUser(&pool.quota(PacketUse::kHeld), Reclaimable::kYes),
      options_(options),
      pool_(pool),
      paths_(paths),
      subflows_(paths.subflows()),
      renewal_(renewal),
      streams_(streams),
      proactiveRecovery_(proactiveRecovery),
      receiver_(receiver),
      events_(events),
      packets_(options, pool, orderMemory) {}

void Inbound::setTunables() {
  packets_.setOptions(options_);
}

bool Inbound::onDatagram(Subflow& subflow, Packet datagram, const Arrival& arrival) {
  Time now = arrival.now;
  bool eliciting = false;
  UnitFrame last;     // the last data-unit frame takes over the datagram's buffer
  ByteView symbol;    // the data-unit frames from the first one to the first gap between them
  bool whole = true;  // there was no gap: `symbol` has all data-unit frames
  size_t costly = 0;
  auto verdict = SessionStreams::Verdict::kTaken;  // the worst one about stream data
  FrameReader frames(datagram.view());
  while (std::optional<WireFrame> frame = frames.next()) {
    const FrameTraits& traits = traitsOf(*frame);
    eliciting |= traits.eliciting;
    if (traits.symbol) {
      if (isUnit(last)) {
        SessionStreams::Verdict said = onUnit(last, now);
        if (isOfStream(last)) verdict = std::max(verdict, said);
      }
      last = unitIn(*frame);
      ByteView bytes = bytesOf(last);
      if (symbol.empty()) symbol = bytes.first(0);
      whole &= bytes.data() == symbol.data() + symbol.size();
      if (whole) symbol = {symbol.data(), symbol.size() + bytes.size()};
    } else if (traits.costly && ++costly > kMaxCostlyFrames) {
      drop(Drop::kBadParity);
    } else {
      onFrame(subflow, *frame, arrival);
    }
  }
  PacketNumber pn = arrival.packetNumber;
  bool good = frames.ok();
  if (good && isOfStream(last))
    verdict = std::max(verdict, streams_.admit(std::get<StreamFrame>(last), now));
  good &= verdict != SessionStreams::Verdict::kBad;
  if (!good || verdict != SessionStreams::Verdict::kTaken) {
    subflow.receiver().onMalformed(pn);
    if (good) drop(Drop::kNoBuffer);
  } else {
    subflow.onPacket(pn, eliciting, arrival.ecn, arrival.size, arrival.from, now);
    if (isUnit(last) && whole) receiver_.onSymbol(subflow.id(), pn, {&symbol, 1}, now);
    if (!whole) onScattered(subflow.id(), pn, datagram.view(), now);
    // Stream bytes come first: restored data must not take the memory for which they were admitted.
    if (isOfStream(last)) {
      takeOver(last, std::move(datagram), now);
      takeRestored(now);
    } else {
      takeRestored(now);
      if (isUnit(last)) takeOver(last, std::move(datagram), now);
    }
  }
  deliverWaiting();
  return good;
}

// The last data-unit frame, which was admitted, takes the datagram's buffer.
void Inbound::takeOver(const UnitFrame& last, Packet datagram, Time now) {
  auto keepOnly = [&](ByteView bytes) {
    datagram.trimFront(static_cast<size_t>(bytes.data() - datagram.data()));
    datagram.setSize(bytes.size());
  };
  if (isOfStream(last)) {
    const auto& stream = std::get<StreamFrame>(last);
    keepOnly(stream.bytes);
    streams_.onFrame(stream, std::move(datagram), now);
  } else {
    const auto& data = std::get<DataFrame>(last);
    keepOnly(data.payload);
    onData(data, std::move(datagram), now);
  }
}

// Handles a data-unit frame by copying its unit.
SessionStreams::Verdict Inbound::onUnit(const UnitFrame& frame, Time now) {
  using Verdict = SessionStreams::Verdict;
  if (!isOfStream(frame)) {
    const auto& data = std::get<DataFrame>(frame);
    return onData(data, pool_.copy(data.payload), now) ? Verdict::kTaken : Verdict::kNoRoom;
  }
  const auto& stream = std::get<StreamFrame>(frame);
  Packet bytes = pool_.copy(stream.bytes);
  if (!bytes) return Verdict::kNoRoom;
  Verdict verdict = streams_.admit(stream, now);
  if (verdict == Verdict::kTaken) streams_.onFrame(stream, std::move(bytes), now);
  return verdict;
}

// Handles the symbol of a datagram in which other frames stand between the data-unit frames, for
// example an ACK between repairs and new data.
void Inbound::onScattered(SubflowId subflow, PacketNumber pn, ByteView datagram, Time now) {
  std::array<ByteView, kMaxSymbolPieces> symbol;
  size_t pieces = 0;
  FrameReader frames(datagram);
  while (std::optional<WireFrame> frame = frames.next()) {
    if (traitsOf(*frame).symbol && pieces < symbol.size())
      symbol[pieces++] = bytesOf(unitIn(*frame));
  }
  receiver_.onSymbol(subflow, pn, {symbol.data(), pieces}, now);
}

void Inbound::onTimer(Time now) {
  packets_.onTimer(now);
  receiver_.onTimer(now);
  deliverWaiting();
}

namespace {
template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;  // clang before version 17 needs this deduction guide
}  // namespace

void Inbound::onFrame(Subflow& subflow, const WireFrame& frame, const Arrival& arrival) {
  Time now = arrival.now;
  auto onBadParity = [&] { drop(Drop::kBadParity); };
  auto act = Overloaded{
      [&](const PingFrame&) { paths_.onPing(subflow, now); },
      [](const DataFrame&) {},    // see onUnit()
      [](const StreamFrame&) {},  // see onUnit()
      [&](const StreamCreditFrame& credit) { streams_.onCredit(credit); },
      [&](const StreamResetFrame& reset) { streams_.onReset(reset, now); },
      [&](const AckFrame& ack) { onAck(subflow, ack, now); },
      [&](const TimedAckFrame& timed) { onAck(subflow, timed.ack, now); },
      [&](const PathChallengeFrame& challenge) {
        subflow.onPathChallenge(challenge.token, arrival.from);
      },
      [&](const PathResponseFrame& response) {
        if (!subflow.onPathResponse(response.token, arrival.from, now)) drop(Drop::kStrayResponse);
      },
      [&](const SubflowStatusFrame& status) {
        if (Subflow* meant = subflows_.find(status.subflow)) meant->onPeerStatus(status, now);
      },
      [&](const SubflowPreferenceFrame& preference) {
        paths_.roles().onPeerPreference(preference);
      },
      [&](const RenewKeysFrame& wish) { renewal_.onWish(wish); },
      [&](const KeysReadyFrame& answer) { renewal_.onAnswer(answer, now); },
      [&](const SkipFrame& skip) { packets_.onSkip(skip, now); },
      [&](const ParityFrame& parity) {
        if (!receiver_.onParity(parity, subflow.id(), arrival.packetNumber, now)) onBadParity();
      },
      [&](const ParityTailFrame& tail) {
        if (!receiver_.onTail(tail)) onBadParity();
      },
      [&](const RecoveredFrame& recovered) { proactiveRecovery_.onRecovered(recovered, now); },
      [&](const CloseFrame&) { isClosed_ = true; },
      [&](const ParamsFrame& params) { onParams(params.params); },
      [&](const SubflowNameFrame& told) { subflow.onPeerName(told); },
      [&](const ObservedAddressFrame& seen) { subflow.onObservedAddress(seen); },
      [](const OptionalFrame&) {},
      [](const OptionalAskingFrame&) {},
  };
  std::visit(act, frame);
  paths_.settle(now);
}

void Inbound::onAck(const Subflow& over, const AckFrame& ack, Time now) {
  Subflow* acked = subflows_.find(ack.subflow);
  if (acked && acked->onAck(ack, acked == &over, now)) return;
  drop(Drop::kForgedAck);
  hasForgedAck_ = true;
}

// Only the first PARAMS counts: a second one may be the first one, resent.
void Inbound::onParams(const Params& params) {
  if (std::exchange(knowsPeer_, true)) return;
  paths_.setLargestDatagram(params.largestDatagram);
  if (params.receiveTimes > 0) paths_.tellTimes();
  proactiveRecovery_.setPeer(params);
  streams_.setPeerParams(params);
}

// Restored symbols are read like a datagram, but may hold only frames that belong to a symbol.
void Inbound::takeRestored(Time now) {
  BlockDecoder::Restored restored;
  while (receiver_.poll(restored)) {
    FrameReader frames(restored.symbol);
    bool good = true;
    bool taken = true;
    while (std::optional<WireFrame> frame = frames.next()) {
      using Verdict = SessionStreams::Verdict;
      Verdict verdict = traitsOf(*frame).symbol ? onUnit(unitIn(*frame), now) : Verdict::kBad;
      good = verdict != Verdict::kBad;
      if (!good) break;
      taken &= verdict == Verdict::kTaken;
    }
    good &= frames.ok();
    if (!good) drop(Drop::kBadParity);
    receiver_.onTaken(restored, good && taken, now);
  }
}

// False when there is no buffer for the packet.
bool Inbound::onData(const DataFrame& frame, Packet packet, Time now) {
  if (!packet) {
    drop(Drop::kNoBuffer);
    return false;
  }
  if (frame.flow < kDatagramFlow && now >= patienceDue_) setPatience(now);
  if (Packet timely = packets_.onData(frame, std::move(packet), now)) deliver(std::move(timely));
  return true;
}

// The sender uses the same patience, because both sides know the paths. It is recomputed every
// kPatienceAge instead of for each packet, because there may be many paths. While no path is
// usable, what was learned of them stays.
void Inbound::setPatience(Time now) {
  patienceDue_ = now + kPatienceAge;
  Duration patience{};
  for (const Subflow* s : subflows_) {
    PathView path = s->view(now);
    if (path.usable) patience = std::max(patience, orderPatience(path.srtt, path.rttvar));
  }
  if (patience > 0s) packets_.setPatience(patience);
}

void Inbound::deliver(Packet packet) {
  events_.push(PacketEvent::Kind::kDelivered, std::move(packet));
}

void Inbound::deliverWaiting() {
  Packet packet;
  while (packets_.poll(packet)) deliver(std::move(packet));
  setUsed(packets_.heldPackets());
}

void Inbound::releaseHeld() {
  while (packets_.heldPackets() > 0) packets_.releaseOldest();
  deliverWaiting();
}

// Releases half of the held packets, at most kReleaseBatch, so that the search for the quota user
// with most packets is rare.
void Inbound::reclaim() {
  size_t half = packets_.heldPackets() / 2;
  for (size_t n = 0; n < kReleaseBatch && packets_.heldPackets() > half; ++n)
    packets_.releaseOldest();
  deliverWaiting();
}

DropCounts Inbound::drops() const {
  DropCounts sum = drops_;
  addDrops(sum, packets_.drops());
  return sum;
}

}  // namespace braid
