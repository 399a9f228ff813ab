#include "tunnel/subflow/datagram_builder.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "tunnel/wire/frame_payloads.h"
#include "tunnel/wire/header.h"

namespace braid {

namespace {
/// PADDING frames, enough for the largest MTU probe.
constexpr std::array<uint8_t, 9216> kZeros{};
/// Most bytes of an ACK frame. A longer one leaves out its smallest ranges.
constexpr size_t kMaxAckBytes = 512;
}  // namespace

bool DatagramSealer::seal(SubflowId subflow, PacketNumber packetNumber,
                          std::span<const ByteView> pieces, uint8_t* out, Time now) {
  if (keys_.wantsRekey(now)) keys_.rekey(now);
  writeHeader({kWireVersion, keys_.epochBits(), session_, subflow,
               static_cast<uint32_t>(packetNumber.value()), keys_.generationBits()},
              out);
  bool good = keys_.seal(subflow, packetNumber, {out, kHeaderSize}, pieces, out + kHeaderSize);
  failed_ |= !good;
  return good;
}

DatagramBuilder::DatagramBuilder(Subflow& subflow, Packet buffer)
    : DatagramBuilder(subflow, std::move(buffer), subflow.route(), subflow.mtu().current()) {}

DatagramBuilder::DatagramBuilder(Subflow& subflow, Packet buffer, const Route& route,
                                 size_t datagram)
    : subflow_(subflow),
      packetNumber_(subflow.sender().sent().next()),
      route_(route),
      buffer_(std::move(buffer)),
      writer_(small_),
      limit_(frameRoom(datagram)) {}

void DatagramBuilder::addAck(Subflow& of, Time now) {
  AckSender& acks = of.receiver().acks();
  if (!acks.pending()) return;
  std::array<uint8_t, kMaxAckBytes> space;
  Writer ack(ByteSpan(space).first(std::min(space.size(), limit_ - used_)));
  if (!writeFrame(ack, acks.frame(of.id(), now))) return;
  writer_.bytes({space.data(), ack.size()});
  used_ += ack.size();
  acks.onSent();
}

void DatagramBuilder::addUnit(UnitRef unit) {
  headerAt_[dataCount_] = writer_.size();
  std::array<uint8_t, kDataFrameHeader> header;
  writeUnitHeader(*unit, header.data());
  writer_.bytes(header);
  data_[dataCount_++] = unit;
  used_ += kDataFrameHeader + unit->packet.size();
  tracked_ = true;
}

void DatagramBuilder::addCopy(UnitRef unit) {
  addUnit(unit);
  role_ = SentPacket::Role::kCopy;
}

void DatagramBuilder::addParity(const BlockDescription& block, size_t index, ByteView part) {
  size_t before = writer_.size();
  writeParityHeader(writer_, block, index, part.size());
  used_ += writer_.size() - before;
  addPayload(part);
}

void DatagramBuilder::addParityTail(const ParityTailFrame& tail) {
  size_t before = writer_.size();
  writeParityTailHeader(writer_, tail);
  used_ += writer_.size() - before;
  addPayload(tail.part);
}

void DatagramBuilder::addPayload(ByteView parity) {
  parity_ = parity;
  used_ += parity.size();
  tracked_ = true;
  role_ = SentPacket::Role::kParity;
}

void DatagramBuilder::padTo(size_t datagram) {
  size_t want = frameRoom(datagram);
  if (used_ >= want) return;
  padding_ = std::min(want - used_, kZeros.size());
  used_ += padding_;
}

void DatagramBuilder::makeMtuProbe(size_t datagram) {
  addTracked(PingFrame{});
  mtuProbe_ = true;
  padTo(datagram);
}

bool DatagramBuilder::finish(DatagramSealer& sealer, Datagram& out, Time now) {
  assert(packetNumber_ == subflow_.sender().sent().next());
  // Pieces in wire order: small frames up to and including the first DATA header, its payload, and
  // so on for each DATA frame.
  std::array<ByteView, 2 * kMaxDataPerDatagram + 3> pieces;
  size_t count = 0;
  size_t from = 0;
  for (size_t i = 0; i < dataCount_; ++i) {
    size_t end = headerAt_[i] + kDataFrameHeader;
    pieces[count++] = ByteView(small_).subspan(from, end - from);
    pieces[count++] = data_[i]->packet.view();
    from = end;
  }
  if (writer_.size() > from)
    pieces[count++] = ByteView(small_).subspan(from, writer_.size() - from);
  if (!parity_.empty()) pieces[count++] = parity_;
  if (padding_ > 0) pieces[count++] = ByteView(kZeros).first(padding_);

  size_t size = kHeaderSize + used_ + kTagSize;
  uint8_t* bytes = buffer_.append(size);
  bool sealed = sealer.seal(subflow_.id(), packetNumber_, {pieces.data(), count}, bytes, now);
  SentPacket& sent = subflow_.onSent(size, tracked_, now);
  sent.mtuProbe = mtuProbe_;
  sent.role = role_;
  sent.hasControl = hasControl_;
  sent.dataCount = static_cast<uint8_t>(dataCount_);
  std::copy_n(data_.begin(), dataCount_, sent.data.begin());
  if (dataCount_ > 0 && !subflow_.usable()) subflow_.sender().moveData(sent, now);
  if (!sealed) return false;
  subflow_.onRouted(route_, size);
  out.route = route_;
  out.ecn = ect_ ? Ecn::kEct0 : subflow_.codepoint(packetNumber_, sent, now);
  out.bytes = std::move(buffer_);
  subflow_.sender().maybeSkip(now);  // invalidates `sent`
  return true;
}

}  // namespace braid
