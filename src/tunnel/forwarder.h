#pragma once

// The way of inner packets between the device and the sessions.
//
//     device --> IpRouter (TUN) or FrameSwitch (TAP) --> ack shim --> MSS clamp, ECN proxy --> Session's queues
//            <-- ack shim <-- ECN proxy, MSS clamp <-- source check, MAC check               <-- Session
//
// A packet that the tunnel cannot carry is answered by ICMP (IcmpAnswers), or cut when IPv4 allows it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/drop.h"
#include "base/packet.h"
#include "base/ring.h"
#include "base/time.h"
#include "inet/frame.h"
#include "inet/inner_packet.h"
#include "inet/prefix.h"
#include "inet/special_addresses.h"
#include "tunnel/ecn_proxy.h"
#include "tunnel/frame_switch.h"
#include "tunnel/icmp_answers.h"
#include "tunnel/ip_router.h"
#include "tunnel/options.h"
#include "tunnel/shim_joint.h"
#include "tunnel/status.h"
#include "tunnel/waiting_room.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

class PeerSet;
class Peer;

/// Forwards packets (TUN) or frames (TAP) from the device to the peers and back.
class Forwarder final : private TunnelKnowledge {
 public:
  /// `options`, `pool` and `peers` must outlive it. Draws the keys of hash tables and the ack shim's seeds from
  /// `random`.
  Forwarder(const TunnelOptions& options, PacketPool& pool, PeerSet& peers, SecretRandom& random);

  /// The peers are others now, or have other prefixes. Peers that are no more must still be alive.
  void onPeersChanged();
  /// The options are others now.
  void setTunables() { shim_.setUp(options_); }
  /// Networks on this side: no peer may send from them, and nothing for them goes to a peer.
  void setLocalNetworks(std::vector<Prefix> networks);

  /// A packet or frame from the device.
  void onInnerPacket(Packet packet, Time now);
  /// A packet or frame from the peer, in the order of its flow.
  void onDelivered(Peer& from, Packet packet, Time now);
  /// A packet queued for the peer has become too large for every path that is left.
  void onTooLarge(const Peer& to, ByteView packet, Time now);
  /// A packet from the device was thrown away for good.
  void onPacketDropped(ByteView packet, Time now) { shim_.onDropped(packet, now); }
  /// A packet or frame that waited for the peer, or that a session of it left behind, is to go now, if it can.
  void onReturned(Peer& to, WaitingPacket waiting, Time now);
  void onTimer(Time now);

  /// The next packet or frame for the device.
  bool pollInnerPacket(Packet& out);
  Time nextDeadline() const { return shim_.nextDeadline(); }
  /// The peer that the address lies behind; nullptr: none, or it is on this side. Of a TUN gateway.
  Peer* peerBehind(const Address& address) const { return router_.peerFor(address); }
  /// Whether the peer may send from this address.
  bool ownsSource(const Peer& peer, const Address& source) const;
  /// Whether a peer may send to this address: no special one, unless the configuration names it.
  bool mayReach(const Address& destination) const;
  const DropCounts& drops() const { return drops_; }
  ShimStatus shimStatus() const { return shim_.status(); }

 private:
  void routePeers();
  void name(const Prefix& network);
  void forwardIp(Packet packet, Time now);
  void forwardFrame(Packet packet, const Frame& frame, Time now);
  void bridgeFrame(Peer& from, Packet packet, const Frame& frame, Time now);
  void flood(Packet packet, const Frame& frame, Peer* from, Time now);
  void sendCopy(Peer& peer, ByteView packet, const Frame& frame, Time now);
  void send(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, Asker asker, Time now);
  void sendTooBig(Peer& peer, Packet packet, const InnerPacket& ip, size_t ipOffset, Asker asker, Time now);
  void wait(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, Asker asker, Time now);
  void queue(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, Asker asker, Time now);
  void resend(Packet packet, Time now);
  void deliverIp(const Peer& from, Packet packet, Time now);
  void deliverFrame(Peer& from, Packet packet, Time now);
  std::optional<InnerPacket> innerOf(ByteView packet, size_t& ipOffset) const;
  std::optional<Drop> refusal(const Peer& from, const Frame& frame, ByteView bytes) const;
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
  PrefixTable named_;  ///< special networks of this side and of peers, to their lengths
  FrameSwitch switch_;
  IcmpAnswers answers_;
  EcnProxy ecnProxy_;
  ShimJoint shim_;
  Ring<Packet> toDevice_;
  DropCounts drops_{};
};

}  // namespace braid
