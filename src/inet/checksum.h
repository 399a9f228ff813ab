#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "inet/endpoint.h"

namespace braid {

/// The Internet checksum (RFC 1071). Sums are of 16-bit words in network order, not yet folded; they may be
/// added to one another before foldSum(). Any length up to 2^32 bytes is safe from overflow.

/// Adds to `sum` bytes that begin at an even offset of what is summed; an odd last byte counts as if zero
/// followed.
uint64_t sumBytes(ByteView bytes, uint64_t sum = 0);

/// A sum brought to 16 bits with end-around carry. 0xffff over data that include their checksum means: valid.
uint16_t foldSum(uint64_t sum);

/// The value for the checksum field of `bytes`, whose field is zero.
uint16_t internetChecksum(ByteView bytes);

/// The pseudo header of TCP, UDP (RFC 9293 section 3.1, RFC 768) and, for IPv6, ICMPv6 (RFC 8200
/// section 8.1). Both addresses are of one family; `length` is that of transport header and payload, bytes.
uint64_t pseudoHeaderSum(const Address& src, const Address& dst, uint8_t protocol, uint32_t length);

/// The value for the checksum field of a TCP, UDP or ICMPv6 `segment`, whose field is zero. For UDP the
/// caller sends 0xffff when this is 0 (RFC 768).
uint16_t transportChecksum(const Address& src, const Address& dst, uint8_t protocol, ByteView segment);

/// The checksum after a 16-bit word at an even offset changed from `before` to `after` (RFC 1624 equation 3).
/// A checksum that was wrong stays wrong. For a word at an odd offset pass both values byte-swapped (RFC 1071
/// section 2B).
uint16_t updateChecksum(uint16_t checksum, uint16_t before, uint16_t after);

/// Writes a 16-bit word at field[0..1], which lies at an even offset of the checksummed data, and mends the
/// checksum.
void replaceWord(uint8_t* field, uint16_t value, uint8_t* checksum);

}  // namespace braid
