#include "gateway/config/config.h"

#include <filesystem>
#include <functional>

#include "gateway/config/config_fragments.h"
#include "gateway/config/config_sections.h"

namespace braid {
namespace {

constexpr size_t kLongestSocketPath = 107;  // sockaddr_un::sun_path without its terminating zero

void readControl(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  config.control.socket =
      "/run/braid/" + std::filesystem::path(config.path).stem().string() + ".sock";
  if (!value) return;
  ConfigSection section(value, keysOf("control"), out);
  ConfigValue socket = section.find("socket");
  if (std::optional<std::string> path = readText(socket, out)) {
    if (path->empty() || path->front() != '/' || path->back() == '/' ||
        path->size() > kLongestSocketPath) {
      out.add(socket, "is no complete path of at most 107 bytes",
              "write one such as /run/braid/edge.sock");
    }
    config.control.socket = *path;
  }
  if (std::optional<std::string> group = readName(section.find("group"), out))
    config.control.group = *group;
}

void readState(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  config.state = std::string(kStateFolder) + "/" +
                 std::filesystem::path(config.path).stem().string() + ".state";
  std::optional<std::string> path = readText(value, out);
  if (!path) return;
  if (path->empty() || path->front() != '/' || path->back() == '/')
    out.add(value, "is no complete path", "write one such as /var/lib/braid/edge.state");
  config.state = *path;
}

ConfigErrors oneError(const std::string& path, unsigned line, unsigned column, std::string problem,
                      std::string remedy) {
  return {ConfigError{path, line, column, "", std::move(problem), std::move(remedy)}};
}

void readPeersFolder(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  config.peersFolder = std::string(kStateFolder) + "/" +
                       std::filesystem::path(config.path).stem().string() + ".peers.d";
  std::optional<std::string> path = readText(value, out);
  if (!path) return;
  if (path->empty() || path->front() != '/')
    out.add(value, "is no complete path", "write one such as /var/lib/braid/edge.peers.d");
  config.peersFolder = *path;
}

using FragmentSource =
    std::function<ConfigFragments(const std::string& folder, ConfigDiagnostics& out)>;

ConfigResult parseWith(std::string_view text, const std::string& path, const LoadOptions& options,
                       const FragmentSource& source, ConfigNode* kept = nullptr) {
  if (text.size() > kMaxConfigBytes)
    return oneError(path, 0, 0, "is larger than 1 MiB", "shorten the file");
  std::variant<ConfigNode, YamlError> tree = parseYaml(text);
  if (auto* e = std::get_if<YamlError>(&tree))
    return oneError(path, e->line, e->column, e->problem, e->remedy);

  ConfigDiagnostics out(path);
  Config config;
  config.path = path;
  ConfigSection root({&std::get<ConfigNode>(tree), "", nullptr}, keysOf(""), out);
  std::optional<Pin> ownPin =
      readIdentity(root.require("identity",
                                "add 'identity: {key: NAME.key, certificate: NAME.crt}'; "
                                "'braidctl keygen NAME' makes the two files"),
                   options, config, out);
  readSettings("", root, config, out);
  readDevice(root.find("device"), config, out);
  for (const char* plain : {"offloads", "log"}) {
    if (ConfigValue value = root.find(plain))
      readSettings(plain, ConfigSection(value, keysOf(plain), out), config, out);
  }
  readUplinks(root.find("uplinks"), config, out);
  readListen(root.find("listen"), config, out);
  readPeersFolder(root.find("peers-folder"), config, out);
  ConfigFragments fragments = source(config.peersFolder, out);
  ConfigPlaces places = readPeers(
      root.require("peers", "add the gateways at the other end with name, pin and prefixes"),
      fragments, config, out);
  readControl(root.find("control"), config, out);
  readTunnel(root.find("tunnel"), config, out);
  readStreams(root.find("streams"), config, out);
  readRouter(root, config, out);
  readRecovery(root.find("recovery"), config, out);
  readState(root.find("state"), config, out);
  // A comparison of half-read sections would report consequences of mistakes that were reported
  // already.
  if (out.empty()) checkTogether(root, places, config, ownPin, out);
  if (!out.empty()) return out.take();
  ConfigDiagnostics warnings(path);
  warnTogether(root, places, config, warnings);
  config.warnings = warnings.take();
  if (kept) *kept = std::get<ConfigNode>(std::move(tree));
  return config;
}

}  // namespace

std::string ConfigError::toString() const {
  std::string text = file;
  if (line > 0) text += ":" + std::to_string(line) + ":" + std::to_string(column);
  if (!key.empty()) text += ": " + key;
  return text + ": " + problem + "; " + remedy;
}

ConfigResult loadConfig(const std::string& path, const LoadOptions& options, ConfigNode* tree) {
  std::variant<std::string, ConfigError> text = readConfigText(path, kMaxConfigBytes, true);
  if (auto* error = std::get_if<ConfigError>(&text)) return ConfigErrors{std::move(*error)};
  return parseWith(std::get<std::string>(text), path, options, readFragments, tree);
}

ConfigResult parseConfig(std::string_view text, const std::string& path, const LoadOptions& options,
                         std::span<const ConfigText> fragments) {
  return parseWith(text, path, options, [&](const std::string&, ConfigDiagnostics& out) {
    ConfigFragments parsed;
    for (const ConfigText& each : fragments) parseFragment(each.file, each.text, parsed, out);
    return parsed;
  });
}

}  // namespace braid
