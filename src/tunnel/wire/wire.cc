#include "tunnel/wire/wire.h"

#include <algorithm>

namespace braid {

namespace {
constexpr uint8_t kFixedBits = 0x40;
constexpr uint8_t kReservedBits = 0x03;
/// Packet numbers between two runs of a coding block; farther apart they are groups of their own. Ours.
constexpr uint64_t kMaxRunGap = 1 << 14;

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
      case FrameType::kParity:
        return readParity();
      case FrameType::kParityTail: {
        ParityTailFrame tail;
        tail.block = reader_.u16();
        tail.index = reader_.u8();
        tail.offset = reader_.u16();
        tail.part = reader_.take(reader_.u16());
        if (tail.part.empty()) return malformed();
        frame = tail;
        break;
      }
      case FrameType::kRecovered: {
        RecoveredFrame recovered;
        recovered.subflow = reader_.u8();
        recovered.first = reader_.varint();
        recovered.count = reader_.varint();
        if (recovered.count == 0 || recovered.count > kMaxBlockSymbols) return malformed();
        frame = recovered;
        break;
      }
      case FrameType::kSubflowPreference:
        return readPreference();
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

std::optional<WireFrame> FrameReader::readPreference() {
  SubflowPreferenceFrame frame;
  frame.subflow = reader_.u8();
  frame.sequence = reader_.varint();
  uint8_t use = reader_.u8();
  PathPreference& p = frame.preference;
  p.use = static_cast<PathUse>(use);
  p.weight = reader_.u8();
  p.uplink = reader_.u8();
  p.ceiling = reader_.varint();
  bool known = use <= static_cast<uint8_t>(PathUse::kBackup);
  bool weighs = p.weight >= 1 && p.weight <= PathPreference::kMaxWeight;
  bool caps = p.ceiling >= PathPreference::kMinCeiling && p.ceiling <= PathPreference::kMaxCeiling;
  if (!reader_.ok() || !known || !weighs || !(caps || p.ceiling == 0)) return malformed();
  return frame;
}

// Groups of one subflow each: its number, the first packet number, how many runs; of the first run its
// length, of each further one the gap before it and its length. Gaps and lengths are less one. describe()
// relies on what is checked here.
std::optional<WireFrame> FrameReader::readParity() {
  ParityFrame parity;
  parity.block = reader_.u16();
  parity.index = reader_.u8();
  parity.parities = reader_.u8();
  parity.symbolSize = reader_.u16();
  if (parity.parities > kMaxBlockParities || parity.index >= parity.parities || parity.symbolSize == 0)
    return malformed();
  Reader begin = reader_;
  size_t symbols = 0;
  size_t groups = reader_.u8();
  for (size_t group = 0; group < groups; ++group) {
    reader_.take(5);
    size_t runs = reader_.u8();
    if (!reader_.ok() || runs == 0) return malformed();
    for (size_t run = 0; run < runs; ++run) {
      uint64_t gap = run > 0 ? reader_.varint() : 0;
      uint64_t length = reader_.varint();
      if (!reader_.ok() || gap >= kMaxRunGap || length >= kMaxBlockSymbols) return malformed();
      symbols += length + 1;
      if (symbols > kMaxBlockSymbols) return malformed();
    }
  }
  if (symbols == 0) return malformed();
  parity.symbols = begin.take(begin.remaining() - reader_.remaining());
  parity.part = reader_.take(reader_.u16());
  if (parity.part.empty() || parity.part.size() > parity.symbolSize) return malformed();
  return parity;
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

void writeFrame(Writer& out, const RecoveredFrame& frame) {
  writeType(out, FrameType::kRecovered);
  out.u8(frame.subflow);
  out.varint(frame.first);
  out.varint(frame.count);
}

void writeFrame(Writer& out, const SubflowPreferenceFrame& frame) {
  writeType(out, FrameType::kSubflowPreference);
  out.u8(frame.subflow);
  out.varint(frame.sequence);
  out.u8(static_cast<uint8_t>(frame.preference.use));
  out.u8(frame.preference.weight);
  out.u8(frame.preference.uplink);
  out.varint(frame.preference.ceiling);
}

namespace {
/// Calls visit(first range of a group, number of ranges in it): ranges of one subflow that follow each other.
template <typename F>
void forEachGroup(const BlockDescription& block, F&& visit) {
  for (size_t i = 0; i < block.rangeCount;) {
    size_t end = i + 1;
    while (end < block.rangeCount && block.ranges[end].subflow == block.ranges[i].subflow &&
           block.ranges[end].first > block.ranges[end - 1].first + block.ranges[end - 1].count &&
           block.ranges[end].first - block.ranges[end - 1].first - block.ranges[end - 1].count < kMaxRunGap)
      ++end;
    visit(&block.ranges[i], end - i);
    i = end;
  }
}

uint64_t gapBefore(const SymbolRange* range) {
  return range[0].first - range[-1].first - range[-1].count;
}
}  // namespace

size_t parityHeaderSize(const BlockDescription& block) {
  size_t size = 1 + 2 + 1 + 1 + 2 + 1 + 2;
  forEachGroup(block, [&](const SymbolRange* ranges, size_t count) {
    size += 6;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) size += varintSize(gapBefore(ranges + i) - 1);
      size += varintSize(ranges[i].count - 1);
    }
  });
  return size;
}

void writeParityHeader(Writer& out, const BlockDescription& block, size_t index, size_t part) {
  writeType(out, FrameType::kParity);
  out.u16(block.block);
  out.u8(static_cast<uint8_t>(index));
  out.u8(block.parities);
  out.u16(block.symbolSize);
  size_t groups = 0;
  forEachGroup(block, [&](const SymbolRange*, size_t) { ++groups; });
  out.u8(static_cast<uint8_t>(groups));
  forEachGroup(block, [&](const SymbolRange* ranges, size_t count) {
    out.u8(ranges->subflow);
    out.u32(static_cast<uint32_t>(ranges->first));
    out.u8(static_cast<uint8_t>(count));
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) out.varint(gapBefore(ranges + i) - 1);
      out.varint(ranges[i].count - 1);
    }
  });
  out.u16(static_cast<uint16_t>(part));
}

void writeParityTailHeader(Writer& out, const ParityTailFrame& tail) {
  writeType(out, FrameType::kParityTail);
  out.u16(tail.block);
  out.u8(tail.index);
  out.u16(tail.offset);
  out.u16(static_cast<uint16_t>(tail.part.size()));
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
