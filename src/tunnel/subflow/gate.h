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
#include "tunnel/subflow/flight.h"
#include "tunnel/subflow/mtu_discovery.h"

namespace braid {

/// When a datagram may leave on one subflow. Three things say so: whether the subflow is for that data
/// (usable, its duty, not suppressed), the controller's window for what is in flight, and, for what leaves,
/// the controller's pacing and the ceiling of the uplink.
///
/// The gate only tells. What leaves without asking (probes, ACKs) is paid for all the same, by onSent().
class Gate {
 public:
  /// Small flows, and data moved off a silent path, may be ahead of window and pacer by at most kAheadDatagrams and at
  /// most 1/kAheadPart of the window: a request, or what a host misses already, does not wait for what bulk has used
  /// up. It is paid back before bulk goes on. Ours.
  static constexpr uint64_t kAheadDatagrams = 4;
  static constexpr uint64_t kAheadPart = 4;

  /// `flight`, `mtu` and `rtt` are the subflow's, to be read; they must outlive the gate.
  Gate(std::unique_ptr<Controller> controller, const Flight& flight, const MtuDiscovery& mtu,
       const RttEstimator& rtt)
      : flight_(flight), mtu_(mtu), rtt_(rtt), controller_(std::move(controller)) {}

  // ---- what the subflow is for

  /// The subflow came into use, or went out of it. New ones are not in use.
  void setUsable(bool usable, Time now);
  bool isUsable() const { return usable_; }
  PathDuty duty() const { return duty_; }
  void setDuty(PathDuty duty, Time now);
  /// Since when the controller wants the subflow to carry no data; kNever: it may. What is in flight is
  /// acknowledged as ever, or moved.
  Time suppressedAt() const { return controller_->suppressedAt(); }
  /// Whether the subflow is for new data; `overflow`: for new data that is too much for better paths.
  bool takesData(bool overflow = false) const;

  // ---- when it opens

  /// Window, pacer and ceiling allow one more datagram of full size.
  bool isOpen(Time now) const { return opensAt() <= now; }
  /// When pacer and ceiling open, provided that the window has room; kNever otherwise. `overflow` as in
  /// takesData().
  Time opensAt(bool overflow = false) const;
  /// The same for a load test, whatever the subflow is for.
  Time opensForTestAt() const;
  /// The same for what may be ahead; but not of the ceiling, nor where it is overflow.
  bool isOpenAhead(Time now) const { return opensAheadAt() <= now; }
  Time opensAheadAt() const;
  /// For data of a flow, its repair, or its protection in its turn. `mayBeAhead`: of a small flow, or moved off a silent
  /// path.
  bool isOpenFor(bool mayBeAhead, Time now) const { return isOpen(now) || (mayBeAhead && isOpenAhead(now)); }
  /// When a repair may leave. `isMoved`: of data moved off a silent path, which may be ahead. Each time that a loss has
  /// reduced the window, one repair goes without regard to it (RFC 9002 section 7.3.2), at the pace of all others.
  Time opensForRepairAt(bool isMoved) const;
  /// All of this for the path scheduler; what is no matter of the gate is left out.
  PathView view(Time now, bool overflow) const;
  /// Congestion window in bytes.
  uint64_t window() const { return controller_->window(); }
  /// Bytes per second of pacer and ceiling; infinity when neither is known.
  double rate() const;

  // ---- what it learns

  /// What limits all that leaves on the uplink, shared with the uplink's other subflows; null: nothing.
  void setCeiling(std::shared_ptr<Pacer> ceiling) { ceiling_ = std::move(ceiling); }
  /// A datagram of `bytes` left, `headers` bytes of IP and UDP around it. `tracked`: it is in flight.
  void onSent(size_t bytes, size_t headers, bool tracked, Time now);
  /// `largestSentAt`: when the largest packet that the ACK covers was sent. `startAnew`: the path is back
  /// after a long silence, and what was known of it is forgotten.
  void onAck(const AckSample& ack, Time largestSentAt, bool startAnew);
  void onLoss(const LossSample& loss);
  void onSpuriousLoss(Time sentAt, Time now) { controller_->onSpuriousLoss(sentAt, now); }
  /// The path is another one.
  void reset(Time now) { controller_->reset(now); }

 private:
  Time spacedUntil(uint64_t ahead = 0) const;
  bool hasRoom(uint64_t window) const;
  Duration wait(Time now) const;
  void pace() { pacer_.setRate(controller_->pacingRate(), controller_->burst()); }

  const Flight& flight_;
  const MtuDiscovery& mtu_;
  const RttEstimator& rtt_;
  std::unique_ptr<Controller> controller_;
  Pacer pacer_;
  std::shared_ptr<Pacer> ceiling_;
  bool usable_ = false;
  bool mayRetransmit_ = false;  ///< a loss has reduced the window, and nothing has been sent since
  PathDuty duty_ = PathDuty::kAll;
};

}  // namespace braid
