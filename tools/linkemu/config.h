#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "simnet/link/link_options.h"

namespace braid {

/// A configuration or a request that cannot be used; the text names the link and the key.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Where one end of a link is made.
struct EndConfig {
  std::string netns;   ///< name below /run/netns; empty = the namespace linkemu runs in
  std::string device;  ///< interface name, 1 to 15 characters
};

struct LinkConfig {
  std::string name;  ///< unique
  EndConfig a;
  EndConfig b;
  LinkOptions ab;  ///< from a to b
  LinkOptions ba;  ///< from b to a
  size_t deviceMtu =
      1500;  ///< of both devices, 68 to 9216 bytes; not to be mixed up with the black hole `mtu`
};

struct EmulatorConfig {
  uint64_t seed = 1;
  std::string control;   ///< path of the control socket; empty = none
  bool realtime = true;  ///< run before all normal processes, so that delays hold while the CPUs are busy
  std::vector<LinkConfig> links;
};

/// Parses the text of a configuration file (tools/linkemu/README.md). Unknown keys, wrong types and values
/// out of range throw ConfigError.
EmulatorConfig parseConfig(const std::string& text);

/// Changes the options that a PARAMS object names and leaves the rest. On ConfigError nothing is changed.
/// `where` goes before the message, for example "link wifi, ab".
void applyParams(const nlohmann::json& params, LinkOptions& options, const std::string& where);

}  // namespace braid
