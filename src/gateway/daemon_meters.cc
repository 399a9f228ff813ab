// The part of Daemon that keeps the counts of metered uplinks: over restarts, and by the calendar.

#include <spdlog/spdlog.h>

#include <algorithm>

#include "gateway/daemon.h"

namespace braid {

namespace {
constexpr Duration kMeterTick = 10s;
}  // namespace

// Throws when the counts that a configuration asks for cannot be kept.
void Daemon::setUpMeters(const Config& config) {
  bool any = std::any_of(config.uplinks.begin(), config.uplinks.end(),
                         [](const UplinkConfig& u) { return u.meter.has_value(); });
  if (any && !meters_) meters_.emplace(config.state);
}

// With the counts to begin with, which keepMeters() has opened.
std::vector<UplinkSpec> Daemon::uplinkSpecs() const {
  std::vector<UplinkSpec> specs = uplinks_.specs();
  for (const UplinkConfig& u : config_.uplinks) {
    auto spec = std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return s.name == u.name; });
    if (!u.meter || spec == specs.end()) continue;
    const MeterBook::Entry* entry = meters_->find(u.name);
    spec->meter = {u.meter->cap, entry ? entry->used : 0};
  }
  return specs;
}

// Periods end by the wall clock, which may jump, and goes on while the host sleeps: so it is looked at often.
void Daemon::keepMeters() {
  if (!meters_) return;
  Time now = monotonicNow();
  std::time_t wall = std::time(nullptr);
  for (const MeterStatus& m : tunnel_.meters()) meters_->note(m.uplink, m.used);
  Duration next = kMeterTick;
  for (const UplinkConfig& u : config_.uplinks) {
    if (!u.meter) continue;
    const MeterBook::Entry* known = meters_->find(u.name);
    uint64_t before = known ? known->used : 0;
    const MeterBook::Entry& entry = meters_->open(u.name, u.meter->period, wall);
    if (entry.used != before) tunnel_.resetMeter(u.name, entry.used, now);
    next = std::min<Duration>(next, std::chrono::seconds(entry.until - wall));
  }
  if (meters_->wantsSave(wall)) saveMeters();
  meterTimer_.arm(now + next);
}

void Daemon::saveMeters() {
  if (std::string problem = meters_->save(std::time(nullptr)); !problem.empty())
    warn(LogKind::kDevice, monotonicNow(), problem);
}

void Daemon::endMeters() {
  if (!meters_) return;
  for (const MeterStatus& m : tunnel_.meters()) meters_->note(m.uplink, m.used);
  saveMeters();
}

void Daemon::addMeters(std::vector<UplinkStatus>& uplinks) const {
  std::vector<MeterStatus> meters = tunnel_.meters();
  for (UplinkStatus& uplink : uplinks) {
    auto m = std::find_if(meters.begin(), meters.end(),
                          [&](const MeterStatus& x) { return x.uplink == uplink.name; });
    const MeterBook::Entry* entry = meters_ ? meters_->find(uplink.name) : nullptr;
    if (m != meters.end() && entry) uplink.meter = {m->used, m->cap, m->closed, entry->until};
  }
}

}  // namespace braid
