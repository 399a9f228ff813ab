#include "tunnel/session.h"

namespace braid {

namespace {
/// Nothing is held for order while less than this part of the buffers is free. Ours.
constexpr size_t kHoldReserve = 16;

/// Whether the frame asks for an ACK (docs/protocol.md section 7). Path frames have answers of their own.
bool isEliciting(const WireFrame& frame) {
  return std::holds_alternative<PingFrame>(frame) || std::holds_alternative<DataFrame>(frame) ||
         std::holds_alternative<SkipFrame>(frame) || std::holds_alternative<SubflowStatusFrame>(frame);
}
}  // namespace

std::optional<Drop> Session::onDatagram(const DatagramHeader& header, const Route& from, Ecn ecn,
                                        Packet datagram, Time now) {
  size_t size = datagram.size();
  Subflow* subflow = find(header.subflow);
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
  table_[id] = std::make_unique<Subflow>(id, "", from, false, options_, *this, ledger_, random_, now);
  subflows_.push_back(table_[id].get());
  names_.emplace_back();
  views_.resize(subflows_.size());
  return table_[id].get();
}

void Session::onFrames(Subflow& subflow, Packet datagram, uint64_t pn, Ecn ecn, size_t size,
                       const Route& from, Time now, bool& malformed) {
  bool eliciting = false;
  std::optional<DataFrame> last;  // the last DATA frame takes over the datagram's buffer
  FrameReader frames(datagram.view());
  while (std::optional<WireFrame> frame = frames.next()) {
    eliciting |= isEliciting(*frame);
    if (const auto* data = std::get_if<DataFrame>(&*frame)) {
      if (last) onData(*last, pool_.copy(last->payload), now);
      last = *data;
    } else {
      onFrame(subflow, *frame, from, now);
    }
  }
  malformed = !frames.ok();
  if (malformed) return subflow.onMalformed(pn);
  subflow.onPacket(pn, eliciting, ecn, size, from, now);
  if (!last) return;
  datagram.trimFront(static_cast<size_t>(last->payload.data() - datagram.data()));
  datagram.setSize(last->payload.size());
  onData(*last, std::move(datagram), now);
}

void Session::onFrame(Subflow& subflow, const WireFrame& frame, const Route& from, Time now) {
  if (const auto* ack = std::get_if<AckFrame>(&frame)) {
    if (Subflow* acked = find(ack->subflow)) acked->onAck(*ack, acked == &subflow, now);
  } else if (const auto* challenge = std::get_if<PathChallengeFrame>(&frame)) {
    subflow.onPathChallenge(challenge->token, from);
  } else if (const auto* response = std::get_if<PathResponseFrame>(&frame)) {
    subflow.onPathResponse(response->token, now);
  } else if (const auto* skip = std::get_if<SkipFrame>(&frame)) {
    onSkip(*skip, now);
  } else if (const auto* status = std::get_if<SubflowStatusFrame>(&frame)) {
    if (Subflow* meant = find(status->subflow)) meant->onPeerStatus(*status, now);
  } else if (std::holds_alternative<CloseFrame>(frame)) {
    over_ = true;
  }
}

void Session::onData(const DataFrame& frame, Packet packet, Time now) {
  if (!packet) return owner_.onDrop(Drop::kNoBuffer, 1);
  ++counts_.receivedPackets;
  counts_.receivedBytes += packet.size();
  uint16_t slot = frame.flow & (kDatagramFlow - 1);
  if (frame.flow < kDatagramFlow) {
    if (pool_.limit() - pool_.inUse() < pool_.limit() / kHoldReserve) resequencer_.relieve();
    resequencer_.onPacket(slot, expandDsn(frame.dsn, resequencer_.next(slot)), std::move(packet), now);
    return;
  }
  if (slot >= datagramFilters_.size()) datagramFilters_.resize(slot + 1u);
  DuplicateFilter& filter = datagramFilters_[slot];
  if (!filter.accept(expandDsn(frame.dsn, filter.next()))) return owner_.onDrop(Drop::kDuplicate, 1);
  owner_.onDelivered(std::move(packet));
}

void Session::onSkip(const SkipFrame& skip, Time now) {
  resequencer_.skip(skip.flow, skip.first, skip.count, now);
}

void Session::deliverInOrder() {
  Packet packet;
  while (resequencer_.poll(packet)) owner_.onDelivered(std::move(packet));
}

}  // namespace braid
