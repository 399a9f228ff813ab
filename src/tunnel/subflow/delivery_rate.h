#pragma once

#include <cstdint>

#include "base/time.h"
#include "scheduler/rate/controller.h"
#include "tunnel/subflow/sent_packets.h"

namespace braid {

/// How fast one subflow delivers: draft-cheng-iccrg-delivery-rate-estimation. Each packet remembers how much
/// had been delivered when it left; its acknowledgment makes a sample of what was delivered since.
class DeliveryRate {
 public:
  explicit DeliveryRate(Time now) : deliveredAt_(now), firstSentAt_(now) {}

  /// `packet` leaves; `isFirst`: nothing else is in flight. Notes in the packet what its sample needs
  /// (section 3.2).
  void onSent(SentPacket& packet, bool isFirst, Time now);
  /// `packet` is newly acknowledged. A packet that left later than those acknowledged before by the same ACK
  /// takes over the sample (section 3.3).
  void onAcked(const SentPacket& packet, AckSample& sample, Time now);
  /// The sender has nothing more to send while the subflow would take it: samples until all of `inFlight`
  /// bytes are delivered say less than the path can do (section 3.4).
  void setAppLimited(uint64_t inFlight) { appLimitedUntil_ = delivered_ + inFlight + 1; }

  /// Bytes acknowledged so far.
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

}  // namespace braid
