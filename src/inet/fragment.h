#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/packet.h"

namespace braid {

/// How an IPv4 packet is cut (RFC 791 section 3.2).
struct FragmentPlan {
  size_t size = 0;   ///< of the packet, bytes
  size_t step = 0;   ///< payload bytes of each fragment but the last, a multiple of 8
  size_t count = 0;  ///< at least 1
};

/// The smallest MTU that IPv4 allows (RFC 791 section 3.2), bytes. It bounds a packet to 1366 fragments.
inline constexpr uint16_t kMinimumV4Mtu = 68;

/// nullopt when the packet is not well-formed IPv4, or must be cut but has DF or IP options, or would end
/// beyond the largest fragment offset, or is a middle fragment whose payload is no multiple of 8, or the MTU
/// is below kMinimumV4Mtu. A packet that fits the MTU is one "fragment", whatever its flags.
std::optional<FragmentPlan> planFragments(ByteView packet, uint16_t mtu);

/// Fragment `index` of `plan`, which comes from planFragments(packet). An empty handle when the pool is
/// exhausted or its packets are too small. The header checksum is mended, not made anew, so that a wrong one
/// stays wrong.
Packet buildFragment(PacketPool& pool, ByteView packet, const FragmentPlan& plan, size_t index);

enum class FragmentResult : uint8_t {
  kDone,      ///< all fragments went to the sink
  kRefused,   ///< planFragments() says no; nothing went to the sink
  kNoBuffer,  ///< the pool has not enough packets; nothing went to the sink unless the sink takes from the
              ///< pool too
};

/// Gives each fragment of the packet, each at most `mtu` bytes, to sink(Packet) in order.
template <typename Sink>
FragmentResult fragmentIpv4(PacketPool& pool, ByteView packet, uint16_t mtu, Sink&& sink) {
  auto plan = planFragments(packet, mtu);
  if (!plan) return FragmentResult::kRefused;
  if (plan->count > pool.limit() - pool.inUse()) return FragmentResult::kNoBuffer;
  for (size_t i = 0; i < plan->count; ++i) {
    Packet fragment = buildFragment(pool, packet, *plan, i);
    if (!fragment) return FragmentResult::kNoBuffer;
    sink(std::move(fragment));
  }
  return FragmentResult::kDone;
}

}  // namespace braid
