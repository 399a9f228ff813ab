#pragma once

// What one subflow measures of its path: delivery rate, round trip and losses. And what protection
// cost the subflow and how useful it was, in counters for the operator.

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "scheduler/rate/congestion_signs.h"
#include "scheduler/rate/controller.h"
#include "scheduler/rate/one_way_delay.h"
#include "scheduler/rate/rtt.h"
#include "scheduler/recovery/loss_estimate.h"
#include "scheduler/recovery/recovery.h"
#include "tunnel/subflow/sent_map.h"
#include "tunnel/subflow/subflow_status.h"

namespace braid {

/// Measures how fast one subflow delivers (draft-cheng-iccrg-delivery-rate-estimation). Each packet
/// remembers how much had been delivered when it was sent. Its acknowledgment gives a sample of
/// what was delivered since.
class DeliveryRate {
 public:
  explicit DeliveryRate(Time now) : deliveredAt_(now), firstSentAt_(now) {}

  /// `packet` is being sent; `isFirst`: nothing else is in flight. Stores in the packet what its
  /// sample needs (section 3.2).
  void onSent(SentPacket& packet, bool isFirst, Time now);
  /// `packet` is newly acknowledged. Of several packets that one ACK acknowledges, the one sent
  /// last determines the sample (section 3.3).
  void onAcked(const SentPacket& packet, AckSample& sample, Time now);
  /// The sender has nothing more to send although the subflow would take it. Until all of
  /// `inFlight` bytes are delivered, samples are marked as app-limited: they may be below what the
  /// path can do (section 3.4).
  void setAppLimited(uint64_t inFlight) { appLimitedUntil_ = delivered_ + inFlight + 1; }

  /// Total bytes acknowledged.
  uint64_t delivered() const { return delivered_; }
  /// Bytes per second of the last sample; 0 before the first.
  double latest() const { return latest_; }

 private:
  uint64_t delivered_ = 0;
  Time deliveredAt_;
  Time firstSentAt_;
  uint64_t appLimitedUntil_ = 0;
  double latest_ = 0;
};

/// What one subflow has measured of its path: round trip, losses and delivery rate.
class PathEstimate {
 public:
  /// With each ACK, the longest recent ACK delay shrinks by 1/kAckDelayFading of itself: about a
  /// hundred ACKs are remembered.
  static constexpr int kAckDelayFading = 64;

  /// A silence shorter than kQuietRtts RTTs, but at least kLeastQuiet and at most kQuiet, is jitter
  /// and not a reason to probe. On a fabric with an RTT of some hundred microseconds, kQuiet alone
  /// would make each lost tail wait for 40 round trips.
  static constexpr int kQuietRtts = 4;
  static constexpr Duration kLeastQuiet = 2ms, kQuiet = 10ms;

  /// An RTT sample counts as at most this, or as four times the smoothed RTT if that is more. A
  /// machine that was suspended sees its own sleep in a sample, and must not wait for half a minute
  /// afterwards. A path that has really slowed down shows it in every sample.
  static constexpr Duration kPlausibleRtt = 1s;

  /// At most this many losses of one silence count in the loss estimate. Random loss causes
  /// silences of a few packets. Whatever else is lost while nothing comes through says nothing
  /// about the path once it is back.
  static constexpr int kSilenceLosses = 8;

  explicit PathEstimate(Time now) : rate_(now) { onRttChange(); }

  const RttEstimator& rtt() const { return rtt_; }
  /// What of the RTT was queued in each direction.
  const OneWayDelay& oneWay() const { return oneWay_; }
  const LossEstimate& losses() const { return losses_; }
  const CongestionSigns& congestion() const { return congestion_; }
  /// Total bytes acknowledged.
  uint64_t delivered() const { return rate_.delivered(); }
  /// The longest time that the peer is expected to hold back an ACK, at most kMaxAckDelay. An
  /// AckSender waits for at most a quarter of the RTT that it knows. But a side that sends only
  /// ACKs knows an old RTT. So this is our smoothed RTT or the longest delay seen lately, whichever
  /// is more, and at least LossDetector::kGranularity.
  Duration maxAckDelay() const;
  /// Probe timeout: how long an answer may take (RFC 9002 section 6.2.1).
  Duration pto() const { return pto_; }
  /// A silence of up to this length is explained by jitter and the peer's ACK delay, and is not a
  /// reason to probe.
  Duration quiet() const { return quiet_; }
  /// Expected time until data sent now is at the peer: half the RTT, and two round trips more if it
  /// is lost, weighted by the recent loss rate.
  Duration expectedDelay() const;
  /// `options` gives the weights of the loss metrics.
  void fill(SubflowStatus& status, const RecoveryOptions& options) const;

  // ---- the events from which it is learnt

  /// An ack-eliciting packet is being sent; `isFirst`: nothing else is in flight.
  void onSent(SentPacket& packet, bool isFirst, Time now);
  /// A packet is newly acknowledged; `wasLost`: it had counted as lost. Adds to the ACK's sample.
  void onAcked(const SentPacket& packet, bool wasLost, AckSample& sample, Time now);
  /// A packet counts as lost, and its loss says something about the path. Several losses must be
  /// reported in the order of their packet numbers. Of the losses of one silence, kSilenceLosses
  /// count.
  void onLost(PacketNumber pn, SentPacket& packet, CongestionEpisode& session, Time now);
  /// An ACK reported CE marks; the newest packet that it covers was sent at `sentAt`.
  void onMarks(Time sentAt) { congestion_.onMarks(sentAt); }
  /// An ACK came `latest` after the largest packet that it acknowledges was sent. The peer held the
  /// ACK back for `ackDelay`. `ownQueue`: Controller::ownQueue().
  void onRtt(Duration latest, Duration ackDelay, Time now, Duration ownQueue = {});
  /// The ACK of that RTT said when the packet was received.
  void onReceiveTime(const OneWayDelay::Sample& sample) { oneWay_.onSample(sample); }
  /// A challenge was answered after `rtt`. Taken as the first RTT sample, capped at kPlausibleRtt;
  /// ignored when there is a sample already.
  void onProof(Duration rtt, Time now);
  /// The path comes into use, for the first time or after a silence. Packets with numbers below
  /// `next` were sent before that.
  void onBack(PacketNumber next);
  /// The sender has nothing more to send while `inFlight` bytes are in flight and the subflow is
  /// open.
  void setAppLimited(uint64_t inFlight) { rate_.setAppLimited(inFlight); }
  /// The subflow now uses another path: nothing is known of its round trip and losses.
  void restart();

 private:
  /// The RTT has changed: computes the timeouts again. They are stored because they are needed with
  /// each packet.
  void onRttChange();

  RttEstimator rtt_;
  OneWayDelay oneWay_;
  LossEstimate losses_;
  CongestionSigns congestion_;
  DeliveryRate rate_;
  Duration ackDelay_{};  // the longest seen lately
  Duration pto_{};
  Duration quiet_{};
  PacketNumber backAt_{};  // packets below it were sent before the path last came into use
  int silenceLosses_ = 0;  // how many of these were lost
};

/// Counts the protection (duplicates and parities) that a subflow carries, and the fate of the
/// subflow's own packets that are protected elsewhere. Protection is useful when it delivers the
/// data before the packet that first carried it is declared lost.
class ProtectionStatistics {
 public:
  // ---- protection that is sent on the subflow; `bytes`: of its frames

  void onCopySent(size_t bytes) {
    ++counts_.copies;
    counts_.protectionBytes += bytes;
  }
  void onParitySent(size_t bytes) {
    ++counts_.parities;
    counts_.protectionBytes += bytes;
  }
  /// The rest of a parity that did not fit into one datagram was sent.
  void onTailSent(size_t bytes) { counts_.protectionBytes += bytes; }

  // ---- packets of the subflow itself

  /// A packet is protected for the first time, by a duplicate or in a block.
  void onProtected() { ++counts_.protectedPackets; }
  /// A packet in flight is acknowledged. Must be called while its data is still remembered.
  void onAcked(const SentPacket& packet);
  /// A packet in flight is declared lost.
  void onLost(const SentPacket& packet);
  /// The peer says that it has decoded the packet's data. Must be called before the data tracker is
  /// told. Returns false when all that data was delivered or given up already.
  bool onDecoded(const SentPacket& packet);

  const ProtectionCounts& counts() const { return counts_; }

 private:
  ProtectionCounts counts_;
};

}  // namespace braid
