#pragma once

#include <optional>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/control/gateway_status.h"
#include "gateway/log.h"
#include "gateway/meter_book.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Keeps the counts of metered uplinks: over restarts, and by the calendar.
class MeterKeeper {
 public:
  /// Both must outlive this.
  MeterKeeper(Tunnel& tunnel, LogLimiter& log) : tunnel_(tunnel), log_(log) {}

  /// Throws std::runtime_error when the counts that a configuration asks for cannot be kept.
  void setUp(const Config& config);
  /// Begins new periods, writes the counts down, and sets the deadline. Call at start, after each change of
  /// the uplinks' configuration and at deadline().
  void keep(const std::vector<UplinkConfig>& uplinks, Time now);
  /// Writes the counts down for the last time.
  void end(Time now);
  Time deadline() const { return deadline_; }

  /// Adds caps and counts to the specs of metered uplinks; keep() must have been called for them.
  void addTo(std::vector<UplinkSpec>& specs, const std::vector<UplinkConfig>& uplinks) const;
  void addTo(std::vector<UplinkStatus>& uplinks) const;

 private:
  void save(Time now);

  Tunnel& tunnel_;
  LogLimiter& log_;
  std::optional<MeterBook> book_;  ///< from the first metered uplink on
  Time deadline_ = kNever;
};

}  // namespace braid
