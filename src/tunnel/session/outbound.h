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
//     load test    what the operator has requested (Measurement)
//
// All datagrams except path frames, tails and MTU probes also carry the ACKs pending on their path.
// Urgent, control, repair and new-data datagrams are filled up with repairs and new data that would
// be sent on their path anyway (DataSender).
//
// Life. Outbound lives as long as its session and holds no packet between two calls. Once the
// session closes, pollClose() is called instead of poll().

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "tunnel/fec/fec_receiver.h"
#include "tunnel/fec/recovery_driver.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/data_sender.h"
#include "tunnel/session/path_manager.h"
#include "tunnel/session/session_options.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

/// A load test of a session's paths, which the operator requests. It sends datagrams without
/// content, as many as the congestion control permits. They are packets of their subflow like all
/// others: acknowledged, lost and paced. Everything else that waits is sent first. The result is in
/// the statistics of the subflows (sent, delivered, lost, RTT).
class Measurement {
 public:
  /// `subflows`: those of the session; they must outlive this object.
  explicit Measurement(const SubflowSet& subflows) : subflows_(subflows) {}

  /// Begins the test. False, and nothing begins, when no usable subflow matches the request.
  bool begin(const MeasureRequest& request, Time now) {
    bool any = std::any_of(subflows_.begin(), subflows_.end(),
                           [&](const Subflow* s) { return s->usable() && isMeant(request, *s); });
    if (!any) return false;
    request_ = request;
    endsAt_ = now + std::min(request.time, MeasureRequest::kLongest);
    left_ = std::min(request.bytes, MeasureRequest::kMostBytes);
    sent_ = 0;
    running_ = true;
    return true;
  }
  void end() { running_ = false; }
  bool isRunning() const { return running_; }
  /// Ends the test when its time or its bytes are used up.
  void update(Time now) { running_ = running_ && now < endsAt_ && left_ > 0; }
  /// Whether the running test includes the subflow.
  bool means(const Subflow& s) const { return running_ && isMeant(request_, s); }
  void onSent(size_t bytes) {
    left_ -= std::min<uint64_t>(left_, bytes);
    sent_ += bytes;
  }
  Time endsAt() const { return endsAt_; }
  /// Bytes of UDP payload sent by the last test.
  uint64_t sent() const { return sent_; }

 private:
  static bool isMeant(const MeasureRequest& request, const Subflow& s) {
    if (request.path.empty()) return request.metered || s.preference().use != PathUse::kMetered;
    return request.path == (s.uplink().empty() ? s.route().remote.toString() : s.uplink());
  }

  const SubflowSet& subflows_;
  MeasureRequest request_;
  Time endsAt_{};
  uint64_t left_ = 0, sent_ = 0;
  bool running_ = false;
};

class Outbound {
 public:
  /// All arguments must outlive this object.
  Outbound(PacketPool& pool, DatagramSealer& sealer, PathManager& paths, ControlFrames& controls,
           DataTracker& dataTracker, SessionStreams& streams, ProactiveRecovery& proactiveRecovery,
           FecReceiver& receiver, DataSender& data);

  /// The next datagram; false when nothing may be sent now.
  bool poll(Datagram& out, Time now);
  /// The next datagram with CLOSE, on a usable subflow at a position below `left`, which counts
  /// down. False when there is none left.
  bool pollClose(const CloseFrame& close, size_t& left, Datagram& out, Time now);

  /// When poll() may have a datagram although nothing arrives meanwhile. The subflows' own
  /// deadlines are not included.
  Time nextDeadline(Time now) const;
  /// After a poll() that returned nothing: another poll() before a deadline would return nothing
  /// either, because all that is left waits for an ACK or for a time. Such a poll would only notice
  /// that a path is idle (application-limited) after its pacer has opened.
  bool isAtRest() const;
  Measurement& measurement() { return measurement_; }

 private:
  bool pollUrgent(Datagram& out, Time now);
  bool sendPathFrame(Subflow& subflow, const Subflow::PathFrame& path, Packet buffer, Datagram& out,
                     Time now);
  bool pollControl(Datagram& out, Time now);
  void takeStreamWords();
  bool pollRepair(Datagram& out, Time now);
  bool pollNewData(Datagram& out, Time now);
  bool pollMtuProbe(Datagram& out, Time now);
  bool pollMeasurement(Datagram& out, Time now);
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
  size_t turn_ = 0;  ///< position of the subflow asked first for urgent datagrams
  Measurement measurement_;
  size_t measured_ = 0;  ///< position of the subflow that sends next in a load test
};

}  // namespace braid
