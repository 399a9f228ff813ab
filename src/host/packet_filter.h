#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/host_numbers.h"
#include "host/stream_host.h"
#include "inet/addresses.h"

namespace braid {

/// What the host's packet filter does for the routes into the tunnel: it keeps replies on the
/// uplink by which their connection came in, leaves to other programs what they take over, and, as
/// a guard, drops what would leave past the tunnel.
struct FilterRules {
  /// An uplink's interface, and the mark of replies to what came in by it.
  struct Reply {
    std::string interface;
    uint32_t mark = 0;
    bool operator==(const Reply&) const = default;
  };

  /// An interface that leads past the tunnel without being an uplink.
  struct Outward {
    std::string interface;
    uint32_t index = 0;
    /// Guarded destinations that are at this interface itself. Like `guarded`.
    std::vector<AddressRange> here{};
    bool operator==(const Outward&) const = default;
  };

  std::string device;  ///< the tunnel's interface
  /// The bits of a packet's or connection's mark that are changed. Only `bypass`, and `localMark`
  /// in that it looks for any mark, look at others.
  uint32_t markMask = 0;
  std::vector<Reply> replies;
  /// With replies: the mark of what a DHCP client sends to renew its lease, so that it leaves by an
  /// uplink.
  uint32_t renewal = 0;
  /// The mark of packets that another program of this host takes over (TPROXY) and that the routes
  /// would lead into the tunnel, so that they are delivered to that program; 0: none are marked.
  uint32_t localMark = 0;

  bool guard = false;
  /// Interfaces by which nothing guarded may leave: names, and indices of those that are there.
  std::vector<std::string> uplinks;
  std::vector<uint32_t> uplinkIndices{};
  /// Interfaces by which nothing guarded may leave but to what is at them.
  std::vector<Outward> outward{};
  /// An interface that is there. One that comes may get the index of one that has gone: from
  /// another network namespace, or by choice. So the name counts as well, unless it is empty.
  struct Known {
    uint32_t index = 0;
    std::string name{};
    bool operator==(const Known&) const = default;
  };
  /// In ascending order of the indices. By other interfaces nothing guarded may leave but to
  /// `here`; nullopt: no such interface is looked for.
  std::optional<std::vector<Known>> known{};
  /// Packets may pass if their mark has this value in the bits of `outsideMask`.
  uint32_t outside = 0, outsideMask = 0;
  /// So may those that this host itself sends, with one of these marks.
  std::vector<MarkMatch> bypass{};
  /// Destinations that may be reached by the tunnel only. Like those below: in ascending order, not
  /// adjacent.
  std::vector<AddressRange> guarded;
  /// Guarded destinations that may be reached by interfaces other than those: the LAN, and what may
  /// belong to it.
  std::vector<AddressRange> here{}, maybeHere{};
  /// Guarded destinations that may not be reached by the devices of other gateways of this host
  /// either; the rest may.
  std::vector<AddressRange> ownOnly{};

  bool isEmpty() const { return replies.empty() && !guard && localMark == 0; }
  bool operator==(const FilterRules&) const = default;
};

/// Keeps FilterRules in the host's packet filter. Rules with a guard outlive this object and the
/// process. Other rules are removed with this object, and when the process ends in any way.
class PacketFilter {
 public:
  virtual ~PacketFilter() = default;
  /// Replaces the former rules atomically. If it throws SystemError, the former ones stay. Empty
  /// rules: removes them, a guard as well.
  virtual void set(const FilterRules& rules) = 0;
  /// Whether the rules of the last set() are still there. Others can remove only a guard.
  virtual bool isIntact() = 0;
};

}  // namespace braid
