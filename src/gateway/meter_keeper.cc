#include "gateway/meter_keeper.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>

namespace braid {

namespace {
constexpr std::chrono::seconds kTick = 10s;
}  // namespace

void MeterKeeper::setUp(const Config& config) {
  bool any = std::any_of(config.uplinks.begin(), config.uplinks.end(),
                         [](const UplinkConfig& u) { return u.meter.has_value(); });
  if (any && !book_) book_.emplace(config.state);
}

void MeterKeeper::addTo(std::vector<UplinkSpec>& specs, const std::vector<UplinkConfig>& uplinks) const {
  for (const UplinkConfig& u : uplinks) {
    auto spec = std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return s.name == u.name; });
    if (!u.meter || spec == specs.end()) continue;
    const MeterBook::Entry* entry = book_->find(u.name);
    spec->meter = {u.meter->cap, entry ? entry->used : 0};
  }
}

// Periods end by the wall clock, which may jump and goes on while the host sleeps: so keep() looks at it often.
void MeterKeeper::keep(const std::vector<UplinkConfig>& uplinks, Time now) {
  if (!book_) return;
  std::time_t wall = std::time(nullptr);
  for (const MeterStatus& m : tunnel_.meters()) book_->note(m.uplink, m.used);
  std::chrono::seconds next = kTick;
  for (const UplinkConfig& u : uplinks) {
    if (!u.meter) continue;
    const MeterBook::Entry* known = book_->find(u.name);
    uint64_t before = known ? known->used : 0;
    const MeterBook::Entry& entry = book_->open(u.name, u.meter->period, wall);
    if (entry.used != before) tunnel_.resetMeter(u.name, entry.used, now);
    next = std::min(next, std::chrono::seconds(entry.until - wall));
  }
  if (book_->wantsSave(wall)) save(now);
  deadline_ = now + next;
}

void MeterKeeper::save(Time now) {
  if (std::string problem = book_->save(std::time(nullptr)); !problem.empty())
    log_.warn(LogKind::kDevice, now, problem);
}

void MeterKeeper::end(Time now) {
  if (!book_) return;
  for (const MeterStatus& m : tunnel_.meters()) book_->note(m.uplink, m.used);
  save(now);
}

void MeterKeeper::addTo(std::vector<UplinkStatus>& uplinks) const {
  std::vector<MeterStatus> meters = tunnel_.meters();
  for (UplinkStatus& uplink : uplinks) {
    auto m = std::find_if(meters.begin(), meters.end(),
                          [&](const MeterStatus& x) { return x.uplink == uplink.name; });
    const MeterBook::Entry* entry = book_ ? book_->find(uplink.name) : nullptr;
    if (m == meters.end() || !entry) continue;
    const MeterReading& reading = *m;
    uplink.meter = {reading, entry->until};
  }
}

}  // namespace braid
