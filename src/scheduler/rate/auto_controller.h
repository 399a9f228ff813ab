#pragma once

#include <memory>

#include "scheduler/rate/controller.h"

namespace braid {

/// Chooses by what the path shows, each subflow for itself: `wan` until CE marks come back over a round trip
/// of a data centre, then `amp`, coupled with the subflows that chose the same; `wan` again when round trips
/// are longer, or packets are lost that the network did not mark before. Ours.
class AutoController final : public Controller {
 public:
  /// Longest RTT without a queue of a path that `amp` is for, and from which on it is not.
  static constexpr Duration kFabricRtt = 2ms;
  static constexpr Duration kWideRtt = 4ms;
  /// A network that marks has marked so short a time before it drops.
  static constexpr Duration kMarksLife = 1s;

  /// `group` as for makeController().
  AutoController(const ControllerOptions& options, ControllerGroup* group);

  void onSent(uint64_t bytes, uint64_t inFlight, Time now) override { inner_->onSent(bytes, inFlight, now); }
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

  /// "amp" or "wan".
  const char* choice() const { return fabric_ ? "amp" : "wan"; }

 private:
  void choose(bool fabric, Time now);

  ControllerOptions options_;
  ControllerGroup* group_;
  std::unique_ptr<Controller> inner_;
  bool fabric_ = false;
  bool usable_ = false;
  Duration rtt_{};  // without a queue; 0: unknown
  Duration srtt_{};
  Time markedAt_{};
};

}  // namespace braid
