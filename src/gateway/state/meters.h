#pragma once

// Keeps the byte counts of the uplinks over restarts. The tunnel counts the bytes; MeterStore has
// the file.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/control/gateway_status.h"
#include "gateway/log/log.h"
#include "gateway/state/meter_store.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Keeps the counts of the uplinks over restarts, and begins new periods by the calendar.
class MeterTracker {
 public:
  /// `tunnel` and `log` must outlive this.
  MeterTracker(Tunnel& tunnel, LogLimiter& log) : tunnel_(tunnel), log_(log) {}

  /// Throws std::runtime_error when the counts of metered uplinks cannot be kept. Without such
  /// uplinks it only warns.
  void setUp(const Config& config);
  /// Begins new periods, saves the counts, and sets the deadline. Call at the start, after each
  /// change of the uplinks' configuration, and at deadline().
  void keep(const std::vector<UplinkConfig>& uplinks, Time now);
  /// Saves the counts for the last time.
  void end(Time now);
  Time deadline() const { return deadline_; }

  /// Adds caps and counts to the specs of metered uplinks; keep() must have been called for them.
  void addTo(std::vector<UplinkSpec>& specs, const std::vector<UplinkConfig>& uplinks) const;
  void addTo(std::vector<UplinkStatus>& uplinks) const;

 private:
  uint64_t uncounted(const UplinkBytes& now) const;
  void count();
  void save(Time now);

  Tunnel& tunnel_;
  LogLimiter& log_;
  std::optional<MeterStore> book_;           ///< created for the first uplink
  std::map<std::string, uint64_t> counted_;  ///< of Tunnel::carried(), what the book has
  Time deadline_ = kNever;
};

}  // namespace braid
