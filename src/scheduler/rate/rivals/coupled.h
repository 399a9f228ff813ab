#pragma once

#include <algorithm>

#include "scheduler/rate/dctcp.h"
#include "scheduler/rate/window_controller.h"

namespace braid {

/// Linked increases (RFC 6356): the subflows together take as much as one TCP connection would take
/// on the best of their paths.
class Lia final : public CoupledController {
 public:
  /// `beta`: a mark reduces the window by 1/beta; at least 2.
  explicit Lia(uint64_t datagram, uint64_t initial = kInitialWindow,
               ControllerGroup* group = nullptr, double beta = 2)
      : CoupledController(datagram, initial, kMinimumWindow, group), beta_(beta) {}

  /// How far `acked` bytes increase `window`, in bytes. Section 3, eq. (1): min(alpha * acked * MSS
  /// / w_total, acked * MSS / w).
  static double increase(const ControllerGroup& group, double window, double acked,
                         double datagram);

 protected:
  void grow(const AckSample& ack) override;
  double afterMark() const override { return cwnd() * (1 - 1 / beta_); }

 private:
  double beta_;
};

/// Data Center MultiPath (AMP section 2.1): the increase of MPTCP (RFC 6356) and the response of
/// DCTCP, with an alpha for each subflow.
class Dcm final : public CoupledController {
 public:
  explicit Dcm(uint64_t datagram, uint64_t initial = kInitialWindow,
               ControllerGroup* group = nullptr)
      : CoupledController(datagram, initial, kMinimumWindow, group) {}

  /// alpha_s of eq. (2), 0..1.
  double alpha() const { return marks_.value(); }

 protected:
  void observe(const AckSample& ack) override;
  void grow(const AckSample& ack) override;
  double afterMark() const override { return cwnd() * (1 - alpha() / 2); }
  void onReset() override;

 private:
  MarkFraction marks_;
};

/// XMP (Cao et al., CoNEXT 2013) as AMP section 2.2 gives it: the window grows by delta datagrams
/// per window of data, and a mark reduces it by a constant factor.
class Xmp final : public CoupledController {
 public:
  /// A mark reduces the window by 1/kBeta.
  static constexpr double kBeta = 4;

  explicit Xmp(uint64_t datagram, uint64_t initial = kInitialWindow,
               ControllerGroup* group = nullptr)
      : CoupledController(datagram, initial, kMinimumWindow, group) {}

 protected:
  void grow(const AckSample& ack) override;
  double afterMark() const override { return cwnd() * (1 - 1 / kBeta); }
  void onReset() override;

 private:
  Time windowBegan_ = Time::min();
};

inline double Lia::increase(const ControllerGroup& group, double window, double acked,
                            double datagram) {
  double total = std::max(group.totalWindow(), window);
  return acked * datagram * std::min(group.alpha() / total, 1 / window);
}

inline void Lia::grow(const AckSample& ack) {
  setWindow(cwnd() + increase(group(), cwnd(), static_cast<double>(ack.bytes), datagram()));
}

inline void Dcm::observe(const AckSample& ack) {
  CoupledController::observe(ack);
  marks_.onAck(ack, datagram());
}

inline void Dcm::grow(const AckSample& ack) {
  setWindow(cwnd() + Lia::increase(group(), cwnd(), static_cast<double>(ack.bytes), datagram()));
}

inline void Dcm::onReset() {
  CoupledController::onReset();
  marks_ = {};
}

inline void Xmp::grow(const AckSample& ack) {
  if (ack.largestSentAt < windowBegan_) return;
  windowBegan_ = ack.now;
  setWindow(cwnd() + group().delta(member()) * datagram());
}

inline void Xmp::onReset() {
  CoupledController::onReset();
  windowBegan_ = Time::min();
}

}  // namespace braid
