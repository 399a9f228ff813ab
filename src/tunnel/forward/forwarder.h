#pragma once

// Forwards inner packets between the device and the sessions.
//
//     device --> IpRouter (TUN) or LearningBridge (TAP) --> ack shim --> MSS clamp, ECN proxy
//            --> the session's queues
//     device <-- ack shim <-- ECN proxy, MSS clamp <-- source check, MAC check <-- session
//
// A packet that the tunnel cannot carry is answered by an ICMP error (IcmpErrors), or fragmented if
// IPv4 permits it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/containers.h"
#include "base/drop.h"
#include "base/packet.h"
#include "base/time.h"
#include "inet/addresses.h"
#include "inet/frame.h"
#include "inet/inner_packet.h"
#include "tunnel/api/options.h"
#include "tunnel/api/status.h"
#include "tunnel/forward/ecn_proxy.h"
#include "tunnel/forward/icmp_errors.h"
#include "tunnel/forward/router.h"
#include "tunnel/forward/shim_adapter.h"
#include "tunnel/queue/packet_events.h"
#include "tunnel/wire/secrets.h"

namespace braid {

class PeerSet;
class Peer;

/// Forwards packets (TUN) or frames (TAP) from the device to the peers and back.
class Forwarder final : private FlowActivityQuery {
 public:
  /// `options`, `pool` and `peers` must outlive this object. Draws the keys of hash tables and the
  /// ack shim's seeds from `random`.
  Forwarder(const TunnelOptions& options, PacketPool& pool, PeerSet& peers, SecretRandom& random);

  /// The set of peers or their prefixes have changed. Peers that were removed must still exist.
  void onPeersChanged();
  /// The options have changed.
  void setTunables() { shim_.setUp(options_); }
  /// Sets the networks on this side: no peer may send from them, and no packet for them is sent to
  /// a peer.
  void setLocalNetworks(std::vector<Prefix> networks);

  /// A packet or frame from the device.
  void onInnerPacket(Packet packet, Time now);
  /// Delivers what came from a peer, answers what was too large, tells the ack shim what was
  /// dropped, and sends again what was returned.
  void onEvent(PacketEvent event, Time now);
  void onTimer(Time now);

  /// The next packet or frame for the device.
  bool pollInnerPacket(Packet& out);
  Time nextDeadline() const { return shim_.nextDeadline(); }
  /// TUN: the peer behind which the address is; nullptr: none, or the address is on this side.
  Peer* peerBehind(const Address& address) const { return router_.peerFor(address); }
  /// Whether the peer may send from this address.
  bool ownsSource(const Peer& peer, const Address& source) const;
  /// Whether a peer may send to this address: not to a special one, unless the configuration names
  /// it.
  bool mayReach(const Address& destination) const;
  /// Whether the peer may send to what is behind this address as far as other peers are concerned:
  /// not to a network of another one, unless the options say so. Peers of one group are two ways to
  /// the same networks.
  bool mayCross(const Peer& from, const Address& destination) const;
  const DropCounts& drops() const { return drops_; }
  ShimStatus shimStatus() const { return shim_.status(); }

 private:
  void onDelivered(Peer& from, Packet packet, Time now);
  void onTooLarge(const Peer& to, ByteView packet, Time now);
  void onReturned(Peer& to, Packet packet, PacketOrigin origin, Time now);
  void routePeers();
  void name(const Prefix& network);
  void forwardIp(Packet packet, Time now);
  void forwardFrame(Packet packet, const Frame& frame, Time now);
  void bridgeFrame(Peer& from, Packet packet, const Frame& frame, Time now);
  void flood(Packet packet, const Frame& frame, Peer* from, Time now);
  void sendCopy(Peer& peer, ByteView packet, const Frame& frame, Time now);
  void send(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, PacketOrigin origin,
            Time now);
  void sendTooBig(Peer& peer, Packet packet, const InnerPacket& ip, size_t ipOffset,
                  PacketOrigin origin, Time now);
  void wait(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, PacketOrigin origin,
            Time now);
  void queue(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, PacketOrigin origin,
             Time now);
  void resend(Packet packet, Time now);
  void deliverIp(Peer& from, Packet packet, Time now);
  bool mayCross(const Peer& from, const Peer& to) const;
  void forbidCrossing(Peer& from, const Packet& packet, const InnerPacket* ip, size_t ipOffset,
                      Time now);
  bool isRouterError(Peer& from, ByteView packet, const InnerPacket& ip, Time now) const;
  void refuseSource(Peer& from, const Packet& packet, const InnerPacket& ip, Time now);
  void answerPeer(Peer& from, const IcmpErrors::Offender& offender, Unreachable why, Time now);
  void deliverFrame(Peer& from, Packet packet, Time now);
  std::optional<InnerPacket> innerOf(ByteView packet, size_t& ipOffset) const;
  std::optional<Drop> refusal(Peer& from, const Frame& frame, ByteView bytes, Time now) const;
  bool isShort() const;
  Peer* peerOf(const FlowKey& fromHost) const;
  bool isCarrying(const FlowKey& key) const override;
  void toLan(Packet packet, const Frame& frame, Time now);
  void toDevice(Packet packet);
  void drop(Drop cause) { countDrop(drops_, cause); }

  const TunnelOptions& options_;
  PacketPool& pool_;
  PeerSet& peers_;
  std::vector<Prefix> local_;
  IpRouter router_;
  SpecialAddresses special_;
  PrefixTable named_;  ///< special networks that the configuration names, to their prefix lengths
  LearningBridge switch_;
  IcmpErrors answers_;
  EcnProxy ecnProxy_;
  AckShimAdapter shim_;
  Ring<Packet> toDevice_;
  DropCounts drops_{};
};

}  // namespace braid
