#pragma once

// A folder of configurations, verified against each other: what no gateway can see in its own file.

#include <optional>
#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/config/config_node.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// Something that is wrong between the files, or in one of them.
struct FleetFinding {
  enum class Severity : uint8_t {
    kError,    ///< something will not work
    kWarning,  ///< it works otherwise than somebody may think, or could not be verified
  };
  Severity severity = Severity::kError;
  ConfigError what;
  /// "error: edge.yaml:12:9: peers[0].pin: what is wrong; remedy"
  std::string toString() const;
};

/// One gateway of the folder.
struct FleetMember {
  std::string file;  ///< its path
  Config config;
  ConfigNode tree;         ///< where everything stands in the file
  std::optional<Pin> pin;  ///< of the certificate; nullopt: it is not here

  /// A finding about this key ("peers[0].pin") of the file.
  FleetFinding finding(FleetFinding::Severity severity, const std::string& key, std::string problem,
                       std::string remedy) const;
};

struct Fleet {
  std::vector<FleetMember> members;    ///< files without mistakes of their own, by their paths
  std::vector<FleetFinding> findings;  ///< about files that have some, and certificates
  size_t files = 0;
};

/// Reads every NAME.yaml of the folder and the folders below, but for fragments in `peers.d`. A certificate counts when it
/// is where the file says, or beside the file. Keys are not needed. Throws std::runtime_error when the folder cannot be
/// read, or has no configuration.
Fleet readFleet(const std::string& folder);

/// What does not fit together, in the order of files and lines.
std::vector<FleetFinding> checkFleet(const Fleet& fleet);

}  // namespace braid
