#pragma once

// What leaves a session.
//
// What flows through. Lost data of the DataLedger, new data of the lanes, protection of the Protector, and the
// frames that subflows, ControlFrames and BlockReceiver have to say go in; one datagram for each poll() comes out,
// in the order of service:
//
//     urgent       path frames, probes and ACKs that are due: they wait for neither window nor pacer
//     control      control frames that must arrive, and what decoding has given back
//     tail         the rest of a parity whose head has left
//     repair       data that is known lost: on the path where it is likely to arrive first
//     duplicates   second sendings of a duplicating policy
//     new data     the round over the flows; the path scheduler says where each packet goes. In its turn a
//                  short flow that has ended may protect what it has sent
//     protection   copies and parities, when nothing new waits
//     MTU probe
//     load test    what the operator has asked for (measurement.h)
//
// But for path frames, tails and MTU probes a datagram also carries the ACKs that are pending on its path; and all but
// these and protection carry repairs and new data as far as they fit and would go there anyway.
//
// Life. Outbound lives as long as its session and holds no packet between two calls: what finds no buffer or no path
// stays where it waits. Once the session closes, pollClose() takes the place of poll().
//
// Invariants. Known losses go before new data. New data leaves only on a path whose window is open (small flows, and
// the protection of such a flow in its turn, may be a little ahead of it), or, while no path is usable, with the PING that asks for the peer. A packet waits for a
// better path only as long as the path scheduler says.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/path/path_scheduler.h"
#include "tunnel/lane/inner_counts.h"
#include "tunnel/session/measurement.h"
#include "tunnel/session/repairs.h"
#include "tunnel/session/session_parts.h"

namespace braid {

class Outbound {
 public:
  explicit Outbound(const SessionParts& parts);

  /// The options have changed.
  void setTunables();
  /// The next datagram; false when none may leave now.
  bool poll(Datagram& out, Time now);
  /// The CLOSE on a usable subflow whose position is below `left`, which is counted down; false when there is none
  /// any more.
  bool pollClose(const CloseFrame& close, size_t& left, Datagram& out, Time now);

  /// Data waits for a path or a turn.
  bool hasWaiting() const;
  /// When poll() may have something although nothing arrives meanwhile. The subflows' own deadlines are not in
  /// it.
  Time nextDeadline(Time now) const;
  /// After a poll() that gave nothing: asking again before a deadline gives nothing either, for all that is left waits
  /// for an ACK or for a time. Only that a path is idle once its pacer is open is noticed at the next poll.
  bool isAtRest() const;
  Measurement& measurement() { return measurement_; }
  const DropCounts& drops() const { return drops_; }
  const OutboundCounts& counts() const { return counts_; }

 private:
  /// What became of new data.
  enum class Outcome : uint8_t {
    kSent,
    kNothing,  ///< the paths that are open have none to send: what is left waits for a better one
    kNoPath,   ///< some is left, and no path is open
    kLater,    ///< some is left; no buffer, or no path for protection
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
  bool takeTurn(Round& round, Flow& flow, Datagram& out, Time now);
  bool sendData(Subflow& subflow, Round& round, Datagram& out, Time now);
  bool dropTooLarge(Round& round, const Packet& unit);
  bool cutToFit(const Offer& offer);
  void lookAtPaths(Time now);
  std::optional<size_t> choosePath(const Offer& offer, Time now);
  Subflow* ackCarrier(Subflow& of);

  void addData(DatagramBuilder& build, Time now);
  /// `chosen`: the unit that the round offers is to go on this path.
  void addData(DatagramBuilder& build, Round& round, bool chosen, Time now);
  void addNew(DatagramBuilder& build, Round& round, Flow& flow, Time now);
  void addRepair(DatagramBuilder& build, const Datum* datum, Time now);

  SessionParts parts_;
  Repairs repairs_;
  std::unique_ptr<PathScheduler> scheduler_;
  std::string schedulerName_;
  std::vector<PathView> views_;    ///< of lookAtPaths(), by position
  std::vector<PathView> fitting_;  ///< scratch of choosePath()
  Time patienceEnd_ = kNever;  ///< when to ask the scheduler again for a flow that waits for a better path
  bool smallWaits_ = false;    ///< new data waits that may go ahead of window and pacer
  size_t turn_ = 0;            ///< position of the subflow whose turn it is to send what is urgent
  Measurement measurement_;
  size_t measured_ = 0;  ///< position of the subflow whose turn it is in a load test
  DropCounts drops_{};
  OutboundCounts counts_;
};

}  // namespace braid
