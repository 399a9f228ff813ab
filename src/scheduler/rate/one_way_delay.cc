#include "scheduler/rate/one_way_delay.h"

#include <algorithm>
#include <cmath>

namespace braid {

namespace {
/// A slope of more than this times the most is none. The rest is noise of the samples.
constexpr double kSlopeMargin = 1.2;

Duration scaled(Duration time, double factor) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(time.count()) * factor));
}
}  // namespace

void OneWayDelay::onSample(const Sample& sample) {
  Duration total = sample.now - sample.sentAt - sample.ackDelay;
  if (total < Duration{}) return;
  if (samples_ > 0 && sample.now - latest_ > kWindow) reset();
  int64_t peer = samples_ > 0 ? unwrap(sample.received) : int64_t{sample.received};
  Duration forward = std::chrono::microseconds(peer) - sample.sentAt.time_since_epoch();
  Duration reverse = total - forward;
  learn(forward, reverse, sample);
  Duration forwardFloor = floorAt(&Slot::forward, sample.now);
  Duration reverseFloor = floorAt(&Slot::reverse, sample.now);
  if (forwardFloor == Duration::max() || forwardFloor + reverseFloor < -kJump) return reset();
  // Queues of more than the window are times that a clock cannot have meant.
  if (forward - forwardFloor > kWindow || reverse - reverseFloor > kWindow) return reset();
  peer_ = peer;
  latest_ = sample.now;
  queues_ = {std::max(forward - forwardFloor, Duration{}),
             std::max(reverse - reverseFloor, Duration{})};
  bool first = samples_++ == 0;
  auto smooth = [&](Duration& mean, Duration latest) {
    mean = first ? latest : (7 * mean + latest) / 8;
  };
  smooth(smoothed_.forward, queues_.forward);
  smooth(smoothed_.reverse, queues_.reverse);
  samples_ = std::min(samples_, kLeastSamples);
}

std::optional<OneWayQueues> OneWayDelay::queues() const {
  return samples_ < kLeastSamples ? std::nullopt : std::optional(queues_);
}

std::optional<OneWayQueues> OneWayDelay::smoothed() const {
  return samples_ < kLeastSamples ? std::nullopt : std::optional(smoothed_);
}

// The peer's times are at most half a modulus (18 minutes) apart, since kWindow is far shorter.
int64_t OneWayDelay::unwrap(uint32_t received) const {
  int64_t ahead = (int64_t{received} - peer_) % int64_t{kModulus};
  if (ahead < -int64_t{kModulus / 2}) ahead += kModulus;
  if (ahead >= int64_t{kModulus / 2}) ahead -= kModulus;
  return peer_ + ahead;
}

// The time of a run is that of its first packet. A later one seems to have come too early, so it is
// no sample for the floors.
void OneWayDelay::learn(Duration forward, Duration reverse, const Sample& sample) {
  int64_t number = sample.now.time_since_epoch() / kSlot;
  if (number != slot_) {
    if (slot_ >= 0) learnSlope(slot_);
    slot_ = number;
    slotOf(number) = {.number = number, .samples = 0, .forward = {}, .reverse = {}};
  }
  if (sample.ofRun) return;
  Slot& slot = slotOf(number);
  ++slot.samples;
  if (forward <= slot.forward.delay) slot.forward = {forward, sample.now};
  if (reverse <= slot.reverse.delay) slot.reverse = {reverse, sample.now};
}

// Compares the slot that has ended with the last but one before it.
void OneWayDelay::learnSlope(int64_t number) {
  if (number < 2) return;
  const Slot &after = slotOf(number), &before = slotOf(number - 2);
  if (before.number != number - 2) return;
  if (std::min(after.samples, before.samples) < kLeastSamples) return;
  Duration there = after.forward.delay - before.forward.delay;
  Duration back = after.reverse.delay - before.reverse.delay;
  if (std::chrono::abs(there + back) > kAgreement) return;
  double perSecond = toSeconds(there) / toSeconds(after.forward.at - before.forward.at) -
                     toSeconds(back) / toSeconds(after.reverse.at - before.reverse.at);
  if (std::abs(perSecond / 2) > kSlopeMargin * kMostSlope) return;  // a jump
  slope_ += kSlopeGain * (perSecond / 2 - slope_);
  slope_ = std::clamp(slope_, -kMostSlope, kMostSlope);
}

Duration OneWayDelay::floorAt(Least Slot::*direction, Time now) const {
  double slope = direction == &Slot::forward ? slope_ : -slope_;
  Duration floor = Duration::max();
  for (const Slot& slot : slots_) {
    if (!isLive(slot)) continue;
    const Least& least = slot.*direction;
    floor = std::min(floor, least.delay + scaled(now - least.at, slope));
  }
  return floor;
}

}  // namespace braid
