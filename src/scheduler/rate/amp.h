#pragma once

#include "scheduler/rate/coupled_controller.h"

namespace braid {

/// AMP, the adaptive multipath congestion control of Kheirkhah and Lee (Algorithm 1): one datagram per round
/// over all subflows, a cut by a constant factor on ECN marks, and a single subflow while all are at the
/// minimum window. For fabrics whose switches mark above a small queue.
class Amp final : public CoupledController {
 public:
  /// `options`: gamma, tau, beta, minimum window.
  Amp(uint64_t datagram, uint64_t initial, const AmpOptions& options, ControllerGroup* group = nullptr)
      : CoupledController(datagram, initial, options.minimumWindow, group), options_(options) {}

  void onAck(const AckSample& ack) override;

 protected:
  void grow(const AckSample& ack) override;
  double afterMark() const override { return cwnd() * (1 - 1 / options_.beta); }
  void onUnused(Duration) override { unused_ = true; }
  void onReset() override;

 private:
  static constexpr Time kNone = Time::min();

  AmpOptions options_;
  Time roundBegan_ = kNone;
  bool marked_ = false;  ///< in this round
  bool unused_ = false;  ///< the window was not filled
};

/// The least beta for which a cut does not drain the queue, (BDP + K) / beta <= K, and at least 2 (section
/// 4.2). `bdp` and `threshold` (K, above 0) in datagrams.
double ampBeta(double bdp, double threshold);

}  // namespace braid
