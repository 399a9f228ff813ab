#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ackshim/counters.h"
#include "ackshim/opening.h"
#include "ackshim/options.h"
#include "ackshim/outbox.h"
#include "ackshim/to_receiver.h"
#include "ackshim/to_sender.h"
#include "ackshim/tracked_flows.h"
#include "ackshim/tunnel_knowledge.h"
#include "base/packet.h"
#include "base/random.h"
#include "inet/inner_packet.h"

namespace braid {

/// Wakes unmodified TCP senders after losses that their own timer would take 200 ms to notice
/// (docs/ackshim.md). Stands on every gateway between the local hosts and the tunnel, and sees the packets of
/// both directions.
///
///   setters  setOptions
///   on...    onFromHost, onToHost for every packet; onTunnelDropped; onTimer at nextDeadline()
///   poll...  after every batch of on... calls, until they give an empty handle
///
/// This class finds the flow of a packet, lets the flow's two halves (half.h) take note of it, and shows it
/// to those who act: ToSender and ToReceiver for proven flows, Openings for all others.
class AckShim {
 public:
  enum class Verdict : uint8_t { kPass, kDrop };
  /// Numbers of which none tells the other: hosts can time the waits. Unpredictable outside of tests.
  struct Seeds {
    uint64_t flows;  ///< keys the hash of flows
    uint64_t waits;  ///< draws how long T-RACKs wait
  };

  /// `pool` gives the packets that the shim makes; it and `tunnel` (nullptr: the tunnel never carries
  /// anything for long) must outlive the shim.
  AckShim(const AckShimOptions& options, PacketPool& pool, const TunnelKnowledge* tunnel, const Seeds& seeds);
  AckShim(const AckShim&) = delete;
  AckShim& operator=(const AckShim&) = delete;

  /// Takes over everything but the sizes.
  void setOptions(const AckShimOptions& options);

  /// A packet of a local host on its way into the tunnel, before anything in it is changed. `parsed` is
  /// parseInnerPacket(packet).
  void onFromHost(ByteView packet, const InnerPacket& parsed, Time now);
  /// A packet of the peer on its way to a local host, as the host will see it.
  [[nodiscard]] Verdict onToHost(ByteView packet, const InnerPacket& parsed, Time now);
  /// The tunnel dropped a local host's packet for good (AQM, byte bound, expiry).
  void onTunnelDropped(ByteView packet, const InnerPacket& parsed, Time now);
  void onTimer(Time now);
  Time nextDeadline() const { return std::min(flows_.nextDeadline(), openings_.nextDeadline()); }

  /// A packet for a local host: an ACK for a sender, a segment for a receiver.
  Packet pollToHost() { return outbox_.pollToHost(); }
  /// A local host's segment again, to go into the tunnel.
  Packet pollToPeer() { return outbox_.pollToPeer(); }

  const ShimCounters& counters() const { return counters_; }
  /// Flows that proved to have two ends.
  size_t flows() const { return flows_.table().size(); }
  size_t cachedPackets() const { return flows_.cache().size(); }
  /// Looks a flow up, for status and tests; `key` is from the local host. nullptr when it is not known.
  const ShimFlow* find(const FlowKey& key);

 private:
  Verdict onPacket(ByteView packet, const InnerPacket& parsed, bool fromHost, Time now);
  FlowPlace placeOf(const InnerPacket& parsed, bool fromHost) const;
  Verdict onSegment(const FlowPlace& place, ByteView packet, const InnerPacket& parsed, bool fromHost);
  Verdict onProven(uint32_t i, ByteView packet, const TcpSegment& s, bool fromHost);
  void onReset(uint32_t i, const TcpSegment& s, bool fromHost);

  AckShimOptions options_;
  ShimCounters counters_;
  ShimOutbox outbox_;
  TrackedFlows flows_;
  ToSender sender_;
  ToReceiver receiver_;
  Openings openings_;
};

}  // namespace braid
