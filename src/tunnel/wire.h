#pragma once

// The wire format of docs/protocol.md: session datagrams and their frames. Encoding and decoding only.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/bytes.h"

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
/// Whether the sender of this frame wants a subflow used; the largest sequence counts.
struct SubflowStatusFrame {
  uint8_t subflow = 0;
  uint64_t sequence = 0;
  bool available = true;
};
struct CloseFrame {
  uint64_t reason = 0;  ///< 0: the daemon stops
};

using WireFrame = std::variant<PingFrame, AckFrame, PathChallengeFrame, PathResponseFrame, DataFrame,
                               SkipFrame, SubflowStatusFrame, CloseFrame>;

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
/// Type, flow, DSN and length; the payload follows.
void writeDataHeader(uint16_t flow, uint64_t dsn, size_t length, uint8_t* out);

}  // namespace braid
