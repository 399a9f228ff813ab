#pragma once

// `peers-folder`: peers that stand apart from the main file, one YAML file each, so that a program can add one and take
// it away without touching what a person wrote. A fragment NAME.yaml holds the keys of one entry of `peers`, and
// `routes`: networks behind that peer which are routed into the device.

#include <deque>
#include <string>
#include <variant>

#include "gateway/config/config.h"
#include "gateway/config/config_node.h"
#include "gateway/config/config_reader.h"

namespace braid {

/// Largest fragment in bytes.
inline constexpr size_t kMaxFragmentBytes = 64 << 10;

struct ConfigFragment {
  std::string file;
  ConfigNode tree;
};
/// Values point into them: they stay where they are.
using ConfigFragments = std::deque<ConfigFragment>;

/// The bytes of a regular file, or why there are none. Not those of a symbolic link when `follow` is false.
std::variant<std::string, ConfigError> readConfigText(const std::string& path, size_t most, bool follow);
/// Adds what a text is, or notes why it is none.
void parseFragment(const std::string& file, std::string_view text, ConfigFragments& to,
                   ConfigDiagnostics& out);
/// Reads the files *.yaml of the folder in the order of their names, but for those that begin with a dot. A folder that is
/// not there has none. Symbolic links are refused: the daemon may write there, and root reads it.
ConfigFragments readFragments(const std::string& folder, ConfigDiagnostics& out);

}  // namespace braid
