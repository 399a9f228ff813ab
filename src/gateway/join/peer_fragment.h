#pragma once

// Writes a fragment of `peers-folder` (config_fragments.h).

#include <optional>
#include <string>
#include <vector>

#include "inet/prefix.h"
#include "tunnel/wire/secrets.h"

namespace braid {

struct PeerFragment {
  std::string name;
  Pin pin{};
  std::vector<Prefix> prefixes;
  std::vector<Prefix> routes;  ///< into the device
  std::string origin;          ///< a sentence for who opens the file
};

/// The path of that peer's fragment.
std::string fragmentPath(const std::string& folder, const std::string& name);
std::string formatFragment(const PeerFragment& peer);
/// The text of a fragment that is there; nullopt: there is none.
std::optional<std::string> readFragmentText(const std::string& path);
/// Writes the file anew, as writeDurableFile() does, with its folder when that is missing (mode 0750). Gives what went
/// wrong; empty: nothing.
std::string writeFragment(const std::string& path, const std::string& text);
/// Gives what went wrong; empty: the file is not there, if it ever was.
std::string removeFragment(const std::string& path);

}  // namespace braid
