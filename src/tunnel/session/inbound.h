#pragma once

// What arrives at a session.
//
// What flows through. Opened datagrams go in, inner packets come out to the SessionOwner, and everybody whom a frame
// concerns is told:
//
//     DATA, SKIP                PacketReceiver: it hands out each inner packet once, and in order where that is due
//     STREAM...                 StreamLane
//     PARITY, PARITY_TAIL       BlockReceiver; what decoding gives back is read like a datagram
//     RECOVERED                 Protector: what it has sent need not be repaired
//     ACK, path frames, status  the subflow that is meant
//     SUBFLOW_PREFERENCE        PathDuties
//     RENEW_KEYS, KEYS_READY    KeyRenewal
//     PARAMS                    whoever keeps to what the peer says of itself; the first one of a session counts
//     OPTIONAL...               nobody
//     CLOSE                     isClosed()
//
// Life. Inbound lives as long as its session, and holds inner packets only while those before them are missing
// (PacketReceiver) and no other session needs the room. isClosed() and hasForgedAck() stay once they are said; either
// is the end of the session.
//
// Invariants. Frames take effect in their order, but for the last DATA or STREAM frame of a datagram: it takes over the
// datagram's buffer, so it comes last. Everything is the peer's word and is checked. A malformed datagram is not
// acknowledged, nor one with bytes of a stream that there is no memory for: those must come again. What its frames said
// up to there holds, but for that last one. Of frames that cost much to act on
// a datagram may hold kMaxCostlyFrames; more are ignored and counted.

#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/budget.h"
#include "tunnel/lane/packet_receiver.h"
#include "tunnel/session/session_parts.h"
#include "tunnel/wire/frame_reader.h"

namespace braid {

class Inbound final : private Keeper {
 public:
  /// How a datagram arrived.
  struct Arrival {
    PacketNumber packetNumber{};
    Ecn ecn = Ecn::kNotEct;
    size_t size = 0;  ///< bytes of UDP payload
    Route from;
    Time now;
  };

  /// A frame that carries a unit of a lane; or none.
  using UnitFrame = std::variant<std::monostate, DataFrame, StreamFrame>;

  explicit Inbound(const SessionParts& parts);

  void setTunables();
  /// `frames`: an opened datagram of the subflow, header and tag cut off. False when malformed.
  bool onDatagram(Subflow& subflow, Packet frames, const Arrival& arrival);
  void onTimer(Time now);
  Time nextDeadline() const { return packets_.nextDeadline(); }
  /// The session ends: what waits for those before it waits for nothing any more, and is handed out.
  void releaseHeld();

  /// The peer has said CLOSE.
  bool isClosed() const { return isClosed_; }
  /// The peer has acknowledged what was never sent.
  bool hasForgedAck() const { return hasForgedAck_; }
  DropCounts drops() const;
  /// Of this session.
  ProtocolVersion version() const { return parts_.version; }
  /// Inner packets, as they arrive and wait for their turn.
  const PacketReceiver& packets() const { return packets_; }

 private:
  void onScattered(SubflowId subflow, PacketNumber pn, ByteView datagram, Time now);
  void onFrame(Subflow& subflow, const WireFrame& frame, const Arrival& arrival);
  void onParams(const Params& params);
  bool onData(const DataFrame& frame, Packet packet, Time now);
  StreamLane::Verdict onUnit(const UnitFrame& frame, Time now);
  void takeOver(const UnitFrame& last, Packet datagram, Time now);
  void setPatience(Time now);
  void takeRestored(Time now);
  void deliverWaiting();
  void giveBack() override;  // Keeper, of the packets that are held
  void drop(Drop cause) { countDrop(drops_, cause); }

  SessionParts parts_;
  PacketReceiver packets_;
  Time patienceDue_ = Time::min();  ///< when to look at the paths again for setPatience()
  DropCounts drops_{};              ///< those of `packets_` are not in it
  bool knowsPeer_ = false;          ///< by its PARAMS
  bool isClosed_ = false;
  bool hasForgedAck_ = false;
};

}  // namespace braid
