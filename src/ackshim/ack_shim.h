#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ackshim/counters.h"
#include "ackshim/flow_table.h"
#include "ackshim/host_legs.h"
#include "ackshim/options.h"
#include "ackshim/syn_replay.h"
#include "ackshim/tail_cache.h"
#include "ackshim/tunnel_knowledge.h"
#include "base/packet.h"
#include "base/random.h"
#include "base/ring.h"
#include "base/timer_wheel.h"
#include "inet/inner_packet.h"

namespace braid {

/// Wakes unmodified TCP senders after losses that their own timer would take 200 ms to notice
/// (docs/ackshim.md). Stands on every gateway between the local hosts and the tunnel, and sees the packets of
/// both directions.
///
///   setters  setOptions
///   on...    onFromHost, onToHost for every packet; onTunnelDropped; onTimer at nextDeadline()
///   poll...  after every batch of on... calls, until they give an empty handle
class AckShim {
 public:
  enum class Verdict : uint8_t { kPass, kDrop };
  /// A packet for onPackets(), which sets the verdict.
  struct Seen {
    ByteView packet;
    const InnerPacket* parsed;
    bool fromHost;
    Verdict verdict = Verdict::kPass;
  };

  /// `pool` gives the packets that the shim makes; it and `tunnel` (nullptr: the tunnel never carries
  /// anything for long) must outlive the shim. `seed` should be unpredictable outside of tests.
  AckShim(const AckShimOptions& options, PacketPool& pool, const TunnelKnowledge* tunnel, uint64_t seed);

  /// Takes over everything but the sizes.
  void setOptions(const AckShimOptions& options);

  /// A packet of a local host on its way into the tunnel, before anything in it is changed. `parsed` is
  /// parseInnerPacket(packet).
  void onFromHost(ByteView packet, const InnerPacket& parsed, Time now);
  /// A packet of the peer on its way to a local host, as the host will see it.
  [[nodiscard]] Verdict onToHost(ByteView packet, const InnerPacket& parsed, Time now);
  /// onFromHost() and onToHost() for any number of packets of either direction, in their order: cheaper when
  /// the flows are many, as their records are fetched together.
  void onPackets(std::span<Seen> packets, Time now);
  /// The tunnel dropped a local host's packet for good (AQM, byte bound, expiry).
  void onTunnelDropped(ByteView packet, const InnerPacket& parsed, Time now);
  void onTimer(Time now);
  Time nextDeadline() const { return std::min(wheel_.nextDeadline(), syns_.nextDeadline()); }

  /// A packet for a local host: an ACK for a sender, a segment for a receiver.
  Packet pollToHost() { return poll(toHost_); }
  /// A local host's segment again, to go into the tunnel.
  Packet pollToPeer() { return poll(toPeer_); }

  const ShimCounters& counters() const { return counters_; }
  /// Flows that proved to have two ends.
  size_t flows() const { return table_.size(); }
  size_t cachedPackets() const { return cache_.size(); }
  /// Looks a flow up, for status and tests; `key` is from the local host. nullptr when it is not known.
  const ShimFlow* find(const FlowKey& key);

 private:
  static constexpr Duration kNothing = Tracks::kNothing;
  /// Packets of which the records are fetched together. Ours: more than memory can be asked for at a time,
  /// and little beside the first-level cache.
  static constexpr size_t kBatch = 32;
  struct Place {
    FlowKey key;
    uint64_t hash;
  };

  // ack_shim.cc: from packet to flow
  Verdict onPacket(ByteView packet, const InnerPacket& parsed, bool fromHost, Time now);
  Place placeOf(const InnerPacket& parsed, bool fromHost) const;
  Verdict onSegment(const Place& place, ByteView packet, const InnerPacket& parsed, bool fromHost);
  Verdict onProven(uint32_t i, ByteView packet, const TcpSegment& s, bool fromHost);
  void onReset(uint32_t i, const TcpSegment& s, bool fromHost);
  void erase(uint32_t i);
  bool isEnabled(const FlowKey& key) const;
  Time forward(Time now);
  void armIn(uint32_t i, Duration ahead);
  static Packet poll(Ring<Packet>& ring);

  // opening.cc: flows that are not yet proven
  Verdict onOpening(const FlowKey& key, uint64_t hash, ByteView packet, const TcpSegment& s, bool fromHost);
  void onSyn(const FlowKey& key, uint64_t hash, uint32_t i, ByteView packet, const TcpSegment& s,
             bool fromHost);
  uint32_t open(const FlowKey& key, uint64_t hash, bool fromHost);
  void join(const FlowKey& key, uint64_t hash, const TcpSegment& s, bool fromHost);
  bool isProof(ShimFlow& flow, const TcpSegment& s, bool fromHost);
  uint32_t prove(uint32_t halfOpen, uint64_t hash);
  uint64_t hostHash(const FlowKey& key) const;
  void keepSyn(const FlowKey& key, uint64_t hash, ByteView packet, const TcpSegment& s);
  void onSynAnswered(const FlowKey& key, uint64_t hash);
  void recallLeg(ShimFlow& flow);

  // to_sender.cc: the local host as a sender
  void onSent(uint32_t i, ByteView packet, const TcpSegment& s, Half::Data data, const Half::Before& before);
  void keepAgain(ShimFlow& flow, ByteView packet, SeqRange range);
  void armLook(uint32_t i);
  void onArrived(ShimFlow& flow, SeqRange range, Seq before);
  bool hasHole(const ShimFlow& flow);
  Verdict onPeerAck(uint32_t i, const TcpSegment& s, Half::Ack ack);
  Duration onSenderTimer(ShimFlow& flow);
  Duration tellHole(ShimFlow& flow);
  Duration replayDropped(ShimFlow& flow);
  void speak(ShimFlow& flow, uint8_t acks);
  void onFired(ShimFlow& flow, Actuator actuator, Seq at, bool sent);
  void sendAcks(ShimFlow& flow, uint8_t count, std::span<const SeqRange> sacks);

  // to_receiver.cc: the local host as a receiver
  void onGiven(uint32_t i, ByteView packet, const TcpSegment& s, Half::Data data);
  void onHostAck(uint32_t i, const TcpSegment& s, Half::Ack ack);
  Duration onReceiverTimer(ShimFlow& flow);
  Duration sendAgain(ShimFlow& flow, TailCache::Entry& first);
  Duration legWait(const ShimFlow& flow) const;
  bool replay(Ring<Packet>& ring, ByteView packet);

  AckShimOptions options_;
  PacketPool& pool_;
  const TunnelKnowledge* tunnel_;
  Random random_;
  FlowTable table_;
  TimerWheel wheel_;
  TailCache cache_;
  HostLegs legs_;
  SynReplay syns_;
  Time now_{};
  Stamp stamp_;  ///< now_
  Ring<Packet> toHost_;
  Ring<Packet> toPeer_;
  ShimCounters counters_;
};

}  // namespace braid
