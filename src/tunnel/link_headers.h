#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "inet/flow_key.h"
#include "inet/frame.h"

namespace braid {

/// Ethernet headers for packets that a gateway makes itself on a TAP device: those that a local host last wrote before
/// its packets to a remote address. Untagged frames only. Bounded: of 4096 pairs of addresses, in sets of four by
/// their hash, the one that was quiet for longest makes room.
class LinkHeaders {
 public:
  /// Destination, source, EtherType.
  static constexpr size_t kSize = 14;
  using Header = std::array<uint8_t, kSize>;

  /// `hash`: with a key that no host knows, so that nobody can choose addresses which push each other out.
  explicit LinkHeaders(const FlowKeyHash& hash) : hash_(hash), sets_(kSets) {}

  /// A local host sent a packet from `local` to `remote` behind this header.
  void note(const Address& local, const Address& remote, const Header& header);
  /// The header of a packet from `local` to `remote`.
  std::optional<Header> toRemote(const Address& local, const Address& remote) const;
  /// The header of a packet from `remote` to `local`: the answer to that.
  std::optional<Header> toLocal(const Address& local, const Address& remote) const;

 private:
  static constexpr size_t kSets = 1024, kPlaces = 4;
  struct Entry {
    Address local, remote;
    Header header{};
  };
  using Set = std::array<Entry, kPlaces>;  // the one that was used last first

  size_t setOf(const Address& local, const Address& remote) const;

  FlowKeyHash hash_;
  std::vector<Set> sets_;
};

}  // namespace braid
