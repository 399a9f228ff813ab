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

Inbound::Inbound(const SessionParts& parts)
    : QuotaUser(&parts.pool.budget(PacketUse::kHeld)),
      parts_(parts),
      packets_(parts.options, parts.pool) {}

void Inbound::setTunables() {
  packets_.setOptions(parts_.options);
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
    verdict = std::max(verdict, parts_.streams.admit(std::get<StreamFrame>(last), now));
  good &= verdict != SessionStreams::Verdict::kBad;
  if (!good || verdict != SessionStreams::Verdict::kTaken) {
    subflow.receiver().onMalformed(pn);
    if (good) drop(Drop::kNoBuffer);
  } else {
    subflow.onPacket(pn, eliciting, arrival.ecn, arrival.size, arrival.from, now);
    if (isUnit(last) && whole) parts_.receiver.onSymbol(subflow.id(), pn, {&symbol, 1}, now);
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
    parts_.streams.onFrame(stream, std::move(datagram), now);
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
    return onData(data, parts_.pool.copy(data.payload), now) ? Verdict::kTaken : Verdict::kNoRoom;
  }
  const auto& stream = std::get<StreamFrame>(frame);
  Packet bytes = parts_.pool.copy(stream.bytes);
  if (!bytes) return Verdict::kNoRoom;
  Verdict verdict = parts_.streams.admit(stream, now);
  if (verdict == Verdict::kTaken) parts_.streams.onFrame(stream, std::move(bytes), now);
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
  parts_.receiver.onSymbol(subflow, pn, {symbol.data(), pieces}, now);
}

void Inbound::onTimer(Time now) {
  packets_.onTimer(now);
  parts_.receiver.onTimer(now);
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
  SubflowSet& subflows = parts_.subflows;
  auto onBadParity = [&] { drop(Drop::kBadParity); };
  auto act = Overloaded{
      [&](const PingFrame&) { parts_.paths.onPing(subflow, now); },
      [](const DataFrame&) {},    // see onUnit()
      [](const StreamFrame&) {},  // see onUnit()
      [&](const StreamCreditFrame& credit) { parts_.streams.onCredit(credit); },
      [&](const StreamResetFrame& reset) { parts_.streams.onReset(reset, now); },
      [&](const AckFrame& ack) {
        Subflow* acked = subflows.find(ack.subflow);
        if (acked && acked->onAck(ack, acked == &subflow, now)) return;
        drop(Drop::kForgedAck);
        hasForgedAck_ = true;
      },
      [&](const PathChallengeFrame& challenge) {
        subflow.onPathChallenge(challenge.token, arrival.from);
      },
      [&](const PathResponseFrame& response) {
        if (!subflow.onPathResponse(response.token, arrival.from, now)) drop(Drop::kStrayResponse);
      },
      [&](const SubflowStatusFrame& status) {
        if (Subflow* meant = subflows.find(status.subflow)) meant->onPeerStatus(status, now);
      },
      [&](const SubflowPreferenceFrame& preference) {
        parts_.paths.roles().onPeerPreference(preference);
      },
      [&](const RenewKeysFrame& wish) { parts_.renewal.onWish(wish); },
      [&](const KeysReadyFrame& answer) { parts_.renewal.onAnswer(answer, now); },
      [&](const SkipFrame& skip) { packets_.onSkip(skip, now); },
      [&](const ParityFrame& parity) {
        if (!parts_.receiver.onParity(parity, subflow.id(), arrival.packetNumber, now))
          onBadParity();
      },
      [&](const ParityTailFrame& tail) {
        if (!parts_.receiver.onTail(tail)) onBadParity();
      },
      [&](const RecoveredFrame& recovered) {
        parts_.proactiveRecovery.onRecovered(recovered, now);
      },
      [&](const CloseFrame&) { isClosed_ = true; },
      [&](const ParamsFrame& params) { onParams(params.params); },
      [](const OptionalFrame&) {},
      [](const OptionalAskingFrame&) {},
  };
  std::visit(act, frame);
  parts_.paths.settle(now);
}

// Only the first PARAMS counts: a second one may be the first one, resent.
void Inbound::onParams(const Params& params) {
  if (std::exchange(knowsPeer_, true)) return;
  parts_.paths.setLargestDatagram(params.largestDatagram);
  parts_.proactiveRecovery.setPeer(params);
  parts_.streams.setPeer(params);
}

// Restored symbols are read like a datagram, but may hold only frames that belong to a symbol.
void Inbound::takeRestored(Time now) {
  BlockDecoder::Restored restored;
  while (parts_.receiver.poll(restored)) {
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
    parts_.receiver.onTaken(restored, good && taken, now);
  }
}

// False when there is no buffer for the packet.
bool Inbound::onData(const DataFrame& frame, Packet packet, Time now) {
  if (!packet) {
    drop(Drop::kNoBuffer);
    return false;
  }
  if (frame.flow >= kOrderedDatagramFlow && frame.flow < kDatagramFlow && now >= patienceDue_)
    setPatience(now);
  if (Packet timely = packets_.onData(frame, std::move(packet), now))
    parts_.owner.onDelivered(std::move(timely));
  return true;
}

// The sender uses the same patience, because both sides know the paths. It is recomputed every
// kPatienceAge instead of for each packet, because there may be many paths.
void Inbound::setPatience(Time now) {
  patienceDue_ = now + kPatienceAge;
  Duration patience{};
  for (const Subflow* s : parts_.subflows) {
    PathView path = s->view(now);
    if (path.usable) patience = std::max(patience, orderPatience(path.srtt, path.rttvar));
  }
  packets_.setPatience(patience > 0s ? patience : kFirstPatience);
}

void Inbound::deliverWaiting() {
  Packet packet;
  while (packets_.poll(packet)) parts_.owner.onDelivered(std::move(packet));
  keep(packets_.heldPackets());
}

void Inbound::releaseHeld() {
  while (packets_.heldPackets() > 0) packets_.relieve();
  deliverWaiting();
}

// Releases half of the held packets, at most kReleaseBatch, so that the search for the quota user
// with most packets is rare.
void Inbound::reclaim() {
  size_t half = packets_.heldPackets() / 2;
  for (size_t n = 0; n < kReleaseBatch && packets_.heldPackets() > half; ++n) packets_.relieve();
  deliverWaiting();
}

DropCounts Inbound::drops() const {
  DropCounts sum = drops_;
  addDrops(sum, packets_.drops());
  return sum;
}

}  // namespace braid
