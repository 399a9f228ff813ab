#pragma once

// What arrives at a session.
//
// Data flow. Opened datagrams come in, inner packets come out as PacketEvents, and each frame
// is passed to the part of the session that handles it:
//
//     DATA, SKIP                PacketReceiver: returns each inner packet once, in order if needed
//     STREAM...                 SessionStreams
//     PARITY, PARITY_TAIL       FecReceiver; what it decodes is read like a datagram
//     RECOVERED                 ProactiveRecovery: the packets named there need no repair
//     ACK, path frames, status  the subflow that the frame names
//     SUBFLOW_PREFERENCE        PathRoles
//     RENEW_KEYS, KEYS_READY    KeyUpdate
//     PARAMS                    PathManager, ProactiveRecovery, SessionStreams; the first counts
//     OPTIONAL...               ignored
//     CLOSE                     isClosed()
//
// Life. Inbound lives as long as its session. It holds inner packets only while packets before them
// are missing (PacketReceiver) and no other session needs the memory. isClosed() and hasForgedAck()
// never become false again; either one ends the session.
//
// Invariants. Frames take effect in their order, except the last DATA or STREAM frame of a
// datagram: it takes over the datagram's buffer, so it is processed last. Everything is checked,
// because it comes from the peer. A malformed datagram is not acknowledged, nor is one with stream
// bytes for which there is no memory: the peer must send those again. The frames of such a datagram
// before the error still take effect, except that last DATA or STREAM frame. A datagram may hold
// kMaxCostlyFrames frames that are expensive to process; more are ignored and counted.

#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/memory_quota.h"
#include "tunnel/fec/fec_receiver.h"
#include "tunnel/fec/recovery_driver.h"
#include "tunnel/order/packet_receiver.h"
#include "tunnel/queue/packet_events.h"
#include "tunnel/session/key_renewal.h"
#include "tunnel/session/path_manager.h"
#include "tunnel/stream/session_streams.h"
#include "tunnel/wire/frame_table.h"

namespace braid {

class Inbound final : private QuotaUser {
 public:
  /// How a datagram arrived.
  struct Arrival {
    PacketNumber packetNumber{};
    Ecn ecn = Ecn::kNotEct;
    size_t size = 0;  ///< bytes of UDP payload
    Route from;
    Time now;
  };

  /// A frame that carries a data unit (DATA or STREAM), or none.
  using UnitFrame = std::variant<std::monostate, DataFrame, StreamFrame>;

  /// `orderMemory`: see PacketReceiver. All arguments must outlive this object.
  Inbound(const QueueOptions& options, PacketPool& pool, PathManager& paths, KeyUpdate& renewal,
          SessionStreams& streams, ProactiveRecovery& proactiveRecovery, FecReceiver& receiver,
          PacketEvents& events, MemoryQuota* orderMemory);

  void setTunables();
  /// `frames`: an opened datagram of the subflow, without header and tag. False when it is
  /// malformed.
  bool onDatagram(Subflow& subflow, Packet frames, const Arrival& arrival);
  void onTimer(Time now);
  Time nextDeadline() const { return packets_.nextDeadline(); }
  /// The session ends: hands out the held packets although packets before them are missing.
  void releaseHeld();

  /// The peer has said CLOSE.
  bool isClosed() const { return isClosed_; }
  /// The peer has acknowledged a packet that was never sent.
  bool hasForgedAck() const { return hasForgedAck_; }
  DropCounts drops() const;
  /// The receiver of inner packets, which also holds those that wait for their order.
  const PacketReceiver& packets() const { return packets_; }

 private:
  void onScattered(SubflowId subflow, PacketNumber pn, ByteView datagram, Time now);
  void onFrame(Subflow& subflow, const WireFrame& frame, const Arrival& arrival);
  void onAck(const Subflow& over, const AckFrame& ack, Time now);
  void onParams(const Params& params);
  bool onData(const DataFrame& frame, Packet packet, Time now);
  SessionStreams::Verdict onUnit(const UnitFrame& frame, Time now);
  void takeOver(const UnitFrame& last, Packet datagram, Time now);
  void setPatience(Time now);
  void takeRestored(Time now);
  void deliver(Packet packet);
  void deliverWaiting();
  void reclaim() override;  // QuotaUser, of the packets that are held
  void drop(Drop cause) { countDrop(drops_, cause); }

  const QueueOptions& options_;
  PacketPool& pool_;
  PathManager& paths_;
  SubflowSet& subflows_;  ///< of paths_
  KeyUpdate& renewal_;
  SessionStreams& streams_;
  ProactiveRecovery& proactiveRecovery_;
  FecReceiver& receiver_;
  PacketEvents& events_;
  PacketReceiver packets_;
  Time patienceDue_ = Time::min();  ///< when to look at the paths again for setPatience()
  DropCounts drops_{};              ///< the drops of `packets_` are not included
  bool knowsPeer_ = false;          ///< the peer's PARAMS have arrived
  bool isClosed_ = false;
  bool hasForgedAck_ = false;
};

}  // namespace braid
