#pragma once

// What a session sends.
//
// Data flow. In come lost data (DataTracker), new data (packets and streams), protection
// (ProactiveRecovery), and the frames of the subflows, ControlFrames and FecReceiver. Each poll()
// returns one datagram, in this order of service:
//
//     urgent       path frames, probes and ACKs that are due: neither window nor pacer delays them
//     control      control frames that must arrive, and RECOVERED frames
//     tail         the rest of a parity whose first part has been sent
//     repair       data known to be lost, on the path where it is likely to arrive first
//     duplicates   data that is sent twice whatever happens (DuplicateQueue)
//     new data     the DRR scheduler chooses the flow, the path scheduler the path. In its turn a
//                  short flow that has ended may protect what it has sent
//     protection   copies and parities, when no new data waits
//     MTU probe
//     load test    what the operator has requested (measurement.h)
//
// All datagrams except path frames, tails and MTU probes also carry the ACKs pending on their path.
// Urgent, control, repair and new-data datagrams are filled up with repairs and new data that would
// be sent on their path anyway.
//
// Life. Outbound lives as long as its session. It holds no packet between two calls: data that
// finds no buffer or no path stays in its queue. Once the session closes, pollClose() is called
// instead of poll().
//
// Invariants. Known losses are repaired before new data is sent. New data is sent only on a path
// whose window is open, with two exceptions: small flows, and the protection of such a flow in its
// turn, have a priority allowance (SendAdmission::isOpenAhead); and while no path is usable, new
// data is sent together with the PING that asks whether the peer answers. A packet waits for a
// better path only as long as the path scheduler says.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/path/path_scheduler.h"
#include "tunnel/queue/counts.h"
#include "tunnel/session/measurement.h"
#include "tunnel/session/repairs.h"
#include "tunnel/session/session_parts.h"

namespace braid {

class Outbound {
 public:
  explicit Outbound(const SessionParts& parts);

  /// The options have changed.
  void setTunables();
  /// The next datagram; false when nothing may be sent now.
  bool poll(Datagram& out, Time now);
  /// The next datagram with CLOSE, on a usable subflow at a position below `left`, which counts
  /// down. False when there is none left.
  bool pollClose(const CloseFrame& close, size_t& left, Datagram& out, Time now);

  /// Data waits for a path or for its turn.
  bool hasWaiting() const;
  /// When poll() may have a datagram although nothing arrives meanwhile. The subflows' own
  /// deadlines are not included.
  Time nextDeadline(Time now) const;
  /// After a poll() that returned nothing: another poll() before a deadline would return nothing
  /// either, because all that is left waits for an ACK or for a time. Such a poll would only notice
  /// that a path is idle (application-limited) after its pacer has opened.
  bool isAtRest() const;
  Measurement& measurement() { return measurement_; }
  const DropCounts& drops() const { return drops_; }
  const OutboundCounts& counts() const { return counts_; }

 private:
  /// Result of an attempt to send new data.
  enum class Outcome : uint8_t {
    kSent,
    kNothing,  ///< nothing to send on the open paths: what is left waits for a better path
    kNoPath,   ///< data is left, and no path is open
    kLater,    ///< data is left, but no buffer is free, or no path is open for protection
  };
  bool pollUrgent(Datagram& out, Time now);
  bool sendPathFrame(Subflow& subflow, const Subflow::PathFrame& path, Packet buffer, Datagram& out,
                     Time now);
  bool pollControl(Datagram& out, Time now);
  void takeStreamWords();
  bool pollRepair(Datagram& out, Time now);
  bool pollNewData(Datagram& out, Time now);
  bool pollMtuProbe(Datagram& out, Time now);
  bool pollMeasurement(Datagram& out, Time now);

  Outcome offerNewData(Datagram& out, Time now);
  bool openOverflow(Time now);
  bool mayTakeTurn(const Flow& flow, Time now) const;
  bool takeTurn(DrrCursor& round, Flow& flow, Datagram& out, Time now);
  bool sendData(Subflow& subflow, DrrCursor& round, Datagram& out, Time now);
  bool dropTooLarge(DrrCursor& round, const Packet& unit);
  bool cutToFit(const Candidate& offer);
  void lookAtPaths(Time now);
  std::optional<size_t> choosePath(const Candidate& offer, Time now);
  Subflow* ackCarrier(Subflow& of);

  void addData(DatagramBuilder& build, Time now);
  /// `chosen`: the path scheduler has already chosen this path for the unit that `round` offers.
  void addData(DatagramBuilder& build, DrrCursor& round, bool chosen, Time now);
  void addNew(DatagramBuilder& build, DrrCursor& round, Flow& flow, Time now);
  void addRepair(DatagramBuilder& build, const DataUnit* datum, Time now);

  SessionParts parts_;
  Repairs repairs_;
  std::unique_ptr<PathScheduler> scheduler_;
  std::string schedulerName_;
  std::vector<PathView> views_;    ///< result of lookAtPaths(), by position
  std::vector<PathView> fitting_;  ///< scratch memory of choosePath()
  /// When to ask the path scheduler again for a flow that waits for a better path.
  Time patienceEnd_ = kNever;
  bool smallWaits_ = false;  ///< new data waits that has a priority allowance
  size_t turn_ = 0;          ///< position of the subflow asked first for urgent datagrams
  Measurement measurement_;
  size_t measured_ = 0;  ///< position of the subflow that sends next in a load test
  DropCounts drops_{};
  OutboundCounts counts_;
};

}  // namespace braid
