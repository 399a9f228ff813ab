#pragma once

// What a session sends next. Session owns one Outbound. Session::pollDatagram() calls poll() once;
// its caller repeats that until it is false, after whatever has happened and at each deadline. Each
// call builds at most one datagram. Outbound itself keeps no queue and no packet: it asks the parts
// that do, in the order of service below.
//
// Terms. Data is inner packets and bytes of streams. A data unit (DataUnit) is one inner packet or
// one piece of a stream: what is sent, tracked and resent as a whole. A repair sends a unit of a
// lost datagram again, with a new packet number and often on another subflow. Protection is a copy
// of a unit, or a parity over several, that is sent before any loss is known. A subflow is open
// when congestion window and pacer allow a datagram now (SendAdmission). It is usable while the
// peer answers on it (peer.h), silent when it has stopped to.
//
// Order of service, each with the part that has what is sent. What cannot be sent now does not hold
// up what follows:
//
//     urgent       Subflow: path challenges and responses, PINGs (keepalive, and the probe of a
//                  PTO) and ACKs that are due. They do not wait for window or pacer
//     control      ControlFrames (frames that must arrive; also SKIPs of DataTracker, and resets
//                  and credit of SessionStreams), FecReceiver (RECOVERED frames: which losses the
//                  peer need not repair). Do not wait for window or pacer either
//     tail         ProactiveRecovery: the rest of a parity whose first part has been sent
//     repair       DataTracker: units known to be lost, on the path where they likely arrive first
//     duplicates   ProactiveRecovery: units that the recovery policy (tunnel/fec/policies.h) sends
//                  twice in any case
//     new data     DrrScheduler chooses the flow, PathScheduler the path (DataSender). In a
//                  bare turn (drr.h) a flow that has no more data is protected
//     protection   ProactiveRecovery: copies and parities, when no new data waits
//     MTU probe    Subflow
//     load test    LoadTest
//
// Every datagram except path challenges and responses, tails and MTU probes also carries the ACKs
// that are pending on its path. An urgent ACK goes to the fastest path instead if it reports a loss
// or its own path is silent. Urgent datagrams (except challenges and responses), control, repairs
// and new data are filled up with repairs and new data that would be sent on their path anyway
// (DataSender::fill), if the path is open. While no subflow is usable, a PING is filled up even on
// a path that is not open.

#include <cstddef>

#include "base/time.h"
#include "tunnel/fec/fec_receiver.h"
#include "tunnel/fec/recovery_driver.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/data_sender.h"
#include "tunnel/session/load_test.h"
#include "tunnel/session/path_manager.h"
#include "tunnel/session/session_options.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

class Outbound {
 public:
  /// The arguments are the other parts of the session; all must outlive this object.
  Outbound(PacketPool& pool, DatagramSealer& sealer, PathManager& paths, ControlFrames& controls,
           DataTracker& dataTracker, SessionStreams& streams, ProactiveRecovery& proactiveRecovery,
           FecReceiver& receiver, DataSender& data);

  /// Builds and seals the next datagram. False, and `out` is not to be used, when nothing may be
  /// sent now, the pool has no buffer, or the keys are used up (DatagramSealer::failed()).
  bool poll(Datagram& out, Time now);
  /// Called instead of poll() once the session closes: the next datagram with CLOSE. `left` is the
  /// number of subflows that are still to be asked, at first all of them; it counts down, and each
  /// usable one gets one datagram. False when none is left, or when the pool has no buffer: that
  /// subflow gets no CLOSE, and another call goes on with the next one.
  bool pollClose(const CloseFrame& close, size_t& left, Datagram& out, Time now);

  /// When poll() may have a datagram although nothing arrives meanwhile: a path opens, or a lost
  /// unit may be repaired or has become too late (SKIP). Never before `now`. The subflows' own
  /// deadlines (ACK, PTO, keepalive) are not included; PathManager has those.
  Time nextDeadline(Time now) const;
  /// To be called after a poll() that returned nothing. True: poll() may be left out until the
  /// session's next deadline or input; that only delays when a path is noticed to be idle
  /// (application-limited). False: poll() again at every turn of the event loop, because what it
  /// waits for has no deadline (memory that other sessions free).
  bool isAtRest() const;
  /// The load test of the session's paths.
  LoadTest& loadTest() { return loadTest_; }

 private:
  bool pollUrgent(Datagram& out, Time now);
  bool sendPathFrame(Subflow& subflow, const Subflow::PathFrame& path, Packet buffer, Datagram& out,
                     Time now);
  bool pollControl(Datagram& out, Time now);
  void queueStreamFrames();
  bool pollRepair(Datagram& out, Time now);
  bool pollNewData(Datagram& out, Time now);
  bool pollMtuProbe(Datagram& out, Time now);
  bool pollLoadTest(Datagram& out, Time now);
  Subflow* ackCarrier(Subflow& of);

  PacketPool& pool_;
  DatagramSealer& sealer_;
  PathRoles& roles_;
  SubflowSet& subflows_;
  ControlFrames& controls_;
  DataTracker& dataTracker_;
  SessionStreams& streams_;
  ProactiveRecovery& proactiveRecovery_;
  FecReceiver& receiver_;
  DataSender& data_;
  LoadTest loadTest_;
  // Positions in subflows_: the subflow that is asked first, so that all have their turn.
  size_t firstUrgent_ = 0;
  size_t firstInTest_ = 0;
};

}  // namespace braid
