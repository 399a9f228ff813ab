#pragma once

#include <limits>
#include <memory>

#include "simnet/tcp/congestion.h"
#include "simnet/tcp/prr.h"
#include "simnet/tcp/window_usage.h"

namespace braid::sim::tcp {

/// The congestion window in bytes: slow start, reductions and recoveries (RFC 5681, RFC 6675, RFC
/// 6937, RFC 3168). The parts in which algorithms differ are in Congestion.
class Window {
 public:
  enum class Phase : uint8_t { kOpen, kFastRecovery, kTimeoutRecovery };
  /// The sender's current stream offsets and bytes in flight.
  struct Flight {
    uint64_t una = 0;   ///< acknowledged up to here
    uint64_t next = 0;  ///< sent up to here
    uint64_t bytes = 0;
  };

  /// `prr`: use PRR, which requires SACK. `segments`: the initial window.
  Window(const Options& options, uint32_t mss, bool prr, uint32_t segments);

  double size() const { return size_; }
  /// ssthresh; infinity at first.
  double threshold() const { return threshold_; }
  Phase phase() const { return phase_; }
  bool recovering() const { return phase_ != Phase::kOpen; }
  uint64_t recoverAt() const { return recoverAt_; }
  const Congestion& congestion() const { return *congestion_; }

  /// Call for an ACK of new data, before the other functions.
  void observe(const AckEvent& ack) { congestion_->observe(ack); }
  /// Ends a recovery when all data sent before it is acknowledged; true when it has just ended. A
  /// reduction for a mark also ends when all data sent before it is acknowledged, but does not make
  /// this return true.
  bool endRecovery(uint64_t una);
  /// A loss was found outside a recovery.
  void beginFastRecovery(const Flight& flight, Time now);
  /// Call after an ACK by which `delivered` more bytes have arrived. Runs PRR in a fast recovery,
  /// and with Options::prrAfterMarks also after a mark.
  void onDelivered(uint64_t delivered, uint64_t pipe);
  void onTimeout(const Flight& flight, Time now);
  /// A tail loss probe repaired a loss.
  void onRepairByProbe(const Flight& flight, Time now);
  /// An ACK with ECE arrived. True when it reduces the window, which happens once for each window
  /// of data. With nothing in flight the window falls at once, not gradually by PRR.
  bool onMark(const Flight& flight, Time now);
  /// An ACK of new data arrived and none of the above happened: the window may grow.
  void grow(AckEvent ack, uint64_t una);
  /// Nothing was sent for one retransmission timeout. True when this reduced the window to the
  /// initial one.
  bool onIdle();
  void onSent(uint64_t bytes) {
    if (comesDown()) prr_.onSent(bytes);
  }
  /// Call after sending. `limited`: the window prevented sending more.
  void onUsed(const Flight& flight, bool limited) {
    usage_.onSent(flight.una, flight.next, flight.bytes, limited);
  }

 private:
  void cutForLoss(const Flight& flight, Time now);
  bool comesDown() const { return phase_ == Phase::kFastRecovery || givesWay_; }
  double segments(uint32_t n) const { return n * mss_; }

  std::unique_ptr<Congestion> congestion_;
  double mss_;
  uint32_t initial_, minimum_, slowStartLimit_;
  bool prrOn_, growAfterRecovery_, prrAfterMarks_, markAnswersLoss_;
  Prr prr_;
  WindowUsage usage_;
  Phase phase_ = Phase::kOpen;
  bool givesWay_ = false;  // PRR is reducing the window for a mark
  double size_;
  double threshold_ = std::numeric_limits<double>::infinity();
  uint64_t recoverAt_ = 0;   // an ACK up to this offset ends the recovery
  uint64_t markedUpTo_ = 0;  // an ACK beyond this offset may reduce the window for a mark
  uint64_t lateAt_ = std::numeric_limits<uint64_t>::max();  // una at the last timeout
};

}  // namespace braid::sim::tcp
