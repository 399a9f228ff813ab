#include "gateway/join/peer_fragment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "gateway/config/config_fragments.h"
#include "host/unique_fd.h"
#include "tunnel/wire/pin.h"

namespace braid {

namespace {

std::string yamlList(const std::vector<Prefix>& prefixes) {
  std::string text;
  for (const Prefix& prefix : prefixes) text += (text.empty() ? "\"" : ", \"") + prefix.toString() + "\"";
  return "[" + text + "]";
}

bool writeAll(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
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

// What was acknowledged to a gateway that joins must outlive a power cut, so the file is on the disk before it has its
// name. A name that begins with a dot is read by nobody.
std::string writeFragment(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  std::string folder = fs::path(path).parent_path().string();
  std::string fresh = folder + "/." + fs::path(path).filename().string() + ".new";
  if (::mkdir(folder.c_str(), 0750) != 0 && errno != EEXIST)
    return "cannot make the folder " + folder + ": " + std::strerror(errno);
  UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (file && writeAll(file.get(), text) && ::fsync(file.get()) == 0 &&
      ::rename(fresh.c_str(), path.c_str()) == 0)
    return {};
  std::string problem = "cannot write " + path + ": " + std::strerror(errno);
  ::unlink(fresh.c_str());
  return problem;
}

void removeFragment(const std::string& path) {
  ::unlink(path.c_str());
}

}  // namespace braid
