#include "tunnel/subflow/path_estimate.h"

#include <algorithm>

#include "tunnel/subflow/loss_detector.h"
#include "tunnel/wire/frames.h"

namespace braid {

Duration PathEstimate::maxAckDelay() const {
  return std::clamp<Duration>(std::max(rtt_.smoothed(), ackDelay_), LossDetector::kGranularity, kMaxAckDelay);
}

void PathEstimate::onRttChange() {
  Duration variation = 4 * rtt_.variation();
  pto_ = rtt_.smoothed() + std::max<Duration>(variation, LossDetector::kGranularity) + maxAckDelay();
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
  } else if (packet.countedLost) {
    losses_.onSpurious();
  }
  rate_.onAcked(packet, sample, now);
}

void PathEstimate::onBack(PacketNumber next) {
  backAt_ = next;
  silenceLosses_ = 0;
}

void PathEstimate::onLost(PacketNumber pn, SentPacket& packet) {
  if (pn < backAt_ && ++silenceLosses_ > kSilenceLosses) return;
  losses_.onLost(pn.value());
  packet.countedLost = true;
}

void PathEstimate::onRtt(Duration latest, Duration ackDelay, Time now) {
  if (rtt_.hasSample()) latest = std::min(latest, std::max<Duration>(4 * rtt_.smoothed(), kPlausibleRtt));
  ackDelay = std::min<Duration>(ackDelay, kMaxAckDelay);
  ackDelay_ = std::max(ackDelay, ackDelay_ - ackDelay_ / kAckDelayFading);
  rtt_.onSample(latest, ackDelay, now);
  onRttChange();
}

void PathEstimate::onProof(Duration rtt, Time now) {
  if (rtt_.hasSample()) return;
  rtt_.onSample(std::min<Duration>(rtt, kPlausibleRtt), {}, now);
  onRttChange();
}

void PathEstimate::restart() {
  rtt_.reset();
  ackDelay_ = {};
  losses_ = {};
  onRttChange();
}

void PathEstimate::fill(SubflowStatus& s, const RecoveryOptions& options) const {
  s.srtt = rtt_.smoothed();
  s.rttvar = rtt_.variation();
  s.minRtt = rtt_.windowedMin();
  if (rtt_.hasSample()) s.queueDelay = std::max(Duration{}, rtt_.smoothed() - rtt_.windowedMin());
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

}  // namespace braid
