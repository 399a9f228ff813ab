#include "tunnel/wire/frames.h"

#include <algorithm>
#include <cstring>

#include "tunnel/wire/frame_table.h"

namespace braid {

namespace {
/// Bit of the byte with the IP version of an opening: it asks for an answer.
constexpr uint8_t kAsks = 16;

void writeEndpoint(Writer& out, const Endpoint& endpoint) {
  out.bytes(endpoint.address.view());
  out.u16(endpoint.port);
}

}  // namespace

Endpoint takeEndpoint(Reader& in, bool isV4) {
  ByteView address = in.take(isV4 ? 4 : 16);
  uint16_t port = in.u16();
  if (!in.ok()) return {};
  return {isV4 ? Address::v4(address) : Address::v6(address), port};
}

void writeStreamPrefix(Writer& out, StreamId stream, const StreamOpening* opening) {
  out.varint(stream.value());
  if (!opening) return;
  unsigned version = opening->ends.destination.address.isV4() ? 4 : 6;
  out.u8(static_cast<uint8_t>(opening->asks ? version | kAsks : version));
  writeEndpoint(out, opening->ends.source);
  writeEndpoint(out, opening->ends.destination);
  out.varint(opening->credit);
}

bool readStreamUnit(ByteView unit, StreamFrame& frame) {
  Reader in(unit);
  frame.stream = StreamId(in.varint());
  frame.opening.reset();
  if (frame.type & StreamFrame::kOpen) {
    uint8_t first = in.u8();
    unsigned version = first & ~unsigned{kAsks};
    if (version != 4 && version != 6) return false;
    StreamOpening& opening = frame.opening.emplace();
    opening.asks = first & kAsks;
    opening.ends.source = takeEndpoint(in, version == 4);
    opening.ends.destination = takeEndpoint(in, version == 4);
    opening.credit = in.varint();
  }
  if (!in.ok()) return false;
  frame.payload = unit;
  frame.bytes = in.take(in.remaining());
  return (!frame.bytes.empty() || frame.type != StreamFrame::kFirst) &&
         frame.end() < StreamFrame::kEnd;
}

void writeStreamHeader(uint8_t type, uint64_t offset, size_t length, uint8_t* out) {
  out[0] = type;
  store16(out + 1, static_cast<uint16_t>(offset >> 32));
  store32(out + 3, static_cast<uint32_t>(offset));
  store16(out + 7, static_cast<uint16_t>(length));
}

size_t cutStreamUnit(uint8_t type, Packet& unit, size_t size, Packet& rest) {
  StreamFrame frame;
  frame.type = type;
  if (unit.size() <= size || !readStreamUnit(unit.view(), frame)) return 0;
  size_t prefix = unit.size() - frame.bytes.size();
  if (size <= prefix) return 0;
  size_t stays = size - prefix;
  size_t moves = unit.size() - size;
  if (rest.tailroom() < prefix + moves) return 0;
  std::memcpy(rest.append(prefix), unit.data(), prefix);
  std::memcpy(rest.append(moves), unit.data() + size, moves);
  unit.setSize(size);
  return stays;
}

void writeFrame(Writer& out, const StreamCreditFrame& frame) {
  out.u8(kFrame<StreamCreditFrame>.number);
  out.varint(frame.stream.value());
  out.varint(frame.limit);
}

void writeFrame(Writer& out, const StreamResetFrame& frame) {
  out.u8(kFrame<StreamResetFrame>.number);
  out.varint(frame.stream.value());
  out.varint(frame.code);
}

namespace {
template <typename F>
void writeNumber(Writer& out) {
  out.u8(kFrame<F>.number);
}

/// No frame has this type. So a reader that does not skip the content finds the datagram malformed.
constexpr uint8_t kNoType = 0x3f;

void writeOptional(Writer& out, uint8_t type, uint16_t size) {
  out.u8(type);
  out.u16(size);
  for (uint16_t i = 0; i < size; ++i) out.u8(kNoType);
}
}  // namespace

void writeFrame(Writer& out, const PingFrame&) {
  writeNumber<PingFrame>(out);
}

void writeFrame(Writer& out, const PathChallengeFrame& frame) {
  writeNumber<PathChallengeFrame>(out);
  out.bytes(frame.token);
}

void writeFrame(Writer& out, const PathResponseFrame& frame) {
  writeNumber<PathResponseFrame>(out);
  out.bytes(frame.token);
}

void writeFrame(Writer& out, const SkipFrame& frame) {
  writeNumber<SkipFrame>(out);
  out.u16(frame.flow.value());
  out.varint(frame.first.value());
  out.varint(frame.count);
}

void writeFrame(Writer& out, const SubflowStatusFrame& frame) {
  writeNumber<SubflowStatusFrame>(out);
  out.u8(frame.subflow.value());
  out.varint(frame.sequence);
  out.u8(frame.available ? 1 : 0);
}

void writeFrame(Writer& out, const CloseFrame& frame) {
  writeNumber<CloseFrame>(out);
  out.varint(frame.reason);
}

void writeFrame(Writer& out, const RecoveredFrame& frame) {
  writeNumber<RecoveredFrame>(out);
  out.u8(frame.subflow.value());
  out.varint(frame.first.value());
  out.varint(frame.count);
}

void writeFrame(Writer& out, const SubflowPreferenceFrame& frame) {
  writeNumber<SubflowPreferenceFrame>(out);
  out.u8(frame.subflow.value());
  out.varint(frame.sequence);
  out.u8(static_cast<uint8_t>(frame.preference.use));
  out.u8(frame.preference.weight);
  out.u8(frame.preference.uplink);
  out.varint(frame.preference.ceiling);
}

void writeFrame(Writer& out, const RenewKeysFrame& frame) {
  writeNumber<RenewKeysFrame>(out);
  out.u32(frame.handshake);
}

void writeFrame(Writer& out, const KeysReadyFrame& frame) {
  writeNumber<KeysReadyFrame>(out);
  out.u32(frame.handshake);
  out.u8(frame.ready ? 1 : 0);
}

void writeFrame(Writer& out, const ParamsFrame& frame) {
  std::array<uint8_t, kLargestParams> space;
  Writer entries(space);
  writeParams(entries, frame.params, frame.grease);
  writeNumber<ParamsFrame>(out);
  out.u16(static_cast<uint16_t>(entries.size()));
  out.bytes({space.data(), entries.size()});
}

void writeFrame(Writer& out, const SubflowNameFrame& frame) {
  writeNumber<SubflowNameFrame>(out);
  out.u16(static_cast<uint16_t>(frame.name.size()));
  out.bytes({reinterpret_cast<const uint8_t*>(frame.name.data()), frame.name.size()});
}

void writeFrame(Writer& out, const ObservedAddressFrame& frame) {
  const Address& address = frame.address.address;
  writeNumber<ObservedAddressFrame>(out);
  out.u16(static_cast<uint16_t>(address.view().empty() ? 0 : address.view().size() + 2));
  if (!address.view().empty()) writeEndpoint(out, frame.address);
}

void writeFrame(Writer& out, const OptionalFrame& frame) {
  writeOptional(out, frame.type, frame.size);
}

void writeFrame(Writer& out, const OptionalAskingFrame& frame) {
  writeOptional(out, frame.type, frame.size);
}

void writeParityTailHeader(Writer& out, const ParityTailFrame& tail) {
  writeNumber<ParityTailFrame>(out);
  out.u16(tail.block.value());
  out.u8(tail.index);
  out.u16(tail.offset);
  out.u16(static_cast<uint16_t>(tail.part.size()));
}

bool writeFrame(Writer& out, const AckFrame& ack) {
  size_t size = (ack.received ? 2 + kReceiveTimeSize : 2) + varintSize(ack.ranges[0].last.value()) +
                varintSize(static_cast<uint64_t>(ack.delay.count())) + 1 +
                varintSize(ack.ecn.ect0) + varintSize(ack.ecn.ect1) + varintSize(ack.ecn.ce);
  size_t count = 0;
  for (; count < ack.count; ++count) {
    size += varintSize(ack.ranges[count].last - ack.ranges[count].first);
    if (count > 0) size += varintSize(ack.ranges[count - 1].first - ack.ranges[count].last - 2);
    if (size > out.remaining()) break;
  }
  if (count == 0) return false;
  out.u8(ack.received ? kFrame<TimedAckFrame>.number : kFrame<AckFrame>.number);
  out.u8(ack.subflow.value());
  out.varint(ack.ranges[0].last.value());
  out.varint(static_cast<uint64_t>(ack.delay.count()));
  out.varint(count);
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out.varint(ack.ranges[i - 1].first - ack.ranges[i].last - 2);
    out.varint(ack.ranges[i].last - ack.ranges[i].first);
  }
  out.varint(ack.ecn.ect0);
  out.varint(ack.ecn.ect1);
  out.varint(ack.ecn.ce);
  if (ack.received) out.u32(ack.received->micros << 1 | (ack.received->ofRun ? 1 : 0));
  return out.ok();
}

void writeDataHeader(FlowNumber flow, Dsn dsn, size_t length, uint8_t* out) {
  out[0] = kFrame<DataFrame>.number;
  store16(out + 1, flow.value());
  store32(out + 3, static_cast<uint32_t>(dsn.value()));
  store16(out + 7, static_cast<uint16_t>(length));
}

}  // namespace braid
