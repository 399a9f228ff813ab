#include "tunnel/session/path_duties.h"

#include <algorithm>
#include <utility>

namespace braid {

namespace {
const char* dutyText(PathDuty duty) {
  switch (duty) {
    case PathDuty::kAll:
      return "carries data";
    case PathDuty::kOverflow:
      return "carries what is too much for the others";
    case PathDuty::kNone:
      return "rests, better paths are usable";
  }
  return "?";
}
}  // namespace

// ---- preferences

void PathDuties::setPreference(Subflow& subflow, const PathPreference& own, const PathPreference& peers,
                               std::shared_ptr<Pacer> ceiling) {
  isDue_ |= subflow.preference().use != own.use;
  subflow.setPreference(own);
  subflow.gate().setCeiling(std::move(ceiling));
  size_t position = subflows_.positionOf(subflow.id());
  if (wishes_.size() <= position) wishes_.resize(position + 1);
  SubflowPreferenceFrame& wish = wishes_[position];
  if (wish.preference == peers) return;
  wish = {subflow.id(), controls_.takeSequence(), peers};
  if (subflow.usable()) onUsable(subflow);
}

const SubflowPreferenceFrame* PathDuties::wishFor(const Subflow& subflow) const {
  size_t position = subflows_.positionOf(subflow.id());
  if (position >= wishes_.size() || wishes_[position].sequence == 0) return nullptr;
  return &wishes_[position];
}

// Until the subflow is usable the peer knows its wish from challenges, if at all.
void PathDuties::onUsable(const Subflow& subflow) {
  if (const SubflowPreferenceFrame* wish = wishFor(subflow)) controls_.announce(*wish);
}

void PathDuties::onPeerPreference(const SubflowPreferenceFrame& frame) {
  Subflow* subflow = subflows_.find(frame.subflow);
  if (side_ == Side::kInitiator || !subflow) return;
  if (!subflow->onPeerPreference(frame)) return;
  subflow->gate().setCeiling(ceilingOf(subflow->preference()));
  isDue_ = true;
}

// The last word on an uplink holds for all its subflows.
std::shared_ptr<Pacer> PathDuties::ceilingOf(const PathPreference& preference) {
  if (preference.ceiling == 0) return nullptr;
  auto fresh = [&] { return std::make_shared<Pacer>(largestDatagram_); };
  std::shared_ptr<Pacer> ceiling;
  if (preference.uplink == 0) {
    ceiling = fresh();
  } else {
    std::shared_ptr<Pacer>& shared = ceilings_[preference.uplink];
    if (!shared) shared = fresh();
    ceiling = shared;
  }
  ceiling->setRate(static_cast<double>(preference.ceiling));
  return ceiling;
}

// ---- duties

void PathDuties::update(Time now) {
  if (isDue_) assign(now);
}

void PathDuties::assign(Time now) {
  isDue_ = false;
  PathUse best = PathUse::kBackup;
  bool metered = false;
  for (const Subflow* s : subflows_) {
    if (!s->usable()) continue;
    best = std::min(best, s->preference().use);
    metered |= s->preference().use == PathUse::kMetered;
  }
  bool waited = std::exchange(meteredWait_, metered && best == PathUse::kNormal);
  if (!meteredWait_ || !waited) saturation_ = {};
  for (Subflow* s : subflows_) {
    PathDuty duty = dutyOf(s->preference().use, best, saturation_.helps());
    if (duty == s->gate().duty()) continue;
    s->gate().setDuty(duty, now);
    if (s->usable()) events_.tell(Event::Kind::kSubflowDuty, *s, dutyText(duty));
  }
}

// ---- saturation

void PathDuties::advance(Time now) {
  bool before = saturation_.helps();
  saturation_.onTimer(now);
  if (saturation_.helps() != before) assign(now);
}

void PathDuties::onTimer(Time now) {
  if (meteredWait_) advance(now);
}

bool PathDuties::mayOverflow(Time now) {
  if (!meteredWait_) return false;
  advance(now);
  saturation_.onWaiting(now);
  return saturation_.isUrgent(now);
}

void PathDuties::onDrained(Time now) {
  if (!meteredWait_) return;
  advance(now);
  saturation_.onDrained(now);
}

}  // namespace braid
