#include "tunnel/session/path_roles.h"

#include <algorithm>
#include <utility>

namespace braid {

namespace {
const char* roleText(PathRole role) {
  switch (role) {
    case PathRole::kAll:
      return "carries data";
    case PathRole::kOverflow:
      return "carries what is too much for the others";
    case PathRole::kNone:
      return "rests, better paths are usable";
  }
  return "?";
}
}  // namespace

// ---- preferences

void PathRoles::setPreference(Subflow& subflow, const PathPreference& own,
                              const PathPreference& peers, std::shared_ptr<Pacer> ceiling) {
  isDue_ |= subflow.preference().use != own.use;
  subflow.setPreference(own);
  subflow.admission().setCeiling(std::move(ceiling));
  size_t position = subflows_.positionOf(subflow.id());
  if (wishes_.size() <= position) wishes_.resize(position + 1);
  SubflowPreferenceFrame& wish = wishes_[position];
  if (wish.preference == peers) return;
  wish = {subflow.id(), controls_.takeSequence(), peers};
  if (subflow.usable()) onUsable(subflow);
}

const SubflowPreferenceFrame* PathRoles::wishFor(const Subflow& subflow) const {
  size_t position = subflows_.positionOf(subflow.id());
  if (position >= wishes_.size() || wishes_[position].sequence == 0) return nullptr;
  return &wishes_[position];
}

// Before the subflow is usable, the peer knows the preference only from path challenges, if at all.
void PathRoles::onUsable(const Subflow& subflow) {
  if (const SubflowPreferenceFrame* wish = wishFor(subflow)) controls_.announce(*wish);
}

void PathRoles::onPeerPreference(const SubflowPreferenceFrame& frame) {
  Subflow* subflow = subflows_.find(frame.subflow);
  if (side_ == Side::kInitiator || !subflow) return;
  if (!subflow->onPeerPreference(frame)) return;
  subflow->admission().setCeiling(ceilingOf(subflow->preference()));
  isDue_ = true;
}

// The latest preference about an uplink holds for all its subflows.
std::shared_ptr<Pacer> PathRoles::ceilingOf(const PathPreference& preference) {
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

// ---- roles

void PathRoles::update(Time now) {
  if (isDue_) assign(now);
}

void PathRoles::assign(Time now) {
  isDue_ = false;
  PathUse best = PathUse::kBackup;
  bool metered = false;
  for (const Subflow* s : subflows_) {
    if (!s->usable()) continue;
    best = std::min(best, s->preference().use);
    metered |= s->preference().use == PathUse::kMetered;
  }
  bool waited = std::exchange(meteredWait_, metered && best == PathUse::kNormal);
  if (!meteredWait_ || !waited) overflowHysteresis_ = {};
  for (Subflow* s : subflows_) {
    PathRole role = roleOf(s->preference().use, best, overflowHysteresis_.helps());
    if (role == s->admission().role()) continue;
    s->admission().setRole(role, now);
    if (s->usable()) events_.tell(Event::Kind::kSubflowRole, *s, roleText(role));
  }
}

// ---- saturation of the better paths

void PathRoles::advance(Time now) {
  bool before = overflowHysteresis_.helps();
  overflowHysteresis_.onTimer(now);
  if (overflowHysteresis_.helps() != before) assign(now);
}

void PathRoles::onTimer(Time now) {
  if (meteredWait_) advance(now);
}

bool PathRoles::mayOverflow(Time now) {
  if (!meteredWait_) return false;
  advance(now);
  overflowHysteresis_.onWaiting(now);
  return overflowHysteresis_.isUrgent(now);
}

void PathRoles::onDrained(Time now) {
  if (!meteredWait_) return;
  advance(now);
  overflowHysteresis_.onDrained(now);
}

}  // namespace braid
