#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "inet/addresses.h"

namespace braid {

/// The 5-tuple of one direction of an inner flow. All bytes are defined: packets without ports
/// (ICMP, fragments) have ports 0; an IPv4 address fills the first 4 bytes and the rest is zero.
struct FlowKey {
  Address::Family family = Address::Family::kNone;
  uint8_t protocol = 0;  ///< IANA protocol number, for IPv6 the one after the extension headers
  uint16_t sport = 0;    ///< host order
  uint16_t dport = 0;    ///< host order
  std::array<uint8_t, 16> src{};
  std::array<uint8_t, 16> dst{};

  bool operator==(const FlowKey&) const = default;
  /// The key of packets in the opposite direction.
  FlowKey reversed() const { return {family, protocol, dport, sport, dst, src}; }
  Address source() const { return {family, src}; }
  Address destination() const { return {family, dst}; }
  /// "tcp 10.0.0.1:443 > 10.0.0.2:5000", "icmp 10.0.0.1 > 10.0.0.2", "47 [...] > [...]" for an
  /// unnamed protocol.
  std::string toString() const;
};

/// Keyed hash of flow keys: SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
/// 2012, with the reduced rounds that Rust and Python use for hash tables). A peer that does not
/// know the 128-bit key cannot choose flows that collide. The driver takes the key from the
/// operating system's random numbers, a test from its seed. Fits std::unordered_map.
class FlowKeyHash {
 public:
  FlowKeyHash(uint64_t k0, uint64_t k1) : k0_(k0), k1_(k1) {}
  size_t operator()(const FlowKey& key) const;

 private:
  uint64_t k0_;
  uint64_t k1_;
};

}  // namespace braid
