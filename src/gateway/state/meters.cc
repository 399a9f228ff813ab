#include "gateway/state/meters.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <stdexcept>

namespace braid {

namespace {
constexpr std::chrono::seconds kTick = 10s;
constexpr MeterPeriod kDay{MeterPeriod::Unit::kDay, 1, 0}, kMonth{MeterPeriod::Unit::kMonth, 1, 0};
// No uplink has such a name.
std::string today(const std::string& uplink) {
  return uplink + " today";
}
std::string month(const std::string& uplink) {
  return uplink + " month";
}
}  // namespace

void MeterTracker::setUp(const Config& config) {
  bool any = std::any_of(config.uplinks.begin(), config.uplinks.end(),
                         [](const UplinkConfig& u) { return u.meter.has_value(); });
  if (book_ || config.uplinks.empty() || (config.state.empty() && !any)) return;
  try {
    book_.emplace(config.state);
  } catch (const std::runtime_error& e) {
    if (any) throw;
    spdlog::warn("the uplinks' bytes of today and this month are not counted: {}", e.what());
  }
}

// What an uplink has carried that is not in the book yet. A count that is smaller than before has
// begun at 0 again.
uint64_t MeterTracker::uncounted(const UplinkBytes& now) const {
  auto known = counted_.find(now.uplink);
  const bool goesOn = known != counted_.end() && known->second <= now.bytes;
  return now.bytes - (goesOn ? known->second : 0);
}

void MeterTracker::count() {
  for (const MeterStatus& m : tunnel_.meters()) book_->note(m.uplink, m.used);
  for (const UplinkBytes& now : tunnel_.carried()) {
    const uint64_t grown = uncounted(now);
    book_->add(today(now.uplink), grown);
    book_->add(month(now.uplink), grown);
    counted_[now.uplink] = now.bytes;
  }
}

void MeterTracker::addTo(std::vector<UplinkSpec>& specs,
                         const std::vector<UplinkConfig>& uplinks) const {
  for (const UplinkConfig& u : uplinks) {
    auto spec =
        std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return s.name == u.name; });
    if (!u.meter || spec == specs.end()) continue;
    const MeterStore::Entry* entry = book_->find(u.name);
    spec->meter = {u.meter->cap, entry ? entry->used : 0};
  }
}

// Periods end by the wall clock, which may jump, and which continues while the host sleeps. So
// keep() looks at it often.
void MeterTracker::keep(const std::vector<UplinkConfig>& uplinks, Time now) {
  if (!book_) return;
  std::time_t wall = std::time(nullptr);
  count();
  std::chrono::seconds next = kTick;
  for (const UplinkConfig& u : uplinks) {
    book_->open(today(u.name), kDay, wall);
    book_->open(month(u.name), kMonth, wall);
    if (!u.meter) continue;
    const MeterStore::Entry* known = book_->find(u.name);
    uint64_t before = known ? known->used : 0;
    const MeterStore::Entry& entry = book_->open(u.name, u.meter->period, wall);
    if (entry.used != before) tunnel_.resetMeter(u.name, entry.used, now);
    next = std::min(next, std::chrono::seconds(entry.until - wall));
  }
  if (book_->wantsSave(wall)) save(now);
  deadline_ = now + next;
}

void MeterTracker::save(Time now) {
  if (std::string problem = book_->save(std::time(nullptr)); !problem.empty())
    log_.warn(LogKind::kDevice, now, problem);
}

void MeterTracker::end(Time now) {
  if (!book_) return;
  count();
  save(now);
}

void MeterTracker::addTo(std::vector<UplinkStatus>& uplinks) const {
  if (!book_) return;
  const std::vector<MeterStatus> meters = tunnel_.meters();
  const std::vector<UplinkBytes> carried = tunnel_.carried();
  for (UplinkStatus& uplink : uplinks) {
    auto m = std::ranges::find(meters, uplink.name, &MeterStatus::uplink);
    const MeterStore::Entry* entry = book_->find(uplink.name);
    if (m != meters.end() && entry) {
      const MeterReading& reading = *m;
      uplink.meter = {reading, entry->until};
    }
    auto now = std::ranges::find(carried, uplink.name, &UplinkBytes::uplink);
    const MeterStore::Entry *day = book_->find(today(uplink.name)),
                            *ofMonth = book_->find(month(uplink.name));
    if (now == carried.end() || !day || !ofMonth) continue;
    const uint64_t fresh = uncounted(*now);
    uplink.carried = {day->used + fresh, ofMonth->used + fresh, now->bytes};
  }
}

}  // namespace braid
