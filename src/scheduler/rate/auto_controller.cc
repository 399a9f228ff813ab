#include "scheduler/rate/auto_controller.h"

#include "scheduler/rate/amp.h"

namespace braid {

AutoController::AutoController(const ControllerOptions& options, ControllerGroup* group)
    : options_(options), group_(group), inner_(makeController("wan", options, group)) {}

void AutoController::choose(bool fabric, Time now) {
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

void AutoController::onAck(const AckSample& ack) {
  rtt_ = ack.minRtt;
  srtt_ = ack.srtt;
  if (rtt_ >= kWideRtt) choose(false, ack.now);
  inner_->onAck(ack);
}

void AutoController::onLoss(const LossSample& loss) {
  if (fabric_ && loss.now - markedAt_ > kMarksLife) choose(false, loss.now);
  inner_->onLoss(loss);
}

void AutoController::onMarks(uint64_t marks, Time largestSentAt, Time now) {
  if (marks > 0) {
    markedAt_ = now;
    if (rtt_ > Duration{} && rtt_ <= kFabricRtt) choose(true, now);
  }
  inner_->onMarks(marks, largestSentAt, now);
}

void AutoController::setUsable(bool usable, Time now) {
  usable_ = usable;
  inner_->setUsable(usable, now);
}

void AutoController::reset(Time now) {
  choose(false, now);
  inner_->reset(now);
  rtt_ = srtt_ = {};
}

}  // namespace braid
