#pragma once

// The wire format of docs/protocol.md: session datagrams and their frames. Encoding and decoding only.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/bytes.h"
#include "coding/block.h"
#include "scheduler/path/path_tiers.h"

namespace braid {

/// Datagram header: type byte, session id, subflow id, low 32 bits of the packet number.
inline constexpr size_t kHeaderSize = 10;
inline constexpr size_t kTagSize = 16;
/// Smallest session datagram: header, one frame byte, AEAD tag.
inline constexpr size_t kMinDatagram = kHeaderSize + 1 + kTagSize;
/// DATA frame before its payload: type, flow, DSN, length.
inline constexpr size_t kDataFrameHeader = 9;
/// What one inner packet costs in its own datagram, UDP and IP not counted.
inline constexpr size_t kDatagramOverhead = kHeaderSize + kDataFrameHeader + kTagSize;
/// Version of the datagram header (docs/protocol.md section 3).
inline constexpr uint8_t kWireVersion = 0;
/// Flow numbers from here on carry timely datagrams, below it ordered and repaired packets.
inline constexpr uint16_t kDatagramFlow = 0x8000;
/// An ACK is sent at the latest so long after the packet that asks for it (docs/protocol.md section 7).
inline constexpr auto kMaxAckDelay = std::chrono::milliseconds(5);
/// Most ranges an ACK frame carries.
inline constexpr size_t kMaxAckRanges = 32;

struct DatagramHeader {
  uint8_t version = kWireVersion;
  uint8_t epoch = 0;  ///< low two bits of the key epoch
  uint32_t session = 0;
  uint8_t subflow = 0;
  uint32_t packetNumber = 0;  ///< low 32 bits
};

/// True when the first byte is a session datagram's of any version.
constexpr bool isSessionDatagram(ByteView b) {
  return !b.empty() && (b[0] & 0xc0) == 0x40;
}

void writeHeader(const DatagramHeader& header, uint8_t* out);
/// nullopt when shorter than kMinDatagram, not a session datagram, or a reserved bit is set.
std::optional<DatagramHeader> readHeader(ByteView datagram);
/// The packet number nearest to largest+1 with these low 32 bits (RFC 9000 appendix A.3).
uint64_t expandPacketNumber(uint32_t low, uint64_t expected);
/// The same for a flow's 32-bit DSN.
inline uint64_t expandDsn(uint32_t low, uint64_t expected) {
  return expandPacketNumber(low, expected);
}

enum class FrameType : uint8_t {
  kPadding = 0x00,
  kPing = 0x01,
  kAck = 0x02,
  kPathChallenge = 0x03,
  kPathResponse = 0x04,
  kData = 0x05,
  kSkip = 0x06,
  kSubflowStatus = 0x07,
  kClose = 0x08,
  kParity = 0x09,
  kParityTail = 0x0a,
  kRecovered = 0x0b,
  kSubflowPreference = 0x0c,
};

struct PingFrame {};
using PathToken = std::array<uint8_t, 8>;
struct PathChallengeFrame {
  PathToken token;
};
struct PathResponseFrame {
  PathToken token;
};
/// ECN counts of the packets received on a subflow so far (RFC 9000 section 19.3.2).
struct EcnCounts {
  uint64_t ect0 = 0, ect1 = 0, ce = 0;
};
struct AckFrame {
  struct Range {
    uint64_t first, last;  ///< packet numbers, inclusive
  };
  uint8_t subflow = 0;
  std::chrono::microseconds delay{};
  EcnCounts ecn;
  size_t count = 0;
  std::array<Range, kMaxAckRanges> ranges;  ///< from the largest down, disjoint, not adjacent
};
struct DataFrame {
  uint16_t flow = 0;
  uint32_t dsn = 0;  ///< low 32 bits
  ByteView payload;
};
/// The sender gave up these packets of an ordered flow: they will not come (again).
struct SkipFrame {
  uint16_t flow = 0;
  uint64_t first = 0;  ///< DSN
  uint64_t count = 0;  ///< 1..kMaxSkip
};
inline constexpr uint64_t kMaxSkip = 4096;
/// PARITY and RECOVERED frames of one datagram that a receiver acts on, and a sender packs at most: each may
/// cost a hundred look-ups (docs/protocol.md section 11).
inline constexpr size_t kMaxCostlyFrames = 16;
/// Whether the sender of this frame wants a subflow used; the largest sequence counts.
struct SubflowStatusFrame {
  uint8_t subflow = 0;
  uint64_t sequence = 0;
  bool available = true;
};
/// How the initiator wants the responder to use a subflow; the largest sequence counts.
struct SubflowPreferenceFrame {
  uint8_t subflow = 0;
  uint64_t sequence = 0;
  PathPreference preference{};  ///< within its ranges
};
struct CloseFrame {
  uint64_t reason = 0;  ///< 0: the daemon stops
};
/// A parity of a coding block, or as much of it as fits this datagram (CoFUSO section 5.1).
struct ParityFrame {
  uint16_t block = 0;
  uint8_t index = 0;        ///< below `parities`
  uint8_t parities = 0;     ///< M, 1..kMaxBlockParities
  uint16_t symbolSize = 0;  ///< bytes of the whole parity, at least 1
  ByteView symbols;         ///< which symbols, as on the wire: checked, read by ParityFrame::describe()
  ByteView part;            ///< the first bytes of the parity

  /// The block. `expected(subflow)` is the packet number after the largest one seen there.
  template <typename Expected>
  BlockDescription describe(Expected&& expected) const;
};
/// The rest of a parity whose PARITY frame came before.
struct ParityTailFrame {
  uint16_t block = 0;
  uint8_t index = 0;
  uint16_t offset = 0;
  ByteView part;
};
/// The data of these packets came by decoding: they need not be sent again. The packets still count as what
/// their subflow's ACKs say.
struct RecoveredFrame {
  uint8_t subflow = 0;
  uint64_t first = 0;  ///< packet number
  uint64_t count = 0;  ///< 1..kMaxBlockSymbols
};

using WireFrame = std::variant<PingFrame, AckFrame, PathChallengeFrame, PathResponseFrame, DataFrame,
                               SkipFrame, SubflowStatusFrame, CloseFrame, ParityFrame, ParityTailFrame,
                               RecoveredFrame, SubflowPreferenceFrame>;

/// Reads the frames of an opened datagram one by one, skipping PADDING.
class FrameReader {
 public:
  explicit FrameReader(ByteView frames) : reader_(frames) {}
  /// The next frame; nullopt at the end or at a malformed or unknown frame (then ok() is false).
  std::optional<WireFrame> next();
  bool ok() const { return ok_; }

 private:
  std::optional<WireFrame> malformed() {
    ok_ = false;
    return std::nullopt;
  }
  std::optional<WireFrame> readAck();
  std::optional<WireFrame> readParity();
  std::optional<WireFrame> readPreference();
  Reader reader_;
  bool ok_ = true;
};

void writeFrame(Writer& out, const PingFrame&);
void writeFrame(Writer& out, const PathChallengeFrame&);
void writeFrame(Writer& out, const PathResponseFrame&);
void writeFrame(Writer& out, const SkipFrame&);
void writeFrame(Writer& out, const SubflowStatusFrame&);
void writeFrame(Writer& out, const CloseFrame&);
/// Writes as many of the largest ranges as fit (at least one, else nothing and false).
bool writeFrame(Writer& out, const AckFrame&);
void writeFrame(Writer& out, const RecoveredFrame&);
void writeFrame(Writer& out, const SubflowPreferenceFrame&);
/// PARITY up to and with the length of the part; `part` bytes of the parity follow.
void writeParityHeader(Writer& out, const BlockDescription& block, size_t index, size_t part);
/// Bytes that writeParityHeader() takes.
size_t parityHeaderSize(const BlockDescription& block);
/// PARITY_TAIL up to and with the length of the part, which follows.
void writeParityTailHeader(Writer& out, const ParityTailFrame& tail);
inline constexpr size_t kParityTailHeader = 8;
/// Type, flow, DSN and length; the payload follows.
void writeDataHeader(uint16_t flow, uint64_t dsn, size_t length, uint8_t* out);

template <typename Expected>
BlockDescription ParityFrame::describe(Expected&& expected) const {
  BlockDescription b;
  b.block = block;
  b.parities = parities;
  b.symbolSize = symbolSize;
  Reader in(symbols);
  for (size_t groups = in.u8(); groups > 0; --groups) {
    uint8_t subflow = in.u8();
    uint64_t pn = expandPacketNumber(in.u32(), expected(subflow));
    for (size_t run = 0, runs = in.u8(); run < runs; ++run) {
      if (run > 0) pn += in.varint() + 1;
      uint64_t count = in.varint() + 1;
      b.ranges[b.rangeCount++] = {subflow, pn, static_cast<uint32_t>(count)};
      pn += count;
    }
  }
  return b;
}

}  // namespace braid
