#pragma once

// `peers-folder`: peers that are configured outside the main file, one YAML file each, so that a
// program can add and remove one without touching what a person wrote. A fragment NAME.yaml holds
// the keys of one entry of `peers`, and `routes`: networks behind that peer which are routed into
// the device.

#include <deque>
#include <string>
#include <variant>
#include <vector>

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
/// A deque, because ConfigValues point into the fragments: they must not move.
using ConfigFragments = std::deque<ConfigFragment>;

/// Reads a regular file of at most `most` bytes. Returns its text, or why it cannot be read.
/// Refuses a symbolic link when `follow` is false.
std::variant<std::string, ConfigError> readConfigText(const std::string& path, size_t most,
                                                      bool follow);
/// Parses a fragment's text and adds it to `to`, or reports its mistakes.
void parseFragment(const std::string& file, std::string_view text, ConfigFragments& to,
                   ConfigDiagnostics& out);
/// Reads the files *.yaml of the folder in the order of their names, except those that begin with a
/// dot. A missing folder has none. Symbolic links are refused, because the daemon may write to the
/// folder and root reads from it.
std::vector<ConfigText> readFragments(const std::string& folder, ConfigDiagnostics& out);

}  // namespace braid
