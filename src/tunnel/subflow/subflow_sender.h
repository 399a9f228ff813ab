#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "scheduler/rate/controller_group.h"
#include "tunnel/lane/data_ledger.h"
#include "tunnel/subflow/doubt_budget.h"
#include "tunnel/subflow/ecn_validator.h"
#include "tunnel/subflow/flight.h"
#include "tunnel/subflow/gate.h"
#include "tunnel/subflow/mtu_discovery.h"
#include "tunnel/subflow/path_estimate.h"
#include "tunnel/subflow/protection_tally.h"
#include "tunnel/subflow/route.h"
#include "tunnel/subflow/skipped_numbers.h"
#include "tunnel/subflow/subflow_events.h"
#include "tunnel/subflow/subflow_options.h"
#include "tunnel/subflow/subflow_status.h"

namespace braid {

/// What an ACK says that was not known.
struct AckNews {
  AckSample sample;    ///< for the rate control; learn() completes it
  Time largestSentAt;  ///< of the largest packet that the ACK covers
};

/// What leaves on one subflow, and what becomes of it: the sent-map with the bytes in flight, what is learnt
/// from ACKs and losses (the path, its MTU, whether it carries ECN, how fast to send), and the counts.
///
/// A packet's fate goes from here to all who are to know it: the flight, which tells the data ledger, the
/// estimates, the gate, and, by events, the session.
class SubflowSender {
 public:
  /// `route`: the first one; its address family says how large datagrams may be. `ledger`, `group` and `random`
  /// must outlive the sender.
  SubflowSender(const SubflowVoice& voice, const Route& route, const SubflowOptions& options,
                DataLedger& ledger, ControllerGroup& group, SecretRandom& random, Time now);
  SubflowSender(const SubflowSender&) = delete;
  SubflowSender& operator=(const SubflowSender&) = delete;

  // ---- the parts

  /// When a datagram may leave.
  const Gate& gate() const { return gate_; }
  Gate& gate() { return gate_; }
  /// What has been measured of the path.
  const PathEstimate& path() const { return path_; }
  const Flight& flight() const { return flight_; }
  /// What each packet number carried and what became of it.
  const SentPackets& sent() const { return flight_.packets(); }
  const MtuDiscovery& mtu() const { return mtu_; }
  MtuDiscovery& mtu() { return mtu_; }
  ProtectionTally& tally() { return tally_; }
  void fill(SubflowStatus& status, const RecoveryOptions& options) const;

  // ---- what leaves

  /// A packet number is free.
  bool canNumber() const { return !sent().full(); }
  /// Takes the next packet number for a datagram of `bytes` that leaves now, with `headers` bytes of IP and UDP
  /// around it. `tracked`: something in it asks for an ACK; then the caller fills in the data.
  SentPacket& onSent(size_t bytes, size_t headers, bool tracked, Time now);
  /// Leaves the next packet number out if it is time for that: after each datagram that left.
  void maybeSkip(Time now);
  /// Decides on the ECN field of that datagram; `silent`: the path is (SubflowLife::isSilent()).
  Ecn codepoint(PacketNumber pn, SentPacket& packet, bool silent, Time now);
  /// A challenge leaves as ECT(0).
  void onMarkedChallenge() { ecn_.onProbeSent(); }
  /// Size of the MTU probe to send now; 0: none.
  size_t mtuProbe() const { return gate_.isUsable() ? mtu_.pollProbe() : 0; }
  void onMtuProbeSent(size_t size, Time now);
  /// Bytes of inner packets that this subflow carries again.
  void countRepair(size_t bytes) { counts_.retransmittedBytes += bytes; }
  /// The sender had nothing more to send while this subflow was open.
  void setAppLimited() { path_.setAppLimited(flight_.bytes()); }
  Time lastSentAt() const { return lastSentAt_; }
  /// For the path scheduler, without weight and uplink; `overflow` as in Gate::takesData().
  PathView view(Time now, bool overflow) const;

  // ---- what becomes of it

  /// Whether the ACK names a number that no packet had: one to come, or one that was left out.
  bool isForged(const AckFrame& ack) const;
  /// Settles what the ACK covers, which must not be forged; nullopt: it says nothing new. Otherwise learn() is to follow,
  /// when the caller has seen to the state of the subflow. `samePath`: the ACK came over this subflow.
  std::optional<AckNews> onAck(const AckFrame& ack, bool samePath, Time now);
  /// Draws the conclusions: losses, rate control. `startAnew`: the path is back after a long silence.
  void learn(AckNews news, bool startAnew, Time now);
  /// The peer has decoded the data of the packet. False when that is no news.
  bool onRecovered(PacketNumber pn);
  /// Whether the packet arrives is in doubt: its data is to go elsewhere as soon as it can.
  void moveData(SentPacket& packet, Time now) { flight_.moveData(packet, now); }
  /// Nobody waits any more for the data that is in flight.
  void giveUpData(Drop cause) { flight_.giveUpData(cause); }

  // ---- what happens to the path

  /// The subflow came into use, or went out of it: then all data in flight is moved, and the oldest packets are
  /// forgotten.
  void setUsable(bool usable, Time now);
  /// A challenge was answered after `rtt`.
  void onProof(Duration rtt, Time now) { path_.onProof(rtt, now); }
  /// The route is another one. `samePath`: what is known of the path holds nevertheless.
  void onNewRoute(bool samePath, Time now);

  // ---- timers; those of flight() and mtu() besides

  /// flight().lossTime() has come.
  void onLossTimer(Time now);
  /// A PTO has passed; `isFirst`: since the last ACK. The data of the oldest packet in flight is moved; the first
  /// time of as many more as DoubtBudget allows, for most often the path has died.
  void onPto(bool isFirst, Time now);
  /// When what is in flight on a suppressed path should have been acknowledged.
  Time suppressionDeadline() const;
  /// suppressionDeadline() has come: the data in flight is moved.
  void onSuppressionTimer(Time now);
  /// A path that does not answer is probed: each probe takes a packet number, so the oldest are forgotten.
  void onProbe(Time now) { abandonOld(now); }

 private:
  void acknowledge(PacketNumber pn, SentPacket& packet, AckSample& sample, Time now);
  void detectLosses(Time now);
  void noteLoss(PacketNumber pn, SentPacket& packet);
  void moveAllData(Time now);
  void abandonOld(Time now);

  SubflowVoice voice_;
  Flight flight_;
  SkippedNumbers skipped_;
  PathEstimate path_;
  MtuDiscovery mtu_;
  Gate gate_;
  EcnValidator ecn_;
  ProtectionTally tally_;
  SendCounts counts_;
  DoubtBudget doubt_;
  Time lastSentAt_;
  Time movedSuppressed_ = kNever;  ///< since then suppressed, and its data has been moved
};

}  // namespace braid
