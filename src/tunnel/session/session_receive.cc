#include "tunnel/session/session.h"
#include "tunnel/wire/frame_reader.h"
#include "tunnel/wire/parity_symbols.h"

namespace braid {

namespace {
/// Nothing is held for order while less than this part of the buffers is free. Ours.
constexpr size_t kHoldReserve = 16;

/// DATA frames of one datagram that decoding takes notice of: more than a sender packs.
constexpr size_t kMaxSymbolPieces = 64;

bool isCostly(const WireFrame& frame) {
  return std::holds_alternative<ParityFrame>(frame) || std::holds_alternative<RecoveredFrame>(frame);
}

/// Whether the frame asks for an ACK (docs/protocol.md section 7). Path frames have answers of their own.
bool isEliciting(const WireFrame& frame) {
  return std::holds_alternative<PingFrame>(frame) || std::holds_alternative<DataFrame>(frame) ||
         std::holds_alternative<SkipFrame>(frame) || std::holds_alternative<SubflowStatusFrame>(frame) ||
         std::holds_alternative<ParityFrame>(frame) || std::holds_alternative<ParityTailFrame>(frame) ||
         std::holds_alternative<SubflowPreferenceFrame>(frame);
}
}  // namespace

std::optional<Drop> Session::onDatagram(const DatagramHeader& header, const Route& from, Ecn ecn,
                                        Packet datagram, Time now) {
  size_t size = datagram.size();
  Subflow* subflow = subflows_.find(header.subflow);
  uint64_t pn = expandPacketNumber(header.packetNumber, subflow ? subflow->expectedPacketNumber() : 0);
  if (subflow && subflow->isReplay(pn)) return Drop::kReplay;

  unsigned epoch = keys_.epoch();
  ByteView aad = datagram.view().first(kHeaderSize);
  if (!keys_.open(header.epoch, header.subflow, pn, aad, datagram.span().subspan(kHeaderSize), now)) {
    if (keys_.spent()) over_ = true;
    return Drop::kBadSeal;
  }
  if (keys_.epoch() != epoch) event({Event::Kind::kRekeyed, {}, "the peer changed keys"});
  if (!subflow && !(subflow = acceptSubflow(header.subflow, from, now))) return Drop::kUnknownSubflow;
  lastHeard_ = now;
  confirmed_ = true;

  datagram.trimFront(kHeaderSize);
  datagram.setSize(datagram.size() - kTagSize);
  bool malformed = false;
  onFrames(*subflow, std::move(datagram), pn, ecn, size, from, now, malformed);
  deliverInOrder();
  refresh(now);
  if (malformed) return Drop::kBadFrame;
  return std::nullopt;
}

// Only the initiator makes subflows; the responder learns of one from its first packet.
Subflow* Session::acceptSubflow(uint8_t id, const Route& from, Time now) {
  if (role_ == KeySchedule::Role::kInitiator || subflows_.size() >= options_.maxSubflows) return nullptr;
  Subflow& subflow = subflows_.add(
      std::make_unique<Subflow>(id, "", from, false, options_, *this, ledger_, controllers_, random_, now));
  marks_.emplace_back();
  views_.resize(subflows_.size());
  return &subflow;
}

void Session::onFrames(Subflow& subflow, Packet datagram, uint64_t pn, Ecn ecn, size_t size,
                       const Route& from, Time now, bool& malformed) {
  bool eliciting = false;
  std::optional<DataFrame> last;  // the last DATA frame takes over the datagram's buffer
  std::array<ByteView, kMaxSymbolPieces> symbol;
  size_t pieces = 0;
  size_t costly = 0;
  FrameReader frames(datagram.view());
  while (std::optional<WireFrame> frame = frames.next()) {
    eliciting |= isEliciting(*frame);
    if (const auto* data = std::get_if<DataFrame>(&*frame)) {
      if (last) onData(*last, pool_.copy(last->payload), now);
      last = *data;
      if (pieces < symbol.size())
        symbol[pieces++] = {data->payload.data() - kDataFrameHeader, data->payload.size() + kDataFrameHeader};
    } else if (isCostly(*frame) && ++costly > kMaxCostlyFrames) {
      owner_.onDrop(Drop::kBadParity, 1);
    } else if (const auto* parity = std::get_if<ParityFrame>(&*frame)) {
      onParity(*parity, subflow.id(), pn, now);
    } else {
      onFrame(subflow, *frame, from, now);
    }
  }
  malformed = !frames.ok();
  if (malformed) return subflow.onMalformed(pn);
  subflow.onPacket(pn, eliciting, ecn, size, from, now);
  if (!last) return takeRestored(now);
  if (options_.decodeBuffer > 0) decoder_.onSymbol(subflow.id(), pn, {symbol.data(), pieces});
  takeRestored(now);
  datagram.trimFront(static_cast<size_t>(last->payload.data() - datagram.data()));
  datagram.setSize(last->payload.size());
  onData(*last, std::move(datagram), now);
}

void Session::onFrame(Subflow& subflow, const WireFrame& frame, const Route& from, Time now) {
  if (const auto* ack = std::get_if<AckFrame>(&frame)) {
    if (Subflow* acked = subflows_.find(ack->subflow)) acked->onAck(*ack, acked == &subflow, now);
  } else if (const auto* challenge = std::get_if<PathChallengeFrame>(&frame)) {
    subflow.onPathChallenge(challenge->token, from);
  } else if (const auto* response = std::get_if<PathResponseFrame>(&frame)) {
    subflow.onPathResponse(response->token, now);
  } else if (const auto* skip = std::get_if<SkipFrame>(&frame)) {
    onSkip(*skip, now);
  } else if (const auto* status = std::get_if<SubflowStatusFrame>(&frame)) {
    if (Subflow* meant = subflows_.find(status->subflow)) meant->onPeerStatus(*status, now);
  } else if (const auto* preference = std::get_if<SubflowPreferenceFrame>(&frame)) {
    onPreference(*preference);
  } else if (const auto* tail = std::get_if<ParityTailFrame>(&frame)) {
    onParityTail(*tail);
  } else if (const auto* recovered = std::get_if<RecoveredFrame>(&frame)) {
    onRecovered(*recovered, now);
  } else if (std::holds_alternative<CloseFrame>(frame)) {
    over_ = true;
  }
}

// ---- recovery

void Session::onParity(const ParityFrame& frame, uint8_t on, uint64_t pn, Time now) {
  ++counts_.parities;
  if (options_.decodeBuffer == 0) return;
  BlockDescription block = describe(frame, [this](uint8_t subflow) {
    const Subflow* s = subflows_.find(subflow);
    return s ? s->expectedPacketNumber() : 0;
  });
  if (decoder_.onParity(block, frame.index, frame.part) == BlockDecoder::Verdict::kBad)
    return owner_.onDrop(Drop::kBadParity, 1);
  if (!options_.trace) return;
  trace({.kind = TraceEvent::Kind::kParityReceived,
         .time = now,
         .on = on,
         .index = frame.index,
         .k = static_cast<uint8_t>(block.symbols()),
         .m = frame.parities,
         .block = frame.block,
         .onPn = pn});
}

void Session::onParityTail(const ParityTailFrame& frame) {
  if (options_.decodeBuffer == 0) return;
  if (decoder_.onTail(frame.block, frame.index, frame.offset, frame.part) == BlockDecoder::Verdict::kBad)
    owner_.onDrop(Drop::kBadParity, 1);
}

// What decoding gives back is read like a datagram; only DATA may be in it.
void Session::takeRestored(Time now) {
  BlockDecoder::Restored restored;
  while (decoder_.poll(restored)) {
    FrameReader frames(restored.symbol);
    bool good = true;
    bool taken = true;
    while (std::optional<WireFrame> frame = frames.next()) {
      const auto* data = std::get_if<DataFrame>(&*frame);
      good = data != nullptr;
      if (!good) break;
      taken &= onData(*data, pool_.copy(data->payload), now);
    }
    good &= frames.ok();
    if (!good) owner_.onDrop(Drop::kBadParity, 1);
    if (good && taken) tellRecovered(restored.subflow, restored.pn);
    trace({.kind = TraceEvent::Kind::kBlockDecoded,
           .time = now,
           .subflow = restored.subflow,
           .block = restored.block,
           .pn = restored.pn});
  }
}

void Session::tellRecovered(uint8_t subflow, uint64_t pn) {
  if (!recovered_.empty()) {
    RecoveredFrame& last = recovered_.back();
    if (last.subflow == subflow && last.first + last.count == pn && last.count < kMaxBlockSymbols) {
      ++last.count;
      return;
    }
  }
  if (recovered_.size() < kMaxRecovered) recovered_.push_back({subflow, pn, 1});
}

void Session::onRecovered(const RecoveredFrame& frame, Time now) {
  Subflow* subflow = subflows_.find(frame.subflow);
  if (!subflow) return;
  for (uint64_t pn = frame.first; pn < frame.first + frame.count; ++pn) {
    if (!subflow->onRecovered(pn)) continue;
    trace({.kind = TraceEvent::Kind::kPacketRecovered, .time = now, .subflow = frame.subflow, .pn = pn});
  }
}

// False when there is no buffer for it.
bool Session::onData(const DataFrame& frame, Packet packet, Time now) {
  if (!packet) {
    owner_.onDrop(Drop::kNoBuffer, 1);
    return false;
  }
  ++counts_.receivedPackets;
  counts_.receivedBytes += packet.size();
  uint16_t slot = frame.flow & (kDatagramFlow - 1);
  if (frame.flow < kDatagramFlow) {
    if (pool_.limit() - pool_.inUse() < pool_.limit() / kHoldReserve) resequencer_.relieve();
    resequencer_.onPacket(slot, expandDsn(frame.dsn, resequencer_.next(slot)), std::move(packet), now);
    return true;
  }
  if (slot >= datagramFilters_.size()) datagramFilters_.resize(slot + 1u);
  DuplicateFilter& filter = datagramFilters_[slot];
  if (filter.accept(expandDsn(frame.dsn, filter.next()))) {
    owner_.onDelivered(std::move(packet));
  } else {
    owner_.onDrop(Drop::kDuplicate, 1);
  }
  return true;
}

void Session::onSkip(const SkipFrame& skip, Time now) {
  resequencer_.skip(skip.flow, skip.first, skip.count, now);
}

void Session::deliverInOrder() {
  Packet packet;
  while (resequencer_.poll(packet)) owner_.onDelivered(std::move(packet));
}

}  // namespace braid
