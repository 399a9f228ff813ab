#include "gateway/join/peer_fragment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "gateway/config/config_fragments.h"
#include "host/linux/durable_file.h"
#include "tunnel/wire/pin.h"

namespace braid {

namespace {

std::string yamlList(const std::vector<Prefix>& prefixes) {
  std::string text;
  for (const Prefix& prefix : prefixes) text += (text.empty() ? "\"" : ", \"") + prefix.toString() + "\"";
  return "[" + text + "]";
}

}  // namespace

std::string fragmentPath(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / (name + ".yaml")).string();
}

std::string formatFragment(const PeerFragment& peer) {
  std::string text = "# " + peer.origin + "\nname: \"" + peer.name + "\"\npin: " + formatPin(peer.pin) +
                     "\nprefixes: " + yamlList(peer.prefixes) + "\n";
  if (!peer.routes.empty()) text += "routes: " + yamlList(peer.routes) + "\n";
  return text;
}

std::optional<std::string> readFragmentText(const std::string& path) {
  auto text = readConfigText(path, kMaxFragmentBytes, false);
  if (auto* found = std::get_if<std::string>(&text)) return std::move(*found);
  return std::nullopt;
}

// What was acknowledged to a gateway that joins must outlive a power cut. The name that a file has before its own begins
// with a dot: nobody reads it.
std::string writeFragment(const std::string& path, const std::string& text) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (::mkdir(folder.c_str(), 0750) == 0) {
    if (std::string problem = syncFolder(folder.parent_path().string()); !problem.empty()) return problem;
  } else if (errno != EEXIST) {
    return "cannot make the folder " + folder.string() + ": " + std::strerror(errno);
  }
  return writeDurableFile(path, text, 0600);
}

std::string removeFragment(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return syncFolder(std::filesystem::path(path).parent_path().string());
  return errno == ENOENT ? "" : "cannot remove " + path + ": " + std::strerror(errno);
}

}  // namespace braid
