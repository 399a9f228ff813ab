#include "inet/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace braid {

namespace {
// Two lanes of 64 bits: what both x86-64 and arm64 add at once without being asked for more.
using Lanes = uint64_t __attribute__((vector_size(16)));

// Adds the halves of each word, so that no carry is lost: a lane takes 2^31 words.
void addHalves(Lanes& sum, const uint8_t* at) {
  Lanes words;
  std::memcpy(&words, at, sizeof words);
  sum += (words & UINT32_MAX) + (words >> 32);
}
}  // namespace

uint64_t sumBytes(ByteView bytes, uint64_t sum) {
  // Words of any even size add up to the same once folded: 2^16 is 1 in ones' complement. They are added in the
  // machine's order of bytes, which the folded sum can be brought out of as well as each word (RFC 1071 section 2B).
  constexpr size_t kLanes = sizeof(Lanes);
  Lanes one{}, two{};  // that do not wait for each other
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 2 * kLanes; left -= 2 * kLanes, at += 2 * kLanes) {
    addHalves(one, at);
    addHalves(two, at + kLanes);
  }
  if (left > 0) {
    std::array<uint8_t, 2 * kLanes> rest{};
    std::memcpy(rest.data(), at, left);
    addHalves(one, rest.data());
    addHalves(two, rest.data() + kLanes);
  }
  one += two;
  uint16_t folded = foldSum(one[0] + one[1]);
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
