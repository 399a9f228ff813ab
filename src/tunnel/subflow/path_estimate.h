#pragma once

#include <cstdint>

#include "base/time.h"
#include "scheduler/rate/controller.h"
#include "scheduler/rate/rtt.h"
#include "scheduler/recovery/loss_estimate.h"
#include "scheduler/recovery/recovery.h"
#include "tunnel/subflow/delivery_rate.h"
#include "tunnel/subflow/sent_packets.h"
#include "tunnel/subflow/subflow_status.h"

namespace braid {

/// What one subflow has measured of its path: round trip, losses and delivery rate.
class PathEstimate {
 public:
  /// The longest delay of an ACK that was seen lately fades by this part with each ACK: about a hundred ACKs are
  /// remembered. Ours.
  static constexpr int kAckDelayFading = 64;

  /// Silence shorter than so many RTTs, within these bounds, is jitter and not a reason to probe. On a fabric of some
  /// hundred microseconds the upper bound alone would make each lost tail wait for 40 round trips. Ours.
  static constexpr int kQuietRtts = 4;
  static constexpr Duration kLeastQuiet = 2ms, kQuiet = 10ms;

  /// One sample raises the smoothed RTT by no more than this, or four times it, would: a machine that was
  /// suspended sees its own sleep in it, and must not wait for half a minute afterwards. A path that has really
  /// slowed down says so in every sample. Ours.
  static constexpr Duration kPlausibleRtt = 1s;

  /// So many losses of one silence count, at most. Random loss makes silences of a few packets; whatever else is lost
  /// while nothing comes through tells nothing of the path that is back. Ours.
  static constexpr int kSilenceLosses = 8;

  explicit PathEstimate(Time now) : rate_(now) { onRttChange(); }

  const RttEstimator& rtt() const { return rtt_; }
  const LossEstimate& losses() const { return losses_; }
  /// Bytes acknowledged so far.
  uint64_t delivered() const { return rate_.delivered(); }
  /// The longest that the peer is expected to keep an ACK back, kMaxAckDelay at most. By the rule of AckSender that is a
  /// quarter of the RTT that the peer knows; a side that sends only ACKs knows an old one. So it is our smoothed RTT,
  /// the longest delay seen lately when that is more, and LossDetector::kGranularity at least.
  Duration maxAckDelay() const;
  /// Probe timeout: how long an answer may take (RFC 9002 section 6.2.1).
  Duration pto() const { return pto_; }
  /// Silence that is jitter and the peer's ACK delay, and not a reason to probe.
  Duration quiet() const { return quiet_; }
  /// Until a datagram sent now is at the peer: half the RTT, and two round trips more when it is lost. Ours.
  Duration expectedDelay() const;
  /// `options`: for the weights of the loss metrics.
  void fill(SubflowStatus& status, const RecoveryOptions& options) const;

  // ---- what it is learnt from

  /// A packet leaves that asks for an ACK; `isFirst`: nothing else is in flight.
  void onSent(SentPacket& packet, bool isFirst, Time now);
  /// A packet is newly acknowledged; `wasLost`: it had counted as lost. Adds to the ACK's sample.
  void onAcked(const SentPacket& packet, bool wasLost, AckSample& sample, Time now);
  /// A packet counts as lost, which tells of the path; of several in the order of their numbers. Of those of
  /// one silence kSilenceLosses count.
  void onLost(PacketNumber pn, SentPacket& packet);
  /// An ACK came `latest` after the largest packet that it acknowledges; the peer held it back for `ackDelay`.
  void onRtt(Duration latest, Duration ackDelay, Time now);
  /// A challenge was answered after `rtt`: the first sample, of kPlausibleRtt at most, or none.
  void onProof(Duration rtt, Time now);
  /// The path comes into use, for the first time or after a silence; packets before `next` left before that.
  void onBack(PacketNumber next);
  /// The sender has nothing more to send while `inFlight` bytes are in flight and the subflow is open.
  void setAppLimited(uint64_t inFlight) { rate_.setAppLimited(inFlight); }
  /// The path is another one: nothing is known of its round trip and losses.
  void restart();

 private:
  /// The RTT has changed: so do the timeouts, which are asked for with each packet.
  void onRttChange();

  RttEstimator rtt_;
  LossEstimate losses_;
  DeliveryRate rate_;
  Duration ackDelay_{};  // the longest seen lately
  Duration pto_{};
  Duration quiet_{};
  PacketNumber backAt_{};  // packets before it left before the path last came into use
  int silenceLosses_ = 0;  // losses among these so far
};

}  // namespace braid
