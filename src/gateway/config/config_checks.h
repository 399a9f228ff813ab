#pragma once

// What the table of settings (settings.h) cannot say about one key alone: checks between several
// keys, and values that follow from other keys. A check gets a section or a list without mistakes,
// completes what was read from it, and reports mistakes to `out`.

#include <optional>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/config/config_fragments.h"
#include "gateway/config/config_reader.h"

namespace braid {

void checkUplink(const ConfigValue& item, UplinkConfig& uplink, ConfigDiagnostics& out);
void checkRateLimit(const ConfigValue& section, UplinkConfig& uplink, ConfigDiagnostics& out);
/// Reads `reset-day`, which depends on `period`.
void checkMeter(const ConfigValue& section, UplinkConfig::Meter& meter, ConfigDiagnostics& out);
void checkUplinks(const ConfigValue& list, Config& config, ConfigDiagnostics& out);
void checkListen(const ConfigValue& list, Config& config, ConfigDiagnostics& out);

void checkTunnel(const ConfigValue& section, Config& config, ConfigDiagnostics& out);
void checkShimExclusion(const ConfigValue& item, ShimRule& rule, ConfigDiagnostics& out);
void checkStreams(const ConfigValue& section, Config& config, ConfigDiagnostics& out);
void checkStreamMatches(const ConfigValue& list, Config& config, ConfigDiagnostics& out);
void checkStreamMatch(const ConfigValue& item, StreamRule& rule, ConfigDiagnostics& out);
void checkStreamAcceptance(const ConfigValue& item, StreamRule& rule, ConfigDiagnostics& out);
void checkStreamExclusion(const ConfigValue& item, StreamRule& rule, ConfigDiagnostics& out);
void checkForward(const ConfigValue& item, PortForward& forward, ConfigDiagnostics& out);
void checkRecovery(const ConfigValue& section, Config& config, ConfigDiagnostics& out);
void checkRecoveryClass(const ConfigValue& item, RecoveryClass& flows, ConfigDiagnostics& out);
void checkRecoveryClasses(const ConfigValue& list, Config& config, ConfigDiagnostics& out);

/// The places of the root, of the peers, and of the device's routes that fragments add after those
/// of the main file, in the order of the configuration.
struct ConfigPlaces {
  ConfigValue root;
  std::vector<ConfigValue> peers, addedRoutes;
};
/// Reads the peers of the main file (`list`) and of the fragments, and checks them against each
/// other. Call after the device is read, because fragments add routes.
void readPeers(const ConfigValue& list, const ConfigFragments& fragments, Config& config,
               ConfigPlaces& places, ConfigDiagnostics& out);

/// Checks the sections against each other. Call when each section alone is valid.
void checkTogether(const ConfigPlaces& places, const Config& config,
                   const std::optional<Pin>& ownPin, ConfigDiagnostics& out);
/// Warns about what is valid but rarely intended.
void warnTogether(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out);

}  // namespace braid
