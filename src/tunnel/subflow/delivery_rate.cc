#include "tunnel/subflow/delivery_rate.h"

#include <algorithm>

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

}  // namespace braid
