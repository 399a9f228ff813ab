#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "simnet/link/link_options.h"

namespace braid {

/// An unusable configuration or request. The text names the link and the key.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The place of one end of a link.
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
      1500;  ///< MTU of both devices, 68 to 9216 bytes; not the black hole `mtu` of LinkOptions
};

struct EmulatorConfig {
  uint64_t seed = 1;
  std::string control;  ///< path of the control socket; empty = none
  bool realtime =
      true;  ///< use real-time priority, so that delays are exact while the CPUs are busy
  std::vector<LinkConfig> links;
};

/// Parses the text of a configuration file (tools/linkemu/README.md). Unknown keys, wrong types and
/// values out of range throw ConfigError.
EmulatorConfig parseConfig(const std::string& text);

/// Changes the options that a PARAMS object names and leaves the rest. On ConfigError nothing is
/// changed. `where` is the prefix of the message, for example "link wifi, ab".
void applyParams(const nlohmann::json& params, LinkOptions& options, const std::string& where);

}  // namespace braid
