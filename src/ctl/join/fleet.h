#pragma once

// Checks a folder of configurations against each other, for mistakes that no gateway can see in its
// own file.

#include <optional>
#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/config/config_node.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// Something wrong between the files, or in one of them.
struct FleetFinding {
  enum class Severity : uint8_t {
    kError,    ///< something will not work
    kWarning,  ///< it works differently than may be expected, or could not be checked
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
  ConfigNode tree;         ///< places in the file
  std::optional<Pin> pin;  ///< pin of the certificate; nullopt: the certificate is not here

  /// Makes a finding about this key ("peers[0].pin") of the file.
  FleetFinding finding(FleetFinding::Severity severity, const std::string& key, std::string problem,
                       std::string remedy) const;
};

struct Fleet {
  std::vector<FleetMember> members;    ///< files without mistakes of their own, sorted by path
  std::vector<FleetFinding> findings;  ///< about files with mistakes, and about certificates
  size_t files = 0;
};

/// Reads every NAME.yaml of the folder and the folders below it, except fragments in `peers.d`.
/// Uses a certificate that is where the file says, or beside the file. Needs no keys. Throws
/// std::runtime_error when the folder cannot be read, or has no configuration.
Fleet readFleet(const std::string& folder);

/// What does not fit together, in the order of files and lines.
std::vector<FleetFinding> checkFleet(const Fleet& fleet);

}  // namespace braid
