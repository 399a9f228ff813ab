#include "inet/checksum.h"

#include <bit>
#include <cstring>

namespace braid {

uint64_t sumBytes(ByteView bytes, uint64_t sum) {
  // Words of 64 bits add up to the same once folded: 2^16 is 1 in ones' complement. They are added in the machine's
  // order of bytes, which the folded sum can be brought out of as well as each word (RFC 1071 section 2B).
  uint64_t words = 0, carries = 0, word;
  const uint8_t* at = bytes.data();
  for (size_t n = bytes.size() / sizeof word; n > 0; --n, at += sizeof word) {
    std::memcpy(&word, at, sizeof word);
    words += word;
    carries += words < word;
  }
  if (size_t rest = bytes.size() % sizeof word; rest > 0) {
    word = 0;
    std::memcpy(&word, at, rest);
    words += word;
    carries += words < word;
  }
  uint16_t folded = foldSum((words >> 32) + (words & UINT32_MAX) + carries);
  if constexpr (std::endian::native == std::endian::little)
    folded = static_cast<uint16_t>(folded << 8 | folded >> 8);
  return sum + folded;
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
