#pragma once

#include <memory>

#include "scheduler/rate/amp.h"
#include "scheduler/rate/controller.h"

namespace braid {

/// Chooses the algorithm of its subflow by what the path shows. It begins with `wan`. When CE marks
/// come back and the RTT is that of a data center (kFabricRtt), it changes to `amp`, coupled with
/// the other subflows that chose `amp`. It returns to `wan` when the RTT is that of a wide-area
/// path (kWideRtt), or when packets are lost although the network has not marked for kMarksLife.
class AutoController final : public Controller {
 public:
  /// RTT without a queue: up to kFabricRtt marks lead to `amp`; from kWideRtt on `wan` returns.
  static constexpr Duration kFabricRtt = 2ms;
  static constexpr Duration kWideRtt = 4ms;
  /// A network that marks is expected to mark at most this long before it drops a packet.
  static constexpr Duration kMarksLife = 1s;

  /// `group` as for makeController().
  AutoController(const ControllerOptions& options, ControllerGroup* group);

  void onSent(uint64_t bytes, uint64_t inFlight, Time now) override {
    inner_->onSent(bytes, inFlight, now);
  }
  void onAck(const AckSample& ack) override;
  void onLoss(const LossSample& loss) override;
  void onMarks(uint64_t marks, Time largestSentAt, Time now) override;
  void onSpuriousLoss(Time sentAt, Time now) override { inner_->onSpuriousLoss(sentAt, now); }
  void setUsable(bool usable, Time now) override;
  Time suppressedAt() const override { return inner_->suppressedAt(); }
  void reset(Time now) override;
  uint64_t window() const override { return inner_->window(); }
  double pacingRate() const override { return inner_->pacingRate(); }
  double burst() const override { return inner_->burst(); }
  Duration ownQueue() const override { return inner_->ownQueue(); }

  /// "amp" or "wan".
  const char* choice() const { return fabric_ ? "amp" : "wan"; }

 private:
  void choose(bool fabric, Time now);

  ControllerOptions options_;
  ControllerGroup* group_;
  std::unique_ptr<Controller> inner_;
  bool fabric_ = false;
  bool usable_ = false;
  Duration rtt_{};  // RTT without a queue; 0: unknown
  Duration srtt_{};
  Time markedAt_{};
};

inline AutoController::AutoController(const ControllerOptions& options, ControllerGroup* group)
    : options_(options), group_(group), inner_(makeController("wan", options, group)) {}

inline void AutoController::choose(bool fabric, Time now) {
  if (fabric == fabric_) return;
  fabric_ = fabric;
  if (fabric) {
    auto amp =
        std::make_unique<Amp>(options_.datagram, options_.initialWindow, options_.amp, group_);
    amp->resume(static_cast<double>(inner_->window()), srtt_);
    inner_ = std::move(amp);
  } else {
    inner_ = makeController("wan", options_, group_);
  }
  inner_->setUsable(usable_, now);
}

inline void AutoController::onAck(const AckSample& ack) {
  rtt_ = ack.minRtt;
  srtt_ = ack.srtt;
  if (rtt_ >= kWideRtt) choose(false, ack.now);
  inner_->onAck(ack);
}

inline void AutoController::onLoss(const LossSample& loss) {
  if (fabric_ && loss.now - markedAt_ > kMarksLife) choose(false, loss.now);
  inner_->onLoss(loss);
}

inline void AutoController::onMarks(uint64_t marks, Time largestSentAt, Time now) {
  if (marks > 0) {
    markedAt_ = now;
    if (rtt_ > Duration{} && rtt_ <= kFabricRtt) choose(true, now);
  }
  inner_->onMarks(marks, largestSentAt, now);
}

inline void AutoController::setUsable(bool usable, Time now) {
  usable_ = usable;
  inner_->setUsable(usable, now);
}

inline void AutoController::reset(Time now) {
  choose(false, now);
  inner_->reset(now);
  rtt_ = srtt_ = {};
}

}  // namespace braid
