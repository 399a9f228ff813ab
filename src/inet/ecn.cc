#include "inet/ecn.h"

#include "inet/checksum.h"
#include "inet/protocol.h"

namespace braid {

namespace {

/// 4, 6, or 0 for what is no IP packet.
unsigned ipVersion(ByteView packet) {
  if (packet.size() < ip::kV4Header) return 0;
  unsigned version = ip::version(packet.data());
  if (version == 4 || (version == 6 && packet.size() >= ip::kV6Header)) return version;
  return 0;
}

/// Where the two bits stand in the first 16-bit word of the header.
unsigned ecnShift(unsigned version) {
  return version == 4 ? 0 : 4;
}

}  // namespace

std::optional<Ecn> readEcn(ByteView packet) {
  unsigned version = ipVersion(packet);
  if (version == 0) return std::nullopt;
  return static_cast<Ecn>(load16(packet.data()) >> ecnShift(version) & 3);
}

bool setEcn(ByteSpan packet, Ecn ecn) {
  unsigned version = ipVersion(packet);
  if (version == 0) return false;
  unsigned shift = ecnShift(version);
  unsigned word = load16(packet.data()) & ~(3u << shift);
  auto value = static_cast<uint16_t>(word | static_cast<unsigned>(ecn) << shift);
  if (version == 4) {
    replaceWord(packet.data(), value, &packet[ip::kV4Checksum]);
  } else {
    store16(packet.data(), value);
  }
  return true;
}

bool markCe(ByteSpan packet) {
  auto ecn = readEcn(packet);
  if (!ecn || *ecn == Ecn::kNotEct) return false;
  return *ecn == Ecn::kCe || setEcn(packet, Ecn::kCe);
}

}  // namespace braid
