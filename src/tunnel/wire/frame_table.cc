#include "tunnel/wire/frame_table.h"

#include <algorithm>
#include <type_traits>

#include "tunnel/wire/frame_payloads.h"

namespace braid {
namespace {

// One parser for each type of frame. `in` is behind the type byte. A parser returns false when a
// value is not allowed. When there are too few bytes, `in` is not ok afterwards; readAs() checks
// that.

bool readFields(Reader&, PingFrame&) {
  return true;
}

bool readToken(Reader& in, PathToken& token) {
  ByteView bytes = in.take(token.size());
  if (!bytes.empty()) std::copy(bytes.begin(), bytes.end(), token.begin());
  return !bytes.empty();
}

bool readFields(Reader& in, PathChallengeFrame& challenge) {
  return readToken(in, challenge.token);
}

bool readFields(Reader& in, PathResponseFrame& response) {
  return readToken(in, response.token);
}

bool readFields(Reader& in, AckFrame& ack) {
  ack.subflow = SubflowId(in.u8());
  PacketNumber largest(in.varint());
  uint64_t delay = in.varint();
  ack.count = in.varint();
  if (!in.ok() || ack.count == 0 || ack.count > kMaxAckRanges) return false;
  ack.delay = std::chrono::microseconds(std::min<uint64_t>(delay, 1u << 24));
  for (size_t i = 0; i < ack.count; ++i) {
    if (i > 0) {
      uint64_t gap = in.varint();  // unacknowledged packets between the ranges, minus one
      if (gap + 2 > ack.ranges[i - 1].first.value()) return false;
      largest = ack.ranges[i - 1].first - gap - 2;
    }
    uint64_t length = in.varint();  // packets in the range, minus one
    if (length > largest.value()) return false;
    ack.ranges[i] = {largest - length, largest};
  }
  ack.ecn = {in.varint(), in.varint(), in.varint()};
  return true;
}

bool readFields(Reader& in, TimedAckFrame& timed) {
  if (!readFields(in, timed.ack)) return false;
  uint32_t time = in.u32();
  timed.ack.received = ReceiveTime{time >> 1, (time & 1) != 0};
  return true;
}

bool readFields(Reader& in, DataFrame& data) {
  data.flow = FlowNumber(in.u16());
  data.dsn = in.u32();
  data.payload = in.take(in.u16());
  return !data.payload.empty();
}

bool readFields(Reader& in, SkipFrame& skip) {
  skip.flow = FlowNumber(in.u16());
  skip.first = Dsn(in.varint());
  skip.count = in.varint();
  return skip.flow < kDatagramFlow && skip.count >= 1 && skip.count <= kMaxSkip;
}

bool readFields(Reader& in, SubflowStatusFrame& status) {
  status.subflow = SubflowId(in.u8());
  status.sequence = in.varint();
  uint8_t available = in.u8();
  status.available = available == 1;
  return available <= 1;
}

bool readFields(Reader& in, SubflowPreferenceFrame& frame) {
  frame.subflow = SubflowId(in.u8());
  frame.sequence = in.varint();
  uint8_t use = in.u8();
  PathPreference& p = frame.preference;
  p.use = static_cast<PathUse>(use);
  p.weight = in.u8();
  p.uplink = in.u8();
  p.ceiling = in.varint();
  bool known = use <= static_cast<uint8_t>(PathUse::kBackup);
  bool weighs = p.weight >= 1 && p.weight <= PathPreference::kMaxWeight;
  bool caps = p.ceiling >= PathPreference::kMinCeiling && p.ceiling <= PathPreference::kMaxCeiling;
  return known && weighs && (caps || p.ceiling == 0);
}

bool readFields(Reader& in, RenewKeysFrame& renew) {
  renew.handshake = in.u32();
  return true;
}

bool readFields(Reader& in, KeysReadyFrame& answer) {
  answer.handshake = in.u32();
  uint8_t ready = in.u8();
  answer.ready = ready == 1;
  return ready <= 1;
}

bool readFields(Reader& in, CloseFrame& close) {
  close.reason = in.varint();
  return true;
}

bool readFields(Reader& in, ParityFrame& parity) {
  parity.block = BlockId(in.u16());
  parity.index = in.u8();
  parity.parities = in.u8();
  parity.symbolSize = in.u16();
  if (parity.parities > kMaxBlockParities || parity.index >= parity.parities ||
      parity.symbolSize == 0)
    return false;
  parity.symbols = takeSymbols(in);
  if (parity.symbols.empty()) return false;
  parity.part = in.take(in.u16());
  return !parity.part.empty() && parity.part.size() <= parity.symbolSize;
}

bool readFields(Reader& in, ParityTailFrame& tail) {
  tail.block = BlockId(in.u16());
  tail.index = in.u8();
  tail.offset = in.u16();
  tail.part = in.take(in.u16());
  return !tail.part.empty();
}

bool readFields(Reader& in, RecoveredFrame& recovered) {
  recovered.subflow = SubflowId(in.u8());
  recovered.first = PacketNumber(in.varint());
  recovered.count = in.varint();
  return recovered.count >= 1 && recovered.count <= kMaxBlockSymbols;
}

bool readFields(Reader& in, ParamsFrame& frame) {
  ByteView entries = in.take(in.u16());
  return in.ok() && readParams(entries, frame.params);
}

bool readFields(Reader& in, StreamFrame& frame) {
  frame.offset = uint64_t{in.u16()} << 32;
  frame.offset |= in.u32();
  ByteView unit = in.take(in.u16());
  return in.ok() && readStreamUnit(unit, frame);
}

bool readFields(Reader& in, StreamCreditFrame& credit) {
  credit.stream = StreamId(in.varint());
  credit.limit = in.varint();
  return true;
}

bool readFields(Reader& in, StreamResetFrame& reset) {
  reset.stream = StreamId(in.varint());
  reset.code = in.varint();
  return true;
}

bool readFields(Reader& in, SubflowNameFrame& frame) {
  ByteView bytes = in.take(in.u16());
  std::string_view name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (isName(name)) frame.name = name;
  return true;
}

bool readFields(Reader& in, ObservedAddressFrame& frame) {
  Reader content(in.take(in.u16()));
  size_t size = content.remaining();
  if (size == 4 + 2 || size == 16 + 2) frame.address = takeEndpoint(content, size == 4 + 2);
  return true;
}

bool readFields(Reader& in, OptionalFrame& frame) {
  frame.size = in.u16();
  in.take(frame.size);
  return true;
}

bool readFields(Reader& in, OptionalAskingFrame& frame) {
  frame.size = in.u16();
  in.take(frame.size);
  return true;
}

template <typename F>
bool isOf(uint8_t type) {
  return type >= kFrame<F>.number && type <= kFrame<F>.last;
}

template <typename F>
bool readAs(uint8_t type, Reader& in, std::optional<WireFrame>& out) {
  F frame;
  if constexpr (kFrame<F>.number != kFrame<F>.last) frame.type = type;
  if (readFields(in, frame) && in.ok()) out = frame;
  return true;
}

/// Reads a frame of that type, which may be any type of the table; nullopt when the type is unknown
/// or the frame is malformed.
template <typename... F>
std::optional<WireFrame> readFrame(uint8_t type, Reader& in,
                                   std::type_identity<std::variant<F...>>) {
  std::optional<WireFrame> frame;
  static_cast<void>(((isOf<F>(type) && readAs<F>(type, in, frame)) || ...));
  return frame;
}

}  // namespace

std::optional<WireFrame> FrameReader::next() {
  while (reader_.remaining() > 0) {
    uint8_t type = reader_.u8();
    if (type == kPaddingNumber) continue;
    std::optional<WireFrame> frame = readFrame(type, reader_, std::type_identity<WireFrame>{});
    ok_ = frame.has_value();
    return frame;
  }
  return std::nullopt;
}

}  // namespace braid
