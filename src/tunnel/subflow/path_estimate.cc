#include "tunnel/subflow/path_estimate.h"

#include <algorithm>

#include "tunnel/queue/data_tracker.h"
#include "tunnel/subflow/in_flight.h"
#include "tunnel/wire/frames.h"

namespace braid {

void DeliveryRate::onSent(SentPacket& p, bool isFirst, Time now) {
  if (isFirst) firstSentAt_ = deliveredAt_ = now;
  p.delivered = delivered_;
  p.deliveredAt = deliveredAt_;
  p.firstSentAt = firstSentAt_;
  p.appLimited = delivered_ < appLimitedUntil_;
}

void DeliveryRate::onAcked(const SentPacket& p, AckSample& sample, Time now) {
  delivered_ += p.bytes;
  deliveredAt_ = now;
  sample.bytes += p.bytes;
  if (p.sentAt < sample.largestSentAt) return;
  sample.largestSentAt = p.sentAt;
  sample.appLimited = p.appLimited;
  sample.priorDelivered = p.delivered;
  Duration sending = p.sentAt - p.firstSentAt;
  Duration acking = now - p.deliveredAt;
  firstSentAt_ = p.sentAt;
  double interval = toSeconds(std::max(sending, acking));
  sample.deliveryRate = interval > 0 ? static_cast<double>(delivered_ - p.delivered) / interval : 0;
  if (sample.deliveryRate > 0) latest_ = sample.deliveryRate;
}

Duration PathEstimate::maxAckDelay() const {
  return std::clamp<Duration>(std::max(rtt_.smoothed(), ackDelay_), LossDetector::kGranularity,
                              kMaxAckDelay);
}

void PathEstimate::onRttChange() {
  Duration variation = 4 * rtt_.variation();
  pto_ =
      rtt_.smoothed() + std::max<Duration>(variation, LossDetector::kGranularity) + maxAckDelay();
  Duration jitter = std::clamp<Duration>(kQuietRtts * rtt_.smoothed(), kLeastQuiet, kQuiet);
  quiet_ = std::max(variation, jitter) + maxAckDelay();
}

Duration PathEstimate::expectedDelay() const {
  auto rtt = static_cast<double>(rtt_.smoothed().count());
  return Duration(static_cast<Duration::rep>(rtt * (0.5 + 2 * losses_.recentRate())));
}

void PathEstimate::onSent(SentPacket& packet, bool isFirst, Time now) {
  rate_.onSent(packet, isFirst, now);
  losses_.onSent();
}

void PathEstimate::onAcked(const SentPacket& packet, bool wasLost, AckSample& sample, Time now) {
  if (!wasLost) {
    losses_.onAcked();
    congestion_.onAcked();
  } else if (packet.countedLost) {
    losses_.onSpurious(packet.cause);
  }
  rate_.onAcked(packet, sample, now);
}

void PathEstimate::onBack(PacketNumber next) {
  backAt_ = next;
  silenceLosses_ = 0;
  oneWay_.reset();
}

void PathEstimate::onLost(PacketNumber pn, SentPacket& packet, CongestionEpisode& session,
                          Time now) {
  if (pn < backAt_ && ++silenceLosses_ > kSilenceLosses) return;
  if (congestion_.explain(packet.sentAt, rtt_.smoothed(), session, now))
    packet.cause = LossCause::kCongestion;
  losses_.onLost(pn.value(), packet.cause);
  packet.countedLost = true;
}

void PathEstimate::onRtt(Duration latest, Duration ackDelay, Time now, Duration ownQueue) {
  if (rtt_.hasSample())
    latest = std::min(latest, std::max<Duration>(4 * rtt_.smoothed(), kPlausibleRtt));
  ackDelay = std::min<Duration>(ackDelay, kMaxAckDelay);
  ackDelay_ = std::max(ackDelay, ackDelay_ - ackDelay_ / kAckDelayFading);
  rtt_.onSample(latest, ackDelay, now);
  congestion_.onRtt(latest - ackDelay, rtt_.windowedMin(), now - latest, ownQueue);
  onRttChange();
}

void PathEstimate::onProof(Duration rtt, Time now) {
  if (rtt_.hasSample()) return;
  rtt_.onSample(std::min<Duration>(rtt, kPlausibleRtt), {}, now);
  onRttChange();
}

void PathEstimate::restart() {
  rtt_.reset();
  oneWay_.reset();
  ackDelay_ = {};
  losses_ = {};
  congestion_ = {};
  onRttChange();
}

void PathEstimate::fill(SubflowStatus& s, const RecoveryOptions& options) const {
  s.srtt = rtt_.smoothed();
  s.rttvar = rtt_.variation();
  s.minRtt = rtt_.windowedMin();
  if (rtt_.hasSample()) s.queueDelay = std::max(Duration{}, rtt_.smoothed() - rtt_.windowedMin());
  if (std::optional<OneWayQueues> queues = oneWay_.smoothed()) {
    s.queueOut = queues->forward;
    s.queueIn = queues->reverse;
  }
  s.deliveryRate = rate_.latest();
  s.deliveredBytes = rate_.delivered();
  RecoveryPath path;
  path.sent = losses_.sent();
  path.lost = losses_.lost();
  path.sinceLoss = losses_.sinceLoss();
  s.lossRate = lossMetric(path, options.alpha1, options.beta1);
  s.lossMetric = lossMetric(path, options.alpha, options.beta);
  s.burst = losses_.burst();
}

void ProtectionStatistics::onAcked(const SentPacket& p) {
  bool isProtected = false;
  for (size_t i = 0; i < p.dataCount; ++i) isProtected |= p.data[i]->isProtected();
  if (isProtected && p.role == SentPacket::Role::kOrdinary) ++counts_.useless;
}

void ProtectionStatistics::onLost(const SentPacket& p) {
  if (p.role != SentPacket::Role::kOrdinary || p.moved) return;
  bool recovered = false;
  for (size_t i = 0; i < p.dataCount; ++i)
    recovered |= p.data[i]->state == UnitState::kDelivered && p.data[i]->isProtected();
  counts_.recovered += recovered;
}

bool ProtectionStatistics::onDecoded(const SentPacket& p) {
  bool news = false;
  bool instead = false;  // decoding made a repair needless that has not been sent yet
  for (size_t i = 0; i < p.dataCount; ++i) {
    news |= !p.data[i]->isDone();
    instead |= p.data[i]->isLost();
  }
  counts_.decoded += news;
  bool lost =
      p.state == SentPacket::State::kLost && p.role == SentPacket::Role::kOrdinary && !p.moved;
  counts_.recovered += news && instead && lost;
  return news;
}

}  // namespace braid
