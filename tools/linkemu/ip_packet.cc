#include "linkemu/ip_packet.h"

#include "inet/ip.h"

namespace braid {

bool clearEcn(IpPacket& item) {
  return readEcn(item.packet.view()).value_or(Ecn::kNotEct) != Ecn::kNotEct &&
         setEcn(item.packet.span(), Ecn::kNotEct);
}

bool markCe(IpPacket& item) {
  return readEcn(item.packet.view()) != Ecn::kCe && markCe(item.packet.span());
}

void corrupt(IpPacket& item, Random& random) {
  if (item.packet.empty()) return;
  uint64_t bit = random.below(item.packet.size() * 8);
  item.packet.data()[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
}

std::optional<IpPacket> clone(const IpPacket& item) {
  IpPacket copy{item.pool->copy(item.packet.view()), item.pool};
  if (!copy.packet) return std::nullopt;
  return copy;
}

}  // namespace braid
