#pragma once

// The parts of the configuration file, one function each. Each function fills `config` and notes mistakes in `out`.

#include "gateway/config/config.h"
#include "gateway/config/config_fragments.h"
#include "gateway/config/config_reader.h"

namespace braid {

/// What a value may be that switches something.
inline constexpr std::string_view kSwitch[] = {"on", "off"};
void readSwitch(bool& to, const ConfigValue& value, ConfigDiagnostics& out);

/// Gives the gateway's own pin, when key and certificate were checked and are right.
std::optional<Pin> readIdentity(const ConfigValue& value, const LoadOptions& options, Config& config,
                                ConfigDiagnostics& out);
void readDevice(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
void readOffloads(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
void readUplinks(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// The keys of an uplink that say how it is to be used.
void readPreference(const ConfigSection& section, UplinkConfig& uplink, ConfigDiagnostics& out);
void readListen(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// Where each of the peers stands, and those of the device's routes that fragments bring behind the others; both in the
/// order of the configuration.
struct ConfigPlaces {
  std::vector<ConfigValue> peers, addedRoutes;
};
/// Those of the main file (`value`) and of the fragments, which bring routes. After `device`.
ConfigPlaces readPeers(const ConfigValue& value, const ConfigFragments& fragments, Config& config,
                       ConfigDiagnostics& out);
void readTunnel(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// `tunnel.ack-shim`.
void readAckShim(const ConfigValue& value, TunnelOptions& tunnel, ConfigDiagnostics& out);
/// `streams`; after `tunnel`.
void readStreams(const ConfigValue& value, Config& config, ConfigDiagnostics& out);
/// `forwarding`, `nat` and `forwards` of the root.
void readRouter(const ConfigSection& root, Config& config, ConfigDiagnostics& out);
/// What of them must fit the rest of a file whose parts are right.
void checkRouter(const ConfigSection& root, const Config& config, ConfigDiagnostics& out);
void readRecovery(const ConfigValue& value, Config& config, ConfigDiagnostics& out);

/// What must hold between the parts of a file; `root` gives the places. Call when each part alone is right.
void checkTogether(const ConfigSection& root, const ConfigPlaces& places, const Config& config,
                   const std::optional<Pin>& ownPin, ConfigDiagnostics& out);
/// What is right and rarely meant.
void warnTogether(const ConfigSection& root, const ConfigPlaces& places, const Config& config,
                  ConfigDiagnostics& out);

}  // namespace braid
