#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace braid {

/// A condition on the packet mark: it has this value in the bits of `mask`. No bit of `value` is
/// outside of them.
struct MarkMatch {
  uint32_t value = 0, mask = UINT32_MAX;
  /// "0xca6c", "0x80000/0xff0000"
  std::string toString() const;
  bool operator==(const MarkMatch&) const = default;
};

/// The packet marks, routing tables and rule priorities by which a gateway steers packets at its
/// host. Marks are values of one field of the packet mark, eight bits wide; nothing else of a mark
/// is looked at or changed. Gateways of one host differ by their slot (Host::slot()).
struct HostNumbers {
  uint32_t markMask = 0xff;      ///< `device.mark-mask`
  uint32_t rulePriority = 6000;  ///< `device.rule-priority`
  unsigned slot = 0;

  // Marks.

  /// Connections that began through the tunnel of this gateway, where addresses are translated
  /// beside it.
  uint32_t tunnelledMark() const { return field(0x20 + slot); }
  /// Packets of Braid's own sockets.
  uint32_t ownMark() const { return field(0x5f); }
  /// Replies to what came in by the uplink with this number.
  uint32_t replyMark(unsigned uplink) const { return field(0x40 + (8 * slot + uplink) % 31); }
  /// Packets of TCP connections that end at this gateway (streams).
  uint32_t interceptedMark() const { return field(0x80 + slot); }
  /// In these bits of the mark, connections that end at any gateway of the host have this value.
  uint32_t anyInterceptedMask() const { return field(0xc0); }
  uint32_t anyInterceptedMark() const { return field(0x80); }
  /// In these bits of the mark, Braid's own packets and replies have this value. They bypass the
  /// tunnel. Marks of others should not have it: 0xca6c, which wg-quick gives WireGuard's packets,
  /// has not.
  uint32_t outsideMask() const { return field(0xe0); }
  uint32_t outsideMark() const { return field(0x40); }
  /// Whether packets of a gateway of this host may have such a mark.
  bool mayBeOwn(const MarkMatch& mark) const {
    auto may = [&](uint32_t value, uint32_t mask) {
      return ((mark.value ^ value) & mark.mask & mask) == 0;
    };
    return (mark.mask & markMask) != 0 &&
           (may(outsideMark(), outsideMask()) || may(anyInterceptedMark(), anyInterceptedMask()));
  }

  // Routing tables.

  uint32_t tunnelTable() const { return 6599 - slot; }
  uint32_t interceptedTable() const { return 6500 + slot; }
  uint32_t uplinkTable(unsigned uplink) const { return 6600 + 32 * slot + uplink; }
  /// Does not depend on the slot, because the guard is there while no gateway runs.
  static uint32_t guardTable(std::string_view device) {
    uint32_t hash = 2166136261;  // FNV-1a, 32 bits
    for (char c : device) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
    return 0x42000000 | (hash & 0xffffff);
  }

  // Rules, in the order in which the kernel looks at them.

  uint32_t interceptedRule() const { return rulePriority + 100; }
  uint32_t exceptionRule() const { return rulePriority + 150 + slot; }
  /// `isWide`: for routes that take everything. Those of other gateways of the host come first.
  uint32_t tunnelRule(bool isWide) const { return rulePriority + (isWide ? 200 : 190); }
  uint32_t replyRule(unsigned uplink) const { return rulePriority + 500 + 2 * uplink; }
  uint32_t uplinkRule(unsigned uplink) const { return rulePriority + 600 + 2 * uplink; }
  /// The guards of all gateways of the host have this rule together.
  uint32_t passRule() const { return rulePriority + 690; }
  uint32_t guardRule() const { return rulePriority + 700; }

 private:
  uint32_t field(uint32_t value) const { return value << std::countr_zero(markMask); }
};

}  // namespace braid
