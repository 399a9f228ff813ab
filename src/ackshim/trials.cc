#include "ackshim/trials.h"

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

Trials::Known Trials::known(Newest newest) {
  Known known;
  Trial* trial = find(newest);
  while (trial && known.count < kLookedAt) {
    known.trials[known.count++] = trial;
    trial = find(trial->before);
  }
  return known;
}

void Trials::onFired(ShimCounters& counters, Newest& newest, Actuator actuator, Seq at, bool sent) {
  Trial* trial = find(newest);
  bool sameSegment = trial && trial->at == at && !trial->answered;
  bool waiting = sameSegment && trial->told == Told::kWaiting;
  if (sameSegment && trial->actuator == actuator) {
    if (waiting) return;  // once more, no new attempt
  } else {
    if (waiting && !sent) trial->told = Told::kNo;  // what the sender sends then is due to the new way
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

void Trials::onAgain(Newest newest, const TcpSegment& s) {
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

bool Trials::onAck(ShimCounters& counters, Newest newest, const TcpSegment& s, bool isNew, bool tooEarly) {
  bool denies = s.hasDsack();
  if (!denies && !isNew) return false;
  const Known known = this->known(newest);
  bool waste = false;
  for (size_t i = 0; i < known.count; ++i) {
    Trial& trial = *known.trials[i];
    bool isSpurious = false;
    // Of several copies of a segment it may be any: the first one that is left.
    auto isOpen = [&](const Trial* t) { return t->at == trial.at && t->copies > 0; };
    if (denies && covers(s.options.sacks[0].begin, s.options.sacks[0].end, trial.at) && isOpen(&trial)) {
      if (std::ranges::none_of(known.all().subspan(i + 1), isOpen)) isSpurious = onDenied(counters, trial);
    }
    if (isNew && !trial.answered && s.ack > trial.at) {
      // The ACK may be older than what was sent again (RFC 3522 section 3.2).
      const auto& ts = s.options.timestamps;
      bool isOlder = (trial.hasTs && ts && Seq{ts->echo} < trial.ts) || (tooEarly && i == 0);
      if (onAnswered(counters, known, trial, isOlder)) isSpurious = true;
    }
    if (i > 0 || !isSpurious || trial.wasted) continue;
    waste = trial.wasted = true;
  }
  return waste;
}

/// A D-SACK: a copy went for nothing. True when that is new.
bool Trials::onDenied(ShimCounters& counters, Trial& trial) {
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

/// The data is acknowledged; `isOlder`: from before any copy. True when something went for nothing.
bool Trials::onAnswered(ShimCounters& counters, const Known& known, Trial& trial, bool isOlder) {
  trial.answered = true;
  bool isSpurious = trial.told == Told::kWaiting;  // nothing was sent again: the first one arrived
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
