#pragma once

#include <limits>
#include <memory>

#include "simnet/tcp/congestion.h"
#include "simnet/tcp/prr.h"
#include "simnet/tcp/window_usage.h"

namespace braid::sim::tcp {

/// The congestion window: slow start, reductions, recoveries (RFC 5681, RFC 6675, RFC 6937, RFC 3168). What
/// the algorithms differ in is asked of a Congestion. Bytes.
class Window {
 public:
  enum class Phase : uint8_t { kOpen, kFastRecovery, kTimeoutRecovery };
  /// Offsets of the stream and bytes in flight, as the sender has them now.
  struct Flight {
    uint64_t una = 0;   ///< acknowledged up to here
    uint64_t next = 0;  ///< sent up to here
    uint64_t bytes = 0;
  };

  /// `prr`: with SACK only. `segments`: the initial window.
  Window(const Options& options, uint32_t mss, bool prr, uint32_t segments);

  double size() const { return size_; }
  /// Infinity at first.
  double threshold() const { return threshold_; }
  Phase phase() const { return phase_; }
  bool recovering() const { return phase_ != Phase::kOpen; }
  uint64_t recoverAt() const { return recoverAt_; }
  const Congestion& congestion() const { return *congestion_; }

  /// An ACK of new data: before anything else.
  void observe(const AckEvent& ack) { congestion_->observe(ack); }
  /// A recovery ends with an ACK of all that was sent before it; true when it just has. A reduction for a mark
  /// ends with an ACK of all that had been sent by then; that does not count here.
  bool endRecovery(uint64_t una);
  /// Something was found lost while no recovery goes on.
  void beginFastRecovery(const Flight& flight, Time now);
  /// After an ACK that says that so many bytes more have arrived: PRR, in a fast recovery, and after a mark with
  /// Options::prrAfterMarks.
  void onDelivered(uint64_t delivered, uint64_t pipe);
  void onTimeout(const Flight& flight, Time now);
  /// A tail loss probe repaired a loss.
  void onRepairByProbe(const Flight& flight, Time now);
  /// An ACK with ECE; true when the window gave way, which it does once for each window of data. With nothing in
  /// flight it does so at once.
  bool onMark(const Flight& flight, Time now);
  /// An ACK of new data when none of the above happened.
  void grow(AckEvent ack, uint64_t una);
  /// Nothing was sent for a retransmission timeout; true when the window went back to the initial one.
  bool onIdle();
  void onSent(uint64_t bytes) {
    if (comesDown()) prr_.onSent(bytes);
  }
  /// After sending. `limited`: the window kept data back.
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
  bool givesWay_ = false;  // PRR goes on for a mark
  double size_;
  double threshold_ = std::numeric_limits<double>::infinity();
  uint64_t recoverAt_ = 0;   // an ACK of this ends the recovery
  uint64_t markedUpTo_ = 0;  // an ACK beyond it may reduce the window for a mark
  uint64_t lateAt_ = std::numeric_limits<uint64_t>::max();  // una at the last timeout
};

}  // namespace braid::sim::tcp
