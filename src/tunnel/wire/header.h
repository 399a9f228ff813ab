#pragma once

// The clear header of a session datagram (docs/protocol.md section 3), and the sizes of what surrounds its
// frames.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "tunnel/wire/numbers.h"

namespace braid {

/// Datagram header: type byte, session id, subflow id, low 32 bits of the packet number.
inline constexpr size_t kHeaderSize = 10;
/// Tag of the AEAD at the end of a datagram, bytes (RFC 5116: 16 for each of the ciphers in use).
inline constexpr size_t kTagSize = 16;
/// Smallest session datagram: header, one frame byte, AEAD tag.
inline constexpr size_t kMinDatagram = kHeaderSize + 1 + kTagSize;
/// Version of the datagram header (docs/protocol.md section 3).
inline constexpr uint8_t kWireVersion = 0;

struct DatagramHeader {
  uint8_t version = kWireVersion;
  uint8_t epoch = 0;  ///< low two bits of the key epoch
  uint32_t session = 0;
  SubflowId subflow{};
  uint32_t packetNumber = 0;  ///< low 32 bits
  uint8_t generation = 0;     ///< low two bits of the generation of keys
};

/// True when the first byte is a session datagram's of any version.
constexpr bool isSessionDatagram(ByteView b) {
  return !b.empty() && (b[0] & 0xc0) == 0x40;
}

/// Writes kHeaderSize bytes to `out`.
void writeHeader(const DatagramHeader& header, uint8_t* out);
/// nullopt when shorter than kMinDatagram or not a session datagram.
std::optional<DatagramHeader> readHeader(ByteView datagram);

/// The number nearest to `expected` (largest + 1) with these low 32 bits (RFC 9000 appendix A.3).
uint64_t expandNumber(uint32_t low, uint64_t expected);
inline PacketNumber expandPacketNumber(uint32_t low, PacketNumber expected) {
  return PacketNumber(expandNumber(low, expected.value()));
}
inline Dsn expandDsn(uint32_t low, Dsn expected) {
  return Dsn(expandNumber(low, expected.value()));
}

}  // namespace braid
