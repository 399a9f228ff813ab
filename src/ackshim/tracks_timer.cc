#include "ackshim/tracks_timer.h"

#include <algorithm>

namespace braid {

namespace {
void countOne(uint8_t& count) {
  if (count < UINT8_MAX) ++count;
}
bool covers(Seq begin, Seq end, Seq at) {
  return begin <= at && end > at;
}
}  // namespace

InterventionLog::Known InterventionLog::known(Newest newest) {
  Known known;
  Trial* trial = find(newest);
  while (trial && known.count < kLookedAt) {
    known.interventions[known.count++] = trial;
    trial = find(trial->before);
  }
  return known;
}

void InterventionLog::onFired(ShimCounters& counters, Newest& newest, Actuator actuator, Seq at,
                              bool sent) {
  Trial* trial = find(newest);
  bool sameSegment = trial && trial->at == at && !trial->answered;
  bool waiting = sameSegment && trial->told == Told::kWaiting;
  if (sameSegment && trial->actuator == actuator) {
    if (waiting) return;  // the same trial again: not counted
  } else {
    if (waiting && !sent)
      trial->told = Told::kNo;  // what the sender resends is now due to the new trial
    trial = &ring_[next_ % kKept];
    *trial = Trial{};
    trial->at = at;
    trial->before = newest;
    trial->actuator = actuator;
    newest = next_++;
    if (next_ == 0) ++next_;
  }
  ++counters[actuator].fired;
  trial->wasted = false;
  if (sent) {
    countOne(trial->copies);
  } else {
    trial->told = Told::kWaiting;
  }
}

void InterventionLog::onAgain(Newest newest, const TcpSegment& s) {
  const Known known = this->known(newest);
  for (Trial* trial : known.all()) {
    if (trial->told == Told::kNo || !covers(s.seq, s.end, trial->at)) continue;
    if (trial->copies == 0 && s.options.timestamps) {
      trial->hasTs = true;
      trial->ts = {s.options.timestamps->value};
    }
    countOne(trial->copies);
    if (trial->told == Told::kJudged) countOne(trial->foreseen);
    trial->told = Told::kNo;
    return;
  }
}

bool InterventionLog::onAck(ShimCounters& counters, Newest newest, const TcpSegment& s, bool isNew,
                            bool tooEarly) {
  bool denies = s.hasDsack();
  if (!denies && !isNew) return false;
  const Known known = this->known(newest);
  bool waste = false;
  for (size_t i = 0; i < known.count; ++i) {
    Trial& trial = *known.interventions[i];
    bool isSpurious = false;
    // The D-SACK may be for any of several copies of a segment. It is attributed to the oldest one
    // left.
    auto isOpen = [&](const Trial* t) { return t->at == trial.at && t->copies > 0; };
    if (denies && covers(s.options.sacks[0].begin, s.options.sacks[0].end, trial.at) &&
        isOpen(&trial)) {
      if (std::ranges::none_of(known.all().subspan(i + 1), isOpen))
        isSpurious = onDenied(counters, trial);
    }
    if (isNew && !trial.answered && s.ack > trial.at) {
      // The ACK may be for the original, from before the copy (RFC 3522 section 3.2).
      const auto& ts = s.options.timestamps;
      bool isOlder = (trial.hasTs && ts && Seq{ts->echo} < trial.ts) || (tooEarly && i == 0);
      if (onAnswered(counters, known, trial, isOlder)) isSpurious = true;
    }
    if (i > 0 || !isSpurious || trial.wasted) continue;
    waste = trial.wasted = true;
  }
  return waste;
}

/// A D-SACK says that a copy was not needed. True when that was not known.
bool InterventionLog::onDenied(ShimCounters& counters, Trial& trial) {
  --trial.copies;
  if (trial.useful && trial.copies == 0) {
    --counters[trial.actuator].useful;
    trial.useful = false;
  }
  if (trial.foreseen > 0) {
    --trial.foreseen;
    return false;
  }
  ++counters[trial.actuator].spurious;
  return true;
}

/// The data is acknowledged. `isOlder`: the ACK is from before any copy. True when something turned
/// out to be unnecessary.
bool InterventionLog::onAnswered(ShimCounters& counters, const Known& known, Trial& trial,
                                 bool isOlder) {
  trial.answered = true;
  bool isSpurious = trial.told == Told::kWaiting;  // not resent: the original arrived
  if (isSpurious) {
    trial.told = Told::kJudged;
    ++counters[trial.actuator].spurious;
  }
  if (trial.copies == 0) return isSpurious;
  if (isOlder) {
    ++trial.foreseen;
    ++counters[trial.actuator].spurious;
    return true;
  }
  auto hasCredit = [&](const Trial* t) { return t->at == trial.at && t->useful; };
  if (std::ranges::none_of(known.all(), hasCredit)) {
    ++counters[trial.actuator].useful;
    trial.useful = true;
  }
  return isSpurious;
}

}  // namespace braid
