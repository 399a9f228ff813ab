#pragma once

// The clear header of a session datagram (docs/protocol.md section 3), and the sizes of what
// surrounds its frames.
//
// The versions of the protocol, and how two sides agree on one (docs/protocol.md section 2).
//
// The numbers in session datagrams, each with a type of its own (docs/protocol.md). Folders below
// this one do not know these types and use plain integers; their callers convert.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/number.h"

namespace braid {

/// The number N in the ALPN name `braid/N`.
using ProtocolVersion = uint8_t;

/// The versions that this build speaks, the highest first.
inline constexpr std::array<ProtocolVersion, 1> kProtocolVersions{2};

/// The highest version that both sides speak; nullopt: there is none. The lists need not be in
/// order.
constexpr std::optional<ProtocolVersion> highestCommon(std::span<const ProtocolVersion> own,
                                                       std::span<const ProtocolVersion> offered) {
  std::optional<ProtocolVersion> highest;
  for (ProtocolVersion version : own) {
    bool common = std::find(offered.begin(), offered.end(), version) != offered.end();
    if (common && (!highest || version > *highest)) highest = version;
  }
  return highest;
}

/// Number of a subflow of a session: 0..255, given by the initiator and never given to another
/// subflow (section 3).
using SubflowId = Number<struct SubflowIdTag, uint8_t>;

/// Number of a datagram of a subflow, in one direction (section 3): counts up from 0 by one for
/// each datagram, stays below 2^62, and is never used again. A header carries the low 32 bits.
using PacketNumber = Number<struct PacketNumberTag, uint64_t>;

/// Number of a flow of a session, in one direction (section 6). Numbers below kDatagramFlow
/// (frames.h) are for ordered flows, which are repaired; those from kOrderedDatagramFlow on wait
/// only a short time for missing packets. Numbers from kDatagramFlow on are for timely datagrams.
/// The sender gives the number. When it forgets a flow, another flow may take over its number.
using FlowNumber = Number<struct FlowNumberTag, uint16_t>;

/// Data sequence number (section 6): the number of a packet within a flow number, from 0 and below
/// 2^62. It continues when another flow takes over the flow number. A DATA frame carries the low 32
/// bits.
using Dsn = Number<struct DsnTag, uint64_t>;

/// Number of a coding block (section 8): counts up with each block of a session and direction,
/// modulo 2^16.
using BlockId = Number<struct BlockIdTag, uint16_t>;

/// Number of a stream of a session (section 13), below 2^62: even for streams that the session's
/// initiator opens, odd for those of its responder. Each side takes its numbers in order, and none
/// is used again.
using StreamId = Number<struct StreamIdTag, uint64_t>;

/// Datagram header: type byte, session id, subflow id, low 32 bits of the packet number.
inline constexpr size_t kHeaderSize = 10;
/// Bytes of the AEAD's tag at the end of a datagram (RFC 5116: 16 for each of the ciphers in use).
inline constexpr size_t kTagSize = 16;
/// Smallest session datagram: header, one frame byte, AEAD tag.
inline constexpr size_t kMinDatagram = kHeaderSize + 1 + kTagSize;
/// Version of the datagram header (docs/protocol.md section 3).
inline constexpr uint8_t kWireVersion = 0;

struct DatagramHeader {
  static constexpr uint8_t kFixedBits = 0x40;

  uint8_t version = kWireVersion;
  uint8_t epoch = 0;  ///< low two bits of the key epoch
  uint32_t session = 0;
  SubflowId subflow{};
  uint32_t packetNumber = 0;  ///< low 32 bits
  uint8_t generation = 0;     ///< low two bits of the generation of keys
};

/// True when the first byte is that of a session datagram of any version.
constexpr bool isSessionDatagram(ByteView b) {
  return !b.empty() && (b[0] & 0xc0) == 0x40;
}

/// Writes kHeaderSize bytes to `out`.
inline void writeHeader(const DatagramHeader& header, uint8_t* out) {
  out[0] = static_cast<uint8_t>(DatagramHeader::kFixedBits | header.version << 4 |
                                header.epoch << 2 | header.generation);
  store32(out + 1, header.session);
  out[5] = header.subflow.value();
  store32(out + 6, header.packetNumber);
}
/// Returns nullopt when the datagram is shorter than kMinDatagram or is not a session datagram.
inline std::optional<DatagramHeader> readHeader(ByteView datagram) {
  if (datagram.size() < kMinDatagram || !isSessionDatagram(datagram)) return std::nullopt;
  DatagramHeader header;
  header.version = datagram[0] >> 4 & 3;
  header.epoch = datagram[0] >> 2 & 3;
  header.generation = datagram[0] & 3;
  header.session = load32(&datagram[1]);
  header.subflow = SubflowId(datagram[5]);
  header.packetNumber = load32(&datagram[6]);
  return header;
}

/// The number nearest to `expected` (largest + 1) with these low 32 bits (RFC 9000 appendix A.3).
inline uint64_t expandNumber(uint32_t low, uint64_t expected) {
  constexpr uint64_t kWindow = uint64_t{1} << 32;
  constexpr uint64_t kHalf = kWindow / 2;
  uint64_t candidate = (expected & ~(kWindow - 1)) | low;
  if (candidate + kHalf <= expected) return candidate + kWindow;
  if (candidate > expected + kHalf && candidate >= kWindow) return candidate - kWindow;
  return candidate;
}
inline PacketNumber expandPacketNumber(uint32_t low, PacketNumber expected) {
  return PacketNumber(expandNumber(low, expected.value()));
}
inline Dsn expandDsn(uint32_t low, Dsn expected) {
  return Dsn(expandNumber(low, expected.value()));
}

}  // namespace braid
