#include "inet/fragment.h"

#include <algorithm>

#include "inet/checksum.h"
#include "inet/inner_packet.h"
#include "inet/protocol.h"

namespace braid {

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
  size_t lastOffset = (field & ip::kV4FragmentOffset) + (plan.count - 1) * (plan.step / kOffsetUnit);
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
