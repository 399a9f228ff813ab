#include "tunnel/wire/stream_frames.h"

#include <algorithm>
#include <cstring>

#include "tunnel/wire/frame_traits.h"

namespace braid {

namespace {
void writeEndpoint(Writer& out, const Endpoint& endpoint) {
  out.bytes(endpoint.address.view());
  out.u16(endpoint.port);
}

Endpoint readEndpoint(Reader& in, bool isV4) {
  ByteView address = in.take(isV4 ? 4 : 16);
  uint16_t port = in.u16();
  if (!in.ok()) return {};
  return {isV4 ? Address::v4(address) : Address::v6(address), port};
}
}  // namespace

void writeStreamPrefix(Writer& out, StreamId stream, const StreamOpening* opening) {
  out.varint(stream.value());
  if (!opening) return;
  out.u8(opening->ends.destination.address.isV4() ? 4 : 6);
  writeEndpoint(out, opening->ends.source);
  writeEndpoint(out, opening->ends.destination);
  out.varint(opening->credit);
}

bool readStreamUnit(ByteView unit, StreamFrame& frame) {
  Reader in(unit);
  frame.stream = StreamId(in.varint());
  frame.opening.reset();
  if (frame.type & StreamFrame::kOpen) {
    uint8_t version = in.u8();
    if (version != 4 && version != 6) return false;
    StreamOpening& opening = frame.opening.emplace();
    opening.ends.source = readEndpoint(in, version == 4);
    opening.ends.destination = readEndpoint(in, version == 4);
    opening.credit = in.varint();
  }
  if (!in.ok()) return false;
  frame.payload = unit;
  frame.bytes = in.take(in.remaining());
  return (!frame.bytes.empty() || frame.type != StreamFrame::kFirst) && frame.end() < StreamFrame::kEnd;
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

}  // namespace braid
