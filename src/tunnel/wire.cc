#include "tunnel/wire.h"

#include <algorithm>

namespace braid {

namespace {
constexpr uint8_t kFixedBits = 0x40;
constexpr uint8_t kReservedBits = 0x03;

void writeType(Writer& out, FrameType type) {
  out.u8(static_cast<uint8_t>(type));
}

PathToken readToken(Reader& in) {
  PathToken token{};
  ByteView bytes = in.take(token.size());
  if (!bytes.empty()) std::memcpy(token.data(), bytes.data(), token.size());
  return token;
}
}  // namespace

void writeHeader(const DatagramHeader& header, uint8_t* out) {
  out[0] = static_cast<uint8_t>(kFixedBits | header.version << 4 | header.epoch << 2);
  store32(out + 1, header.session);
  out[5] = header.subflow;
  store32(out + 6, header.packetNumber);
}

std::optional<DatagramHeader> readHeader(ByteView datagram) {
  if (datagram.size() < kMinDatagram || !isSessionDatagram(datagram) || (datagram[0] & kReservedBits)) {
    return std::nullopt;
  }
  DatagramHeader header;
  header.version = datagram[0] >> 4 & 3;
  header.epoch = datagram[0] >> 2 & 3;
  header.session = load32(&datagram[1]);
  header.subflow = datagram[5];
  header.packetNumber = load32(&datagram[6]);
  return header;
}

uint64_t expandPacketNumber(uint32_t low, uint64_t expected) {
  constexpr uint64_t kWindow = uint64_t{1} << 32;
  constexpr uint64_t kHalf = kWindow / 2;
  uint64_t candidate = (expected & ~(kWindow - 1)) | low;
  if (candidate + kHalf <= expected) return candidate + kWindow;
  if (candidate > expected + kHalf && candidate >= kWindow) return candidate - kWindow;
  return candidate;
}

std::optional<WireFrame> FrameReader::next() {
  while (reader_.remaining() > 0) {
    std::optional<WireFrame> frame;
    switch (static_cast<FrameType>(reader_.u8())) {
      case FrameType::kPadding:
        continue;
      case FrameType::kPing:
        return PingFrame{};
      case FrameType::kAck:
        return readAck();
      case FrameType::kPathChallenge:
        frame = PathChallengeFrame{readToken(reader_)};
        break;
      case FrameType::kPathResponse:
        frame = PathResponseFrame{readToken(reader_)};
        break;
      case FrameType::kData: {
        DataFrame data;
        data.flow = reader_.u16();
        data.dsn = reader_.u32();
        data.payload = reader_.take(reader_.u16());
        if (data.payload.empty()) return malformed();
        frame = data;
        break;
      }
      case FrameType::kSkip: {
        SkipFrame skip;
        skip.flow = reader_.u16();
        skip.first = reader_.varint();
        skip.count = reader_.varint();
        if (skip.flow >= kDatagramFlow || skip.count == 0 || skip.count > kMaxSkip) return malformed();
        frame = skip;
        break;
      }
      case FrameType::kSubflowStatus: {
        SubflowStatusFrame status;
        status.subflow = reader_.u8();
        status.sequence = reader_.varint();
        uint8_t available = reader_.u8();
        if (available > 1) return malformed();
        status.available = available == 1;
        frame = status;
        break;
      }
      case FrameType::kClose:
        frame = CloseFrame{reader_.varint()};
        break;
      default:
        return malformed();
    }
    return reader_.ok() ? frame : malformed();
  }
  return std::nullopt;
}

std::optional<WireFrame> FrameReader::readAck() {
  AckFrame ack;
  ack.subflow = reader_.u8();
  uint64_t largest = reader_.varint();
  uint64_t delay = reader_.varint();
  ack.count = reader_.varint();
  if (!reader_.ok() || ack.count == 0 || ack.count > kMaxAckRanges) return malformed();
  ack.delay = std::chrono::microseconds(std::min<uint64_t>(delay, 1u << 24));
  for (size_t i = 0; i < ack.count; ++i) {
    if (i > 0) {
      uint64_t gap = reader_.varint();  // unacknowledged packets between the ranges, minus one
      if (gap + 2 > ack.ranges[i - 1].first) return malformed();
      largest = ack.ranges[i - 1].first - gap - 2;
    }
    uint64_t length = reader_.varint();  // packets in the range, minus one
    if (length > largest) return malformed();
    ack.ranges[i] = {largest - length, largest};
  }
  ack.ecn = {reader_.varint(), reader_.varint(), reader_.varint()};
  if (!reader_.ok()) return malformed();
  return ack;
}

void writeFrame(Writer& out, const PingFrame&) {
  writeType(out, FrameType::kPing);
}

void writeFrame(Writer& out, const PathChallengeFrame& frame) {
  writeType(out, FrameType::kPathChallenge);
  out.bytes(frame.token);
}

void writeFrame(Writer& out, const PathResponseFrame& frame) {
  writeType(out, FrameType::kPathResponse);
  out.bytes(frame.token);
}

void writeFrame(Writer& out, const SkipFrame& frame) {
  writeType(out, FrameType::kSkip);
  out.u16(frame.flow);
  out.varint(frame.first);
  out.varint(frame.count);
}

void writeFrame(Writer& out, const SubflowStatusFrame& frame) {
  writeType(out, FrameType::kSubflowStatus);
  out.u8(frame.subflow);
  out.varint(frame.sequence);
  out.u8(frame.available ? 1 : 0);
}

void writeFrame(Writer& out, const CloseFrame& frame) {
  writeType(out, FrameType::kClose);
  out.varint(frame.reason);
}

bool writeFrame(Writer& out, const AckFrame& ack) {
  size_t size = 2 + varintSize(ack.ranges[0].last) + varintSize(static_cast<uint64_t>(ack.delay.count())) +
                1 + varintSize(ack.ecn.ect0) + varintSize(ack.ecn.ect1) + varintSize(ack.ecn.ce);
  size_t count = 0;
  for (; count < ack.count; ++count) {
    size += varintSize(ack.ranges[count].last - ack.ranges[count].first);
    if (count > 0) size += varintSize(ack.ranges[count - 1].first - ack.ranges[count].last - 2);
    if (size > out.remaining()) break;
  }
  if (count == 0) return false;
  writeType(out, FrameType::kAck);
  out.u8(ack.subflow);
  out.varint(ack.ranges[0].last);
  out.varint(static_cast<uint64_t>(ack.delay.count()));
  out.varint(count);
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out.varint(ack.ranges[i - 1].first - ack.ranges[i].last - 2);
    out.varint(ack.ranges[i].last - ack.ranges[i].first);
  }
  out.varint(ack.ecn.ect0);
  out.varint(ack.ecn.ect1);
  out.varint(ack.ecn.ce);
  return out.ok();
}

void writeDataHeader(uint16_t flow, uint64_t dsn, size_t length, uint8_t* out) {
  out[0] = static_cast<uint8_t>(FrameType::kData);
  store16(out + 1, flow);
  store32(out + 3, static_cast<uint32_t>(dsn));
  store16(out + 7, static_cast<uint16_t>(length));
}

}  // namespace braid
