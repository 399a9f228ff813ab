#include "gateway/config/config_fragments.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "host/system.h"

namespace braid {
namespace {

ConfigError aboutFile(const std::string& path, std::string problem, std::string remedy) {
  return {path, 0, 0, "", std::move(problem), std::move(remedy)};
}

// The complete paths of the fragments, sorted.
std::vector<std::string> filesOf(const std::string& folder, ConfigDiagnostics& out) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!name.starts_with('.') && name.ends_with(".yaml")) files.push_back(it->path().string());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    out.add(aboutFile(folder, "cannot be read: " + error.message(),
                      "it is the folder of 'peers-folder': use root, or check the permissions"));
  std::ranges::sort(files);
  if (files.size() > kMaxPeers) {
    out.add(aboutFile(folder, "has " + std::to_string(files.size()) + " files",
                      "keep to " + std::to_string(kMaxPeers)));
    files.clear();
  }
  return files;
}

}  // namespace

std::variant<std::string, ConfigError> readConfigText(const std::string& path, size_t most,
                                                      bool follow) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW)));
  if (!file && errno == ELOOP && !follow)
    return aboutFile(path, "is a symbolic link", "put the file itself there");
  if (!file)
    return aboutFile(path, std::string("cannot be opened: ") + std::strerror(errno),
                     "check the path and the permissions");
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return aboutFile(path, "is no regular file", "name the configuration file itself");
  std::string text;
  char part[16384];
  ssize_t got = 0;
  do {
    got = read(file.get(), part, sizeof part);
    if (got > 0) text.append(part, static_cast<size_t>(got));
  } while (text.size() <= most && (got > 0 || (got < 0 && errno == EINTR)));
  if (got < 0)
    return aboutFile(path, std::string("cannot be read: ") + std::strerror(errno),
                     "check the disk");
  return text;
}

void parseFragment(const std::string& file, std::string_view text, ConfigFragments& to,
                   ConfigDiagnostics& out) {
  if (text.size() > kMaxFragmentBytes)
    return out.add(aboutFile(file, "is larger than 64 KiB", "shorten the file"));
  auto tree = parseYaml(text);
  if (auto* e = std::get_if<YamlError>(&tree)) {
    out.add({file, e->line, e->column, "", e->problem, e->remedy});
  } else {
    to.push_back({file, std::move(std::get<ConfigNode>(tree))});
  }
}

std::vector<ConfigText> readFragments(const std::string& folder, ConfigDiagnostics& out) {
  std::vector<ConfigText> fragments;
  if (folder.empty()) return fragments;
  for (const std::string& file : filesOf(folder, out)) {
    auto text = readConfigText(file, kMaxFragmentBytes, false);
    if (auto* error = std::get_if<ConfigError>(&text)) {
      out.add(std::move(*error));
    } else {
      fragments.push_back({file, std::move(std::get<std::string>(text))});
    }
  }
  return fragments;
}

}  // namespace braid
