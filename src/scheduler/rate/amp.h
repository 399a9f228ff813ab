#pragma once

#include <algorithm>

#include "scheduler/rate/window_controller.h"

namespace braid {

/// AMP, the adaptive multipath congestion control of Kheirkhah and Lee (Algorithm 1). The windows
/// of all subflows that share their marks grow together by one datagram per round. A mark reduces
/// the window by a constant factor. When all subflows are at the minimum window, only one of them
/// is used for a while (suppression). AMP is for data center networks whose switches mark above a
/// small queue.
class Amp final : public CoupledController {
 public:
  /// `options`: gamma, tau, beta, minimum window.
  Amp(uint64_t datagram, uint64_t initial, const AmpOptions& options,
      ControllerGroup* group = nullptr)
      : CoupledController(datagram, initial, options.minimumWindow, group), options_(options) {}

  void onAck(const AckSample& ack) override;

 protected:
  void observe(const AckSample& ack) override;
  void grow(const AckSample& ack) override;
  double afterMark() const override { return cwnd() * (1 - 1 / options_.beta); }
  void onUnused(Duration) override { unused_ = true; }
  void onReset() override;

 private:
  static constexpr Time kNone = Time::min();

  AmpOptions options_;
  Time roundBegan_ = kNone;
  bool marked_ = false;  ///< CE marks came in this round
  bool unused_ = false;  ///< the window was not filled in this round
};

/// The smallest beta, at least 2, with which a reduction does not drain the queue: (BDP + K) / beta
/// <= K (section 4.2). `bdp` and `threshold` (K, above 0) are in datagrams.
double ampBeta(double bdp, double threshold);

inline double ampBeta(double bdp, double threshold) {
  return std::max(2.0, (bdp + threshold) / threshold);
}

// A round is one window of data of the initial subflow (section 4.2: consecutive RTTs). A round in
// which there was not enough data to fill the window says nothing about congestion.
inline void Amp::onAck(const AckSample& ack) {
  CoupledController::onAck(ack);
  if (!shared().isInitial(member())) {
    roundBegan_ = kNone;
    return;
  }
  if (roundBegan_ == kNone) roundBegan_ = ack.now;
  marked_ |= ack.marks > 0;
  if (ack.largestSentAt < roundBegan_) return;
  if (shared().suppressing() || !unused_) {
    shared().onRound(marked_, options_.gamma, options_.tau, ack.now);
  }
  roundBegan_ = ack.now;
  marked_ = unused_ = false;
}

inline void Amp::observe(const AckSample& ack) {
  CoupledController::observe(ack);
  noteMarks(ack);
}

inline void Amp::grow(const AckSample& ack) {
  setWindow(cwnd() +
            datagram() * static_cast<double>(ack.bytes) / shared().windowSharingMarks(member()));
}

inline void Amp::onReset() {
  CoupledController::onReset();
  roundBegan_ = kNone;
  marked_ = unused_ = false;
}

}  // namespace braid
