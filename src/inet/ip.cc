#include "inet/ip.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "inet/inner_packet.h"

namespace braid {

namespace {
// Two lanes of 64 bits: the baseline instruction sets of both x86-64 and arm64 can add these at
// once.
using Lanes = uint64_t __attribute__((vector_size(16)));

// Adds the two 32-bit halves of each 64-bit word, so that no carry is lost in the first 2^31 words
// of a lane.
void addHalves(Lanes& sum, const uint8_t* at) {
  Lanes words;
  std::memcpy(&words, at, sizeof words);
  sum += (words & UINT32_MAX) + (words >> 32);
}
}  // namespace

uint64_t sumBytes(ByteView bytes, uint64_t sum) {
  // Words of any even size give the same folded sum, because 2^16 is 1 in ones' complement. The
  // words are added in the machine's byte order. Swapping the bytes of the folded sum gives the
  // same result as swapping each word (RFC 1071 section 2B).
  constexpr size_t kLanes = sizeof(Lanes);
  Lanes one{}, two{};  // independent sums, which the CPU adds in parallel
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

uint64_t pseudoHeaderSum(const Address& src, const Address& dst, uint8_t protocol,
                         uint32_t length) {
  return sumBytes(src.view()) + sumBytes(dst.view()) + protocol + length;
}

uint16_t transportChecksum(const Address& src, const Address& dst, uint8_t protocol,
                           ByteView segment) {
  uint64_t pseudo = pseudoHeaderSum(src, dst, protocol, static_cast<uint32_t>(segment.size()));
  return static_cast<uint16_t>(~foldSum(sumBytes(segment, pseudo)));
}

uint16_t updateChecksum(uint16_t checksum, uint16_t before, uint16_t after) {
  uint32_t sum =
      uint32_t{static_cast<uint16_t>(~checksum)} + static_cast<uint16_t>(~before) + after;
  return static_cast<uint16_t>(~foldSum(sum));
}

void replaceWord(uint8_t* field, uint16_t value, uint8_t* checksum) {
  store16(checksum, updateChecksum(load16(checksum), load16(field), value));
  store16(field, value);
}

namespace {

/// 4, 6, or 0 when this is not an IP packet.
unsigned ipVersion(ByteView packet) {
  if (packet.size() < ip::kV4Header) return 0;
  unsigned version = ip::version(packet.data());
  if (version == 4 || (version == 6 && packet.size() >= ip::kV6Header)) return version;
  return 0;
}

/// The position of the two ECN bits in the first 16-bit word of the header.
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

namespace {
constexpr size_t kOffsetUnit = 8;  ///< bytes per unit of the fragment offset (RFC 791 section 3.1)
}

std::optional<FragmentPlan> planFragments(ByteView packet, uint16_t mtu) {
  auto p = parseInnerPacket(packet);
  if (!p || !p->isV4() || mtu < kMinimumV4Mtu) return std::nullopt;
  if (p->size <= mtu) return FragmentPlan{p->size, p->l4Length, 1};
  if (p->dontFragment || p->l4Offset != ip::kV4Header) return std::nullopt;

  uint16_t field = load16(&packet[ip::kV4Fragment]);
  bool more = field & ip::kV4MoreFragments;
  if (more && p->l4Length % kOffsetUnit != 0) return std::nullopt;
  FragmentPlan plan;
  plan.size = p->size;
  plan.step = (mtu - ip::kV4Header) / kOffsetUnit * kOffsetUnit;
  plan.count = (p->l4Length + plan.step - 1) / plan.step;
  size_t lastOffset =
      (field & ip::kV4FragmentOffset) + (plan.count - 1) * (plan.step / kOffsetUnit);
  if (lastOffset > ip::kV4FragmentOffset) return std::nullopt;
  return plan;
}

Packet buildFragment(PacketPool& pool, ByteView packet, const FragmentPlan& plan, size_t index) {
  if (plan.count == 1) return pool.copy(packet.first(plan.size));
  size_t begin = index * plan.step;
  size_t length = std::min(plan.step, plan.size - ip::kV4Header - begin);
  size_t size = ip::kV4Header + length;
  if (size > pool.payload()) return {};
  Packet fragment = pool.allocate();
  if (!fragment) return {};

  uint8_t* b = fragment.append(size);
  std::memcpy(b, packet.data(), ip::kV4Header);
  std::memcpy(b + ip::kV4Header, packet.data() + ip::kV4Header + begin, length);
  auto field = static_cast<uint16_t>(load16(b + ip::kV4Fragment) + begin / kOffsetUnit);
  if (index + 1 < plan.count) field |= ip::kV4MoreFragments;
  replaceWord(b + ip::kV4TotalLength, static_cast<uint16_t>(size), b + ip::kV4Checksum);
  replaceWord(b + ip::kV4Fragment, field, b + ip::kV4Checksum);
  return fragment;
}

}  // namespace braid
