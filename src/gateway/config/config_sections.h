#pragma once

// The sections of the configuration file, one function each. Each function fills `config` and
// reports mistakes to `out`.

#include "gateway/config/config.h"
#include "gateway/config/config_fragments.h"
#include "gateway/config/config_reader.h"
#include "gateway/config/settings.h"

namespace braid {

/// Returns the gateway's own pin if key and certificate were checked and are valid.
std::optional<Pin> readIdentity(const ConfigValue& value, const LoadOptions& options,
                                Config& config, ConfigDiagnostics& out);
void readDevice(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
void readUplinks(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// The keys of an uplink that say how it is to be used.
void readPreference(const ConfigSection& section, UplinkConfig& uplink, ConfigDiagnostics& out);
void readListen(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// The places of the peers, and of the device's routes that fragments add after those of the main
/// file. Both are in the order of the configuration.
struct ConfigPlaces {
  std::vector<ConfigValue> peers, addedRoutes;
};
/// Reads the peers of the main file (`value`) and of the fragments. Call after readDevice(),
/// because fragments add routes.
ConfigPlaces readPeers(const ConfigValue& value, const ConfigFragments& fragments, Config& config,
                       ConfigDiagnostics& out);
void readTunnel(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// `tunnel.ack-shim`.
void readAckShim(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// `streams`; call after readTunnel().
void readStreams(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// The keys `nat` and `forwards` of the root.
void readRouter(const ConfigSection& root, Config& config, ConfigDiagnostics& out);
/// Checks `forwarding`, `nat` and `forwards` against the rest of a file whose sections are valid.
void checkRouter(const ConfigSection& root, const Config& config, ConfigDiagnostics& out);
void readRecovery(const ConfigValue& value, Config& config, ConfigDiagnostics& out);

/// Checks the sections against each other; `root` gives the places. Call when each section alone is
/// valid.
void checkTogether(const ConfigSection& root, const ConfigPlaces& places, const Config& config,
                   const std::optional<Pin>& ownPin, ConfigDiagnostics& out);
/// Warns about what is valid but rarely intended.
void warnTogether(const ConfigSection& root, const ConfigPlaces& places, const Config& config,
                  ConfigDiagnostics& out);

}  // namespace braid
