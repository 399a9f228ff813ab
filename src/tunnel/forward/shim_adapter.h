#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ackshim/ack_shim.h"
#include "base/packet.h"
#include "base/time.h"
#include "inet/flow_key.h"
#include "inet/frame.h"
#include "tunnel/api/options.h"
#include "tunnel/api/status.h"

namespace braid {

/// Ethernet headers for packets that the gateway makes itself on a TAP device: those that a local
/// host last used for its packets to a remote address. Untagged frames only. The table holds 4096
/// pairs of addresses, in sets of four by their hash; in a full set the pair that sent least
/// recently is evicted.
class LinkHeaders {
 public:
  /// Destination MAC, source MAC, EtherType.
  static constexpr size_t kSize = 14;
  using Header = std::array<uint8_t, kSize>;

  /// `hash` needs a secret key, so that nobody can choose addresses that evict each other.
  explicit LinkHeaders(const FlowKeyHash& hash) : hash_(hash), sets_(kSets) {}

  /// A local host sent a packet from `local` to `remote` with this header.
  void note(const Address& local, const Address& remote, const Header& header);
  /// The header for a packet from `local` to `remote`.
  std::optional<Header> toRemote(const Address& local, const Address& remote) const;
  /// The header for a packet from `remote` to `local`: the former with both MAC addresses
  /// exchanged.
  std::optional<Header> toLocal(const Address& local, const Address& remote) const;

 private:
  static constexpr size_t kSets = 1024, kPlaces = 4;
  struct Entry {
    Address local, remote;
    Header header{};
  };
  using Set = std::array<Entry, kPlaces>;  // the pair that sent most recently first

  size_t setOf(const Address& local, const Address& remote) const;

  FlowKeyHash hash_;
  std::vector<Set> sets_;
};

/// Connects the ack shim to the tunnel. While the shim is switched off, packets bypass it. The shim
/// handles IP packets only: on a TAP device this class removes the Ethernet header for it, and adds
/// one to the packets that the shim makes. Frames with VLAN tags bypass the shim, because hosts of
/// two VLANs may have the same addresses.
class AckShimAdapter {
 public:
  /// `pool` and `knowledge` must outlive this object. `hash`: of addresses, see LinkHeaders.
  AckShimAdapter(PacketPool& pool, const FlowActivityQuery& knowledge, const AckShim::Seeds& seeds,
                 const FlowKeyHash& hash)
      : pool_(pool), knowledge_(knowledge), seeds_(seeds), hash_(hash) {}

  /// Switches the shim on or off, or gives it new settings. A shim that is switched off forgets its
  /// flows and counters.
  void setUp(const TunnelOptions& options);

  /// A packet or frame of a local host that the tunnel accepts. Its IP packet `ip` begins at
  /// `ipOffset`.
  void onFromHost(ByteView packet, const InnerPacket& ip, size_t ipOffset, Time now) {
    if (!isSeen(ip, ipOffset)) return;
    if (links_) noteLink(packet, ip);
    shim_->onFromHost(packet.subspan(ipOffset, ip.size), ip, now);
  }
  /// A packet or frame of the peer. False: it must not be passed to the local host. Its IP packet
  /// `ip` begins at `ipOffset`. `ip` may have been parsed before fields of the packet changed that
  /// the shim does not read from `ip`.
  bool onToHost(ByteView packet, const InnerPacket& ip, size_t ipOffset, Time now) {
    return !isSeen(ip, ipOffset) ||
           shim_->onToHost(packet.subspan(ipOffset, ip.size), ip, now) != AckShim::Verdict::kDrop;
  }
  /// The tunnel has dropped this packet or frame of a local host.
  void onDropped(ByteView packet, Time now);
  /// True when something was due: then packets may be ready to be polled.
  bool onTimer(Time now);

  /// The next packet or frame that the shim made or kept, to a local host or to the peer; empty: no
  /// more.
  Packet pollToHost();
  Packet pollToPeer();
  /// TAP: the MAC address to which a local host's flow is sent; nullopt: no longer known.
  std::optional<MacAddress> nextHopOf(const FlowKey& fromHost) const;

  Time nextDeadline() const { return shim_ ? shim_->nextDeadline() : kNever; }
  ShimStatus status() const;

 private:
  bool isSeen(const InnerPacket& ip, size_t ipOffset) const {
    return shim_ && ipOffset == (links_ ? LinkHeaders::kSize : 0) && ip.tcp;
  }
  void noteLink(ByteView frame, const InnerPacket& ip);
  template <typename Poll, typename Header>
  Packet pollWith(Poll&& poll, Header&& header);

  PacketPool& pool_;
  const FlowActivityQuery& knowledge_;
  AckShim::Seeds seeds_;
  FlowKeyHash hash_;
  std::unique_ptr<AckShim> shim_;     ///< nullptr: the shim is off
  std::optional<LinkHeaders> links_;  ///< set while the shim is on, on a TAP device
};

}  // namespace braid
