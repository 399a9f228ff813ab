#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "scheduler/rate/controller_group.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/subflow/admission.h"
#include "tunnel/subflow/ecn_validator.h"
#include "tunnel/subflow/in_flight.h"
#include "tunnel/subflow/mtu_discovery.h"
#include "tunnel/subflow/path_estimate.h"
#include "tunnel/subflow/route.h"
#include "tunnel/subflow/sent_map.h"
#include "tunnel/subflow/subflow_state.h"
#include "tunnel/subflow/subflow_status.h"

namespace braid {

/// What is new in an ACK.
struct AckNews {
  AckSample sample;            ///< for the rate control; learn() completes it
  Time largestSentAt;          ///< of the largest packet that the ACK covers
  Time oldestSentAt = kNever;  ///< of the oldest packet that it is the first to cover
};

/// The sending side of one subflow: what was sent and what became of it. It has the sent-map with
/// the bytes in flight, what is learnt from ACKs and losses (the path, its MTU, whether it carries
/// ECN, how fast to send), and the counters.
///
/// This class reports a packet's fate to all that must know: to the in-flight tracker, which tells
/// the data tracker; to the path estimate and the other estimates; to send admission; and, by
/// events, to the session.
class SubflowSender {
 public:
  /// `route`: the first one; its address family determines how large datagrams may be.
  /// `dataTracker`, `group` and `random` must outlive the sender.
  SubflowSender(const SubflowEventSink& voice, const Route& route, const SubflowOptions& options,
                DataTracker& dataTracker, ControllerGroup& group, SecretRandom& random, Time now);
  SubflowSender(const SubflowSender&) = delete;
  SubflowSender& operator=(const SubflowSender&) = delete;

  // ---- the parts

  /// When a datagram may leave.
  const SendAdmission& admission() const { return admission_; }
  SendAdmission& admission() { return admission_; }
  /// What has been measured of the path.
  const PathEstimate& path() const { return path_; }
  const InFlightTracker& flight() const { return inFlightTracker_; }
  /// What each packet number carried and what became of it.
  const SentPackets& sent() const { return inFlightTracker_.packets(); }
  const MtuDiscovery& mtu() const { return mtu_; }
  MtuDiscovery& mtu() { return mtu_; }
  ProtectionStatistics& tally() { return tally_; }
  void fill(SubflowStatus& status, const RecoveryOptions& options) const;

  // ---- what leaves

  /// Whether a packet number is free.
  bool canNumber() const { return !sent().full(); }
  /// Takes the next packet number for a datagram of `bytes` that is sent now, with `headers` bytes
  /// of IP and UDP around it. `tracked`: it is ack-eliciting; then the caller fills in the data
  /// units.
  SentPacket& onSent(size_t bytes, size_t headers, bool tracked, Time now);
  /// Skips the next packet number if it is time for that. Must be called after each datagram that
  /// was sent.
  void maybeSkip(Time now);
  /// Chooses the ECN codepoint of that datagram. `silent`: as SubflowStateMachine::isSilent() says
  /// of the path.
  Ecn codepoint(PacketNumber pn, SentPacket& packet, bool silent, Time now);
  /// A challenge was sent as ECT(0).
  void onMarkedChallenge() { ecn_.onProbeSent(); }
  /// Size of the MTU probe to send now; 0: none.
  size_t mtuProbe() const { return admission_.isUsable() ? mtu_.pollProbe() : 0; }
  void onMtuProbeSent(size_t size, Time now);
  /// `bytes` of inner packets are sent again on this subflow.
  void countRepair(size_t bytes) { counts_.retransmittedBytes += bytes; }
  /// The sender had nothing more to send while this subflow was open.
  void setAppLimited() { path_.setAppLimited(inFlightTracker_.bytes()); }
  Time lastSentAt() const { return lastSentAt_; }
  /// For the path scheduler, without weight and uplink. `overflow` as in
  /// SendAdmission::takesData().
  PathView view(Time now, bool overflow) const;

  // ---- what becomes of it

  /// Whether the ACK names a packet number that was never sent: one not yet used, or a skipped one.
  bool isForged(const AckFrame& ack) const;
  /// Settles the packets that the ACK covers; the ACK must not be forged. Returns nullopt when it
  /// says nothing new. Otherwise the caller updates the state of the subflow and then calls
  /// learn(). `samePath`: the ACK came over this subflow.
  std::optional<AckNews> onAck(const AckFrame& ack, bool samePath, Time now);
  /// Draws the conclusions from an ACK: losses and rate control. `startAnew`: the path is back
  /// after a long silence.
  void learn(AckNews news, bool startAnew, Time now);
  /// The peer has decoded the data of the packet. Returns false when that is not news.
  bool onRecovered(PacketNumber pn);
  /// The packet may not arrive: reinjects its data elsewhere as soon as possible.
  void moveData(SentPacket& packet, Time now) { inFlightTracker_.moveData(packet, now); }
  /// Gives up the data in flight: nobody waits for it any more.
  void giveUpData(Drop cause) { inFlightTracker_.giveUpData(cause); }

  // ---- what happens to the path

  /// The subflow became usable or unusable. When it became unusable, all data in flight is
  /// reinjected elsewhere, and the oldest packets are forgotten.
  void setUsable(bool usable, Time now);
  /// A challenge was answered after `rtt`.
  void onProof(Duration rtt, Time now) { path_.onProof(rtt, now); }
  /// The route has changed. `samePath`: what is known of the path still holds.
  void onNewRoute(bool samePath, Time now);

  // ---- timers, in addition to those of flight() and mtu()

  /// flight().lossTime() has come.
  void onLossTimer(Time now);
  /// A PTO has passed; `isFirst`: the first one since the last ACK. Reinjects the data of the
  /// oldest packet in flight elsewhere. The first time also that of as many more packets as
  /// EarlyReinjectionBudget allows, because most often the path has died.
  void onPto(bool isFirst, Time now);
  /// When the packets in flight on a suppressed path should have been acknowledged.
  Time suppressionDeadline() const;
  /// suppressionDeadline() has come: reinjects the data in flight elsewhere.
  void onSuppressionTimer(Time now);
  /// A path that does not answer is probed. Each probe takes a packet number, so the oldest packets
  /// are forgotten.
  void onProbe(Time now) { abandonOld(now); }

 private:
  void acknowledge(PacketNumber pn, SentPacket& packet, AckSample& sample, Time now);
  void detectLosses(Time now);
  void noteLoss(PacketNumber pn, SentPacket& packet, Time now);
  void moveAllData(Time now);
  void abandonOld(Time now);

  SubflowEventSink eventSink_;
  ControllerGroup& group_;
  InFlightTracker inFlightTracker_;
  PacketNumberFilter skipped_;
  PathEstimate path_;
  MtuDiscovery mtu_;
  SendAdmission admission_;
  EcnValidator ecn_;
  ProtectionStatistics tally_;
  SendCounts counts_;
  EarlyReinjectionBudget earlyReinjection_;
  Time lastSentAt_;
  Time movedSuppressed_ = kNever;  ///< suppressedAt() of which the data in flight has been moved
};

}  // namespace braid
