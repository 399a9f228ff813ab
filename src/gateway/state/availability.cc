#include "gateway/state/availability.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace braid {

void Availability::look(const std::vector<UplinkStatus>& uplinks,
                        const std::set<std::string>& working, Time now) {
  hour_ = std::chrono::duration_cast<std::chrono::hours>(now.time_since_epoch()).count();
  std::map<std::string, Hours> before = std::exchange(uplinks_, {});
  for (const UplinkStatus& uplink : uplinks) {
    Hours& hours = uplinks_[uplink.name];
    if (auto known = before.find(uplink.name); known != before.end()) hours = known->second;
    Hour& hour = hours[static_cast<size_t>(hour_) % kHours];
    if (hour.number != hour_) hour = {.number = hour_};
    ++hour.looks;
    hour.worked += working.contains(uplink.name);
  }
}

double Availability::of(const std::string& uplink) const {
  auto known = uplinks_.find(uplink);
  uint64_t looks = 0, worked = 0;
  if (known != uplinks_.end()) {
    for (const Hour& hour : known->second) {
      if (hour.number < 0 || hour.number + static_cast<int64_t>(kHours) <= hour_) continue;
      looks += hour.looks;
      worked += hour.worked;
    }
  }
  return looks > 0 ? static_cast<double>(worked) / static_cast<double>(looks)
                   : std::numeric_limits<double>::quiet_NaN();
}

void Availability::addTo(std::vector<UplinkStatus>& uplinks) const {
  for (UplinkStatus& uplink : uplinks) uplink.availability = of(uplink.name);
}

}  // namespace braid
