#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/time.h"
#include "scheduler/path/path_scheduler.h"
#include "scheduler/path/path_tiers.h"
#include "scheduler/rate/controller.h"
#include "scheduler/rate/pacer.h"
#include "scheduler/rate/rtt.h"
#include "tunnel/subflow/in_flight.h"
#include "tunnel/subflow/mtu_discovery.h"

namespace braid {

/// Decides when a datagram may leave on one subflow. Three conditions must hold:
/// - The subflow may carry that data: it is usable, its role allows it, and it is not suppressed.
/// - The congestion window has room.
/// - The controller's pacer and the uplink's ceiling (a rate limit) allow the next datagram.
///
/// This class only answers the question. Datagrams that leave without asking (probes, ACKs) are
/// charged as well, by onSent().
class SendAdmission {
 public:
  /// The priority allowance: small flows, and data reinjected from a silent path, may exceed window
  /// and pacer by at most kAheadDatagrams full-size datagrams and at most 1/kAheadPart of the
  /// window. So a request, or data that a host misses already, does not wait for what bulk data has
  /// used up. The excess is paid back before bulk data continues.
  static constexpr uint64_t kAheadDatagrams = 4;
  static constexpr uint64_t kAheadPart = 4;

  /// `flight`, `mtu` and `rtt` are those of the same subflow. They are only read and must outlive
  /// this object.
  SendAdmission(std::unique_ptr<Controller> controller, const InFlightTracker& flight,
                const MtuDiscovery& mtu, const RttEstimator& rtt)
      : inFlightTracker_(flight), mtu_(mtu), rtt_(rtt), controller_(std::move(controller)) {}

  // ---- what the subflow is for

  /// The subflow became usable or unusable. A new subflow is unusable.
  void setUsable(bool usable, Time now);
  bool isUsable() const { return usable_; }
  PathRole role() const { return role_; }
  void setRole(PathRole role, Time now);
  /// Since when the controller wants the subflow to carry no data; kNever: it may carry data.
  /// Packets in flight are acknowledged as usual, or their data is reinjected elsewhere.
  Time suppressedAt() const { return controller_->suppressedAt(); }
  /// Whether the subflow may carry new data. `overflow`: new data that is too much for better
  /// paths.
  bool takesData(bool overflow = false) const;

  // ---- when it is open, that is, when the next datagram may leave

  /// The subflow takes new data, and window, pacer and ceiling allow one more datagram of full
  /// size.
  bool isOpen(Time now) const { return opensAt() <= now; }
  /// When pacer and ceiling allow the next datagram; kNever when the subflow does not take such
  /// data or the window has no room. `overflow` as in takesData().
  Time opensAt(bool overflow = false) const;
  /// opensAt() for a load test, which ignores the subflow's role.
  Time opensForTestAt() const;
  /// isOpen() and opensAt() for data with the priority allowance. The allowance does not extend the
  /// ceiling, and it does not apply to overflow data.
  bool isOpenAhead(Time now) const { return opensAheadAt() <= now; }
  Time opensAheadAt() const;
  /// Whether a flow's data, its repair, or its protection in its turn may leave. `mayBeAhead`: it
  /// has the priority allowance, because the flow is small or the data was reinjected from a silent
  /// path.
  bool isOpenFor(bool mayBeAhead, Time now) const {
    return isOpen(now) || (mayBeAhead && isOpenAhead(now));
  }
  /// When a repair may leave. `isMoved`: its data was reinjected from a silent path and has the
  /// priority allowance. Each time a loss has reduced the window, one repair may exceed the window
  /// (RFC 9002 section 7.3.2); it is paced like all others.
  Time opensForRepairAt(bool isMoved) const;
  /// All of this for the path scheduler. Fields that send admission does not determine are not set.
  PathView view(Time now, bool overflow) const;
  /// Congestion window in bytes.
  uint64_t window() const { return controller_->window(); }
  /// The rate that pacer and ceiling allow, in bytes per second; infinity when neither is known.
  double rate() const;

  // ---- what it learns

  /// Sets the rate limit of the uplink, which the uplink's other subflows share; nullptr: no limit.
  void setCeiling(std::shared_ptr<Pacer> ceiling) { ceiling_ = std::move(ceiling); }
  /// A datagram of `bytes` left, with `headers` bytes of IP and UDP around it. `tracked`: it is
  /// ack-eliciting and counts as in flight.
  void onSent(size_t bytes, size_t headers, bool tracked, Time now);
  /// `largestSentAt`: when the largest packet that the ACK covers was sent. `startAnew`: the path
  /// is back after a long silence, and the controller forgets what it knew of it.
  void onAck(const AckSample& ack, Time largestSentAt, bool startAnew);
  /// The queue that the controller itself keeps (Controller::ownQueue()).
  Duration ownQueue() const { return controller_->ownQueue(); }
  void onLoss(const LossSample& loss);
  void onSpuriousLoss(Time sentAt, Time now) { controller_->onSpuriousLoss(sentAt, now); }
  /// The subflow now uses another path.
  void reset(Time now) { controller_->reset(now); }

 private:
  Time spacedUntil(uint64_t ahead = 0) const;
  bool hasRoom(uint64_t window) const;
  Duration wait(Time now) const;
  void pace() { pacer_.setRate(controller_->pacingRate(), controller_->burst()); }

  const InFlightTracker& inFlightTracker_;
  const MtuDiscovery& mtu_;
  const RttEstimator& rtt_;
  std::unique_ptr<Controller> controller_;
  Pacer pacer_;
  std::shared_ptr<Pacer> ceiling_;
  bool usable_ = false;
  bool mayRetransmit_ = false;  ///< a loss has reduced the window, and nothing has been sent since
  PathRole role_ = PathRole::kAll;
};

}  // namespace braid
