#pragma once

// In how much of the last 24 hours each uplink could carry something. Bounded: a few numbers for
// each hour and uplink.

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/control/gateway_status.h"

namespace braid {

class Availability {
 public:
  static constexpr size_t kHours = 24;

  /// Adds a sample: `working` are the uplinks over which a path works now. Call it at even
  /// intervals. Uplinks that are not in `uplinks` are forgotten.
  void look(const std::vector<UplinkStatus>& uplinks, const std::set<std::string>& working,
            Time now);
  /// The share of samples of the last 24 hours in which a path over the uplink worked; NaN: there
  /// is none.
  double of(const std::string& uplink) const;
  void addTo(std::vector<UplinkStatus>& uplinks) const;

 private:
  struct Hour {
    int64_t number = -1;  ///< hours of the clock; -1: none
    uint32_t looks = 0, worked = 0;
  };
  using Hours = std::array<Hour, kHours>;

  std::map<std::string, Hours> uplinks_;
  int64_t hour_ = 0;  ///< of the last sample
};

}  // namespace braid
