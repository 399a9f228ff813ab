// What the subflows are for: which of them may carry data now, and what the peer is told of it.

#include <algorithm>
#include <utility>

#include "tunnel/session/session.h"

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

void Session::setPreference(const std::string& name, const PathPreference& own, const PathPreference& peers,
                            std::shared_ptr<Pacer> ceiling, Time now) {
  std::optional<size_t> position = subflows_.named(name);
  if (!position) return;
  Subflow& s = subflows_[*position];
  SubflowPreferenceFrame& wish = wishes_[*position];
  dutiesDue_ |= s.preference().use != own.use;
  s.setPreference(own);
  s.setCeiling(std::move(ceiling));
  if (wish.preference != peers) {
    wish.preference = peers;
    wish.sequence = controls_.takeSequence();
    if (s.usable()) tellPreference(s);
  }
  refresh(now);
}

const SubflowPreferenceFrame* Session::wishFor(const Subflow& subflow) const {
  if (role_ != KeySchedule::Role::kInitiator) return nullptr;
  const SubflowPreferenceFrame& wish = wishes_[subflows_.positionOf(subflow.id())];
  return wish.sequence > 0 ? &wish : nullptr;
}

// Until the subflow is usable the peer knows it from challenges, if at all.
void Session::tellPreference(const Subflow& subflow) {
  if (const SubflowPreferenceFrame* wish = wishFor(subflow)) controls_.announce(*wish);
}

// The initiator's uplinks are what is preferred; the responder has nothing to say.
void Session::onPreference(const SubflowPreferenceFrame& frame) {
  Subflow* subflow = subflows_.find(frame.subflow);
  if (role_ == KeySchedule::Role::kInitiator || !subflow) return;
  if (!subflow->onPeerPreference(frame)) return;
  subflow->setCeiling(ceilingOf(subflow->preference()));
  dutiesDue_ = true;
}

// The last word on an uplink holds for all its subflows.
std::shared_ptr<Pacer> Session::ceilingOf(const PathPreference& preference) {
  if (preference.ceiling == 0) return nullptr;
  auto fresh = [&] { return std::make_shared<Pacer>(options_.maxOuterMtu); };
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

void Session::updateDuties(Time now) {
  dutiesDue_ = false;
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
    if (duty == s->duty()) continue;
    s->setDuty(duty, now);
    if (s->usable()) event(Event::Kind::kSubflowDuty, *s, dutyText(duty));
  }
}

// ---- saturation

void Session::setSaturated(Time now) {
  bool before = saturation_.helps();
  saturation_.onTimer(now);
  if (saturation_.helps() != before) updateDuties(now);
}

// Data is left over. Whether a metered path may take it: then the views are of those.
bool Session::openOverflow(Time now) {
  if (!meteredWait_) return false;
  setSaturated(now);
  saturation_.onWaiting(now);
  if (!saturation_.isUrgent(now)) return false;
  bool anyOpen = false;
  for (size_t i = 0; i < subflows_.size(); ++i) {
    views_[i] = subflows_[i].view(now, true);
    anyOpen |= views_[i].open;
  }
  return anyOpen;
}

void Session::onDrained(Time now) {
  if (!meteredWait_) return;
  setSaturated(now);
  saturation_.onDrained(now);
}

}  // namespace braid
