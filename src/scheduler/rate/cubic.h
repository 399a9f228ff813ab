#pragma once

#include <algorithm>
#include <cmath>

#include "scheduler/rate/window_controller.h"

namespace braid {

/// CUBIC (RFC 9438) without HyStart++. Subflows are not coupled.
class Cubic final : public WindowController {
 public:
  /// C, datagrams per second^3 (section 5.1).
  static constexpr double kC = 0.4;
  /// beta_cubic: a reduction multiplies the window by it (section 4.6).
  static constexpr double kBeta = 0.7;
  /// alpha_cubic: datagrams that the Reno-friendly window grows per window (section 4.3).
  static constexpr double kAlpha = 3 * (1 - kBeta) / (1 + kBeta);
  /// Largest window to grow to in one RTT, as a multiple of the current window (section 4.2).
  static constexpr double kMaxTarget = 1.5;

  explicit Cubic(uint64_t datagram, uint64_t initial = kInitialWindow)
      : WindowController(datagram, initial) {}

  /// From now on this flow takes a fraction (0..1] of what one CUBIC flow takes beside others: n
  /// flows with a share of 1/n take as much as one. At a given loss rate, windows are proportional
  /// to C^(1/4) and to alpha^(1/2) (section 5.1).
  void setShare(double share) { share_ = share; }

  /// Makes the Reno-friendly window always grow by alpha_cubic, as in RFC 8312 and Linux. In RFC
  /// 9438 it grows by one once it has reached the window before the last reduction.
  void growAsRfc8312() { lateAlpha_ = kAlpha; }

  /// W_max, datagrams; 0 before the first reduction.
  double wMax() const { return at_.wMax; }
  /// K: seconds from the beginning of the epoch until the window is W_max again.
  double k() const { return at_.k; }
  /// W_est, datagrams.
  double wEst() const { return at_.wEst; }

 protected:
  void grow(const AckSample& ack) override;
  double afterMark() const override { return cwnd() * kBeta; }
  double afterLoss() const override { return cwnd() * kBeta; }
  void onReduction() override;
  void onUndo() override { at_ = before_; }
  void onReset() override { at_ = before_ = {}; }
  void onUnused(Duration time) override;

 private:
  void beginEpoch(double window, Time now);
  double wCubic(double t) const;
  double c() const { return kC * share_ * share_ * share_ * share_; }

  struct State {
    bool running = false;  ///< an epoch of congestion avoidance has begun
    double wMax = 0;       ///< datagrams
    double prior = 0;      ///< cwnd_prior, datagrams: the window before the last reduction
    double k = 0;          ///< seconds
    double wEst = 0;       ///< datagrams
    Time epoch;            ///< its beginning, moved on by the time in which the window was not used
  };
  State at_, before_;
  double share_ = 1;
  double lateAlpha_ = 1;  // growth of wEst per window, once it has reached cwnd_prior
};

// Section 4.2, with windows in datagrams. An epoch without a reduction before it has K = 0 and
// W_max = its first window (section 4.10). Persistent congestion is treated like a timeout (section
// 4.8).
inline void Cubic::beginEpoch(double window, Time now) {
  at_.running = true;
  at_.epoch = now;
  at_.wEst = window;
  if (at_.wMax <= window) {
    at_.wMax = window;
    at_.k = 0;
  } else {
    at_.k = std::cbrt((at_.wMax - window) / c());
  }
}

inline double Cubic::wCubic(double t) const {
  double d = t - at_.k;
  return c() * d * d * d + at_.wMax;
}

inline void Cubic::grow(const AckSample& ack) {
  double window = cwnd() / datagram();
  double acked = static_cast<double>(ack.bytes) / datagram();
  if (!at_.running) beginEpoch(window, ack.now);
  double t = toSeconds(ack.now - at_.epoch);
  at_.wEst += (at_.wEst < at_.prior ? kAlpha : lateAlpha_) * share_ * share_ * acked / window;
  if (wCubic(t) < at_.wEst) return setWindow(std::max(at_.wEst, window) * datagram());
  double target = std::clamp(wCubic(t + toSeconds(srtt())), window, kMaxTarget * window);
  setWindow((window + (target - window) * acked / window) * datagram());
}

// Section 4.7: a flow that is reduced before it has reached its last maximum leaves room to others.
inline void Cubic::onReduction() {
  before_ = at_;
  double window = cwnd() / datagram();
  at_.wMax = window < at_.wMax ? window * (1 + kBeta) / 2 : window;
  at_.prior = window;
  at_.running = false;
}

// Section 5.8: time in which the window was not used does not count in t.
inline void Cubic::onUnused(Duration time) {
  if (at_.running) at_.epoch += time;
}

}  // namespace braid
