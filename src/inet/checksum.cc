#include "inet/checksum.h"

namespace braid {

uint64_t sumBytes(ByteView bytes, uint64_t sum) {
  // Words of 32 bits add up to the same once folded: 2^16 is 1 in ones' complement.
  while (bytes.size() >= 4) {
    sum += load32(bytes.data());
    bytes = bytes.subspan(4);
  }
  if (bytes.size() >= 2) {
    sum += load16(bytes.data());
    bytes = bytes.subspan(2);
  }
  return bytes.empty() ? sum : sum + (uint64_t{bytes[0]} << 8);
}

uint16_t foldSum(uint64_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

uint16_t internetChecksum(ByteView bytes) {
  return static_cast<uint16_t>(~foldSum(sumBytes(bytes)));
}

uint64_t pseudoHeaderSum(const Address& src, const Address& dst, uint8_t protocol, uint32_t length) {
  return sumBytes(src.view()) + sumBytes(dst.view()) + protocol + length;
}

uint16_t transportChecksum(const Address& src, const Address& dst, uint8_t protocol, ByteView segment) {
  uint64_t pseudo = pseudoHeaderSum(src, dst, protocol, static_cast<uint32_t>(segment.size()));
  return static_cast<uint16_t>(~foldSum(sumBytes(segment, pseudo)));
}

uint16_t updateChecksum(uint16_t checksum, uint16_t before, uint16_t after) {
  uint32_t sum = uint32_t{static_cast<uint16_t>(~checksum)} + static_cast<uint16_t>(~before) + after;
  return static_cast<uint16_t>(~foldSum(sum));
}

void replaceWord(uint8_t* field, uint16_t value, uint8_t* checksum) {
  store16(checksum, updateChecksum(load16(checksum), load16(field), value));
  store16(field, value);
}

}  // namespace braid
