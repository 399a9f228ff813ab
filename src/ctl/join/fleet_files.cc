// Reads a folder of configurations.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "ctl/join/fleet.h"
#include "gateway/dtls/identity.h"

namespace braid {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 10'000;

std::vector<std::string> configurationsBelow(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error),
      end;
  if (error) throw std::runtime_error("cannot read the folder " + folder + ": " + error.message());
  for (; at != end; at.increment(error)) {
    if (error)
      throw std::runtime_error("cannot read the folder " + folder + ": " + error.message());
    if (at->path().filename() == "peers.d") at.disable_recursion_pending();
    if (at->path().extension() == ".yaml" && at->is_regular_file(error))
      out.push_back(at->path().string());
    if (out.size() > kMostFiles)
      throw std::runtime_error(folder + " has more than " + std::to_string(kMostFiles) +
                               " configurations");
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string contentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

FleetFinding findingOf(ConfigError what) {
  return {FleetFinding::Severity::kError, std::move(what)};
}

// The certificate is where the file says, or beside the file: a copy of a file from another machine
// names a path on that machine.
std::optional<Pin> pinOf(const FleetMember& member, std::vector<FleetFinding>& findings) {
  fs::path named = member.config.identity.certificate,
           beside = fs::path(member.file).parent_path() / named.filename();
  for (const fs::path& path : {beside, named}) {
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    try {
      return readPin(path.string());
    } catch (const std::runtime_error& e) {
      findings.push_back(member.finding(FleetFinding::Severity::kError, "identity.certificate",
                                        e.what(), "put the gateway's certificate there"));
      return std::nullopt;
    }
  }
  findings.push_back(
      member.finding(FleetFinding::Severity::kWarning, "identity.certificate",
                     "is not here, so that the pins of this gateway cannot be verified",
                     "put " + named.filename().string() + " beside the file; the key stays away"));
  return std::nullopt;
}

// The value of "peers[0].pin", or the innermost existing part of the path to it.
const ConfigNode& nodeAt(const ConfigNode& root, const std::string& key) {
  const ConfigNode* node = &root;
  for (size_t at = 0; at < key.size();) {
    size_t end = std::min(key.find_first_of(".[", at), key.size());
    std::string name = key.substr(at, end - at);
    const ConfigNode* next = nullptr;
    for (size_t i = 0; i < node->keys.size(); ++i)
      if (node->keys[i].text == name) next = &node->items[i];
    if (!next) return *node;
    node = next;
    at = end;
    while (at < key.size() && key[at] == '[') {
      size_t index = std::stoul(key.substr(at + 1));
      if (node->kind != ConfigNode::Kind::kSequence || index >= node->items.size()) return *node;
      node = &node->items[index];
      at = key.find(']', at) + 1;
    }
    if (at < key.size() && key[at] == '.') ++at;
  }
  return *node;
}

}  // namespace

std::string FleetFinding::toString() const {
  return (severity == Severity::kError ? "error: " : "warning: ") + what.toString();
}

FleetFinding FleetMember::finding(FleetFinding::Severity severity, const std::string& key,
                                  std::string problem, std::string remedy) const {
  const ConfigNode& node = nodeAt(tree, key);
  return {severity, {file, node.line, node.column, key, std::move(problem), std::move(remedy)}};
}

Fleet readFleet(const std::string& folder) {
  Fleet fleet;
  LoadOptions options;
  options.checkIdentity = false;
  for (const std::string& path : configurationsBelow(folder)) {
    ++fleet.files;
    ConfigResult result = loadConfig(path, options);
    if (auto* errors = std::get_if<ConfigErrors>(&result)) {
      for (ConfigError& e : *errors) fleet.findings.push_back(findingOf(std::move(e)));
      continue;
    }
    FleetMember member{path, std::get<Config>(std::move(result)), {}, {}};
    std::variant<ConfigNode, YamlError> tree = parseYaml(contentOf(path));
    if (auto* node = std::get_if<ConfigNode>(&tree)) member.tree = std::move(*node);
    member.pin = pinOf(member, fleet.findings);
    fleet.members.push_back(std::move(member));
  }
  if (fleet.files == 0)
    throw std::runtime_error("there is no NAME.yaml in " + folder +
                             "; name the folder with the gateways' configurations");
  return fleet;
}

}  // namespace braid
