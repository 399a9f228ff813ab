#pragma once

// The core's face to its drivers. Methods come in four kinds, and a driver uses them so:
//   setters    setPeers, setUplinks, setTunables     at start and on reload
//   on...      onInnerPacket, onDatagram, onTimer, onSendError, onTooBig   whenever something happened, with
//   its time poll...    pollDatagram, pollInnerPacket, pollEvent     after every batch of on... calls, each
//   until it gives false getters    nextDeadline, status                  after polling: call onTimer at
//   nextDeadline() at the latest
// Time never runs backwards inside: a `now` before an earlier one counts as that earlier one.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ackshim/ack_shim.h"
#include "base/packet.h"
#include "base/random.h"
#include "base/ring.h"
#include "base/time.h"
#include "inet/endpoint.h"
#include "inet/frame.h"
#include "inet/inner_packet.h"
#include "inet/prefix.h"
#include "tunnel/ecn_proxy.h"
#include "tunnel/handshake.h"
#include "tunnel/io.h"
#include "tunnel/options.h"
#include "tunnel/peer_owner.h"
#include "tunnel/status.h"
#include "tunnel/uplink_accounts.h"

namespace braid {

/// The core: peers, their sessions and the way of packets between them and the device.
class Tunnel final : private PeerOwner, private TunnelKnowledge {
 public:
  /// `pool` and `handshakes` must outlive the tunnel; `seed` should be unpredictable outside of tests.
  Tunnel(TunnelOptions options, PacketPool& pool, HandshakeProvider& handshakes, uint64_t seed);
  ~Tunnel() override;

  /// Replaces the peers; sessions of peers whose pin stays go on.
  void setPeers(std::vector<PeerOptions> peers, Time now);
  /// Replaces the uplinks; subflows on sockets that stay go on.
  void setUplinks(std::vector<UplinkSpec> uplinks, Time now);
  /// A new period of a metered uplink begins, of which `used` bytes are gone.
  void resetMeter(std::string_view uplink, uint64_t used, Time now);
  /// Takes over what may change at run time: everything but the mode, the MTUs and the table sizes. An ack
  /// shim that is switched off forgets its flows and counters.
  void setTunables(const TunnelOptions& options);
  /// Gets an event for each decision of recovery from now on; nullptr: no more. Must outlive the tunnel or be
  /// unset.
  void setTrace(TraceSink* sink) { options_.trace = sink; }
  /// Addresses that ICMP errors come from; unset ones: the destination of the packet that is answered.
  void setOwnAddresses(const Address& v4, const Address& v6);

  /// A packet (TUN) or frame (TAP) from the device.
  void onInnerPacket(Packet packet, Time now);
  /// A datagram from a socket with the ECN bits of its IP header.
  void onDatagram(const Route& from, Ecn ecn, Packet datagram, Time now);
  void onTimer(Time now);
  /// The kernel refused a datagram on this route (ENETUNREACH, ENODEV, EPERM, ...).
  void onSendError(const Route& route, Time now);
  /// The kernel refused a datagram of this size with EMSGSIZE.
  void onTooBig(const Route& route, size_t size, Time now);
  /// Tells every peer that this gateway stops. Poll datagrams once more; nothing else is sent afterwards.
  void close();

  bool pollDatagram(Datagram& out, Time now);
  bool pollInnerPacket(Packet& out);
  bool pollEvent(Event& out);

  Time nextDeadline() const;
  /// The smallest inner MTU of the peers that are up, for the device; that of an untried path when none is
  /// up.
  size_t innerMtu() const;
  TunnelStatus status(Time now) const;
  /// Of the metered uplinks; cheaper than status(), which has them too.
  std::vector<MeterStatus> meters() const;

 private:
  /// Handshakes that others began, while they run and for a while after.
  struct Responder {
    Route route;
    std::unique_ptr<Handshake> handshake;
    Time began;
    bool done = false;
  };
  struct SessionEntry {
    Peer* peer;
    Session* session;
  };
  struct MacEntry {
    Peer* peer;
    Time seen;
  };

  // tunnel_inner.cc: between device and sessions
  void onInnerIp(Packet packet, Time now);
  void onInnerFrame(Packet frame, Time now);
  void send(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, Time now);
  void queue(Session& session, Packet packet, const InnerPacket* ip, size_t ipOffset, Time now);
  void forwardFrame(Packet packet, const Frame& frame, const Peer* except, Time now);
  void tooBig(Peer& peer, Packet packet, const InnerPacket& ip, size_t ipOffset, Time now);
  void answer(Packet packet, ByteView offender, size_t ipOffset);
  Address answerFrom(const InnerPacket& offender) const;
  bool mayAnswer(Time now);
  void deliverFrame(Peer& from, Packet packet);
  bool ownsSource(const Peer& peer, const Address& source) const;
  void learn(const MacAddress& mac, Peer& peer);
  Peer* peerOf(const Frame& frame, Time now) const;

  // tunnel_shim.cc: the ack shim between device and sessions
  void setUpShim();
  void onShimTimer(Time now);
  void resend(Packet packet, Time now);

  // tunnel.cc
  void applyUplinks(Time now);
  void count(const Route& route, size_t bytes, Time now);
  void onHandshake(const Route& from, Packet datagram, Time now);
  bool mayBegin(const Address& host) const;
  void dropOldestDone();
  void stepResponders(Time now);
  bool pollResponders(Datagram& out);
  void drop(Drop cause, uint64_t count = 1) { drops_[static_cast<size_t>(cause)] += count; }
  Time forward(Time now) { return now_ = std::max(now_, now); }

  // PeerOwner
  void onDelivered(Peer& from, Packet packet) override;
  void onTooLarge(Peer& to, ByteView packet) override;
  void onEvent(Event event) override;
  void onDrop(Drop cause, uint64_t count) override { drop(cause, count); }
  bool addSession(Peer& peer, Session& session) override;
  void removeSession(uint32_t id) override { sessions_.erase(id); }
  void onPacketDropped(ByteView packet) override;

  // TunnelKnowledge
  bool isCarrying(const FlowKey& key) const override;

  TunnelOptions options_;
  PacketPool& pool_;
  HandshakeProvider& handshakes_;
  Random random_;
  Time now_ = Time::min();
  Address own4_, own6_;
  UplinkAccounts uplinks_;
  std::vector<std::unique_ptr<Peer>> peers_;
  PrefixTable prefixes_;
  std::unordered_map<uint32_t, SessionEntry> sessions_;
  std::map<Route, Responder> responders_;
  bool respondersSpeak_ = false;  ///< one of them may have something to send
  std::deque<Datagram> replies_;  ///< stateless answers to strangers
  std::map<MacAddress, MacEntry> macs_;
  Time nextSweep_ = Time::min();
  Ring<Packet> delivered_;
  std::deque<Event> events_;
  EcnProxy ecnProxy_;
  uint64_t shimSeed_;
  std::unique_ptr<AckShim> shim_;  ///< nullptr: off
  DropCounts drops_{};
  size_t turn_ = 0;
  double answerTokens_ = 0;
  Time answersAt_ = Time::min();
};

}  // namespace braid
