#include "gateway/config/config.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "gateway/config/config_checks.h"
#include "gateway/config/config_fragments.h"
#include "gateway/config/settings.h"
#include "gateway/dtls/identity.h"

namespace braid {
namespace {

std::string completePath(const std::string& text, const std::string& configPath,
                         const LoadOptions& options) {
  namespace fs = std::filesystem;
  if (fs::path(text).is_absolute()) return text;
  std::error_code ignored;
  fs::path credential = fs::path(options.credentials) / text;
  if (!options.credentials.empty() && fs::exists(credential, ignored)) return credential.string();
  return (fs::path(configPath).parent_path() / text).string();
}

// Reports what an IdentityError says.
void report(const ConfigValue& at, const std::string& text, ConfigDiagnostics& out) {
  size_t end = std::min(text.find("; "), text.size());
  out.add(at, text.substr(0, end), end < text.size() ? text.substr(end + 2) : "check the file");
}

// Reports the errors of loadIdentity() at the key that they are about. Returns the gateway's own
// pin.
std::optional<Pin> loadedPin(const ConfigValue& key, const ConfigValue& certificate,
                             const IdentityConfig& paths, const std::string& credentials,
                             ConfigDiagnostics& out) {
  bool certificateRead = true;
  try {
    readPin(paths.certificate);
  } catch (const IdentityError& error) {
    certificateRead = false;
    report(certificate, error.what(), out);
  }
  try {
    return loadIdentity(paths.key, paths.certificate, credentials).pin;
  } catch (const IdentityError& error) {
    std::string text = error.what();
    bool aboutKey = !text.starts_with(paths.certificate + ":");
    if (aboutKey || certificateRead) report(aboutKey ? key : certificate, text, out);
  }
  return std::nullopt;
}

// Completes the paths of `identity`. Returns the gateway's own pin if it is known already, or if
// key and certificate were to be checked and are valid.
std::optional<Pin> completeIdentity(const ConfigValue& section, const LoadOptions& options,
                                    Config& config, ConfigDiagnostics& out) {
  IdentityConfig& identity = config.identity;
  for (std::string* path : {&identity.key, &identity.certificate}) {
    if (!path->empty()) *path = completePath(*path, config.path, options);
  }
  if (options.ownPin) return options.ownPin;
  if (!options.checkIdentity || identity.key.empty() || identity.certificate.empty())
    return std::nullopt;
  return loadedPin(childOf(section, "key"), childOf(section, "certificate"), identity,
                   options.credentials, out);
}

// The peer with the same pin and the same file of a pre-shared key; nullptr: there is none.
const PeerConfig* findPeer(const std::vector<PeerConfig>* peers, const PeerConfig& wanted) {
  if (!peers) return nullptr;
  auto found = std::ranges::find_if(*peers, [&](const PeerConfig& peer) {
    return peer.options.pin == wanted.options.pin && peer.psk == wanted.psk;
  });
  return found == peers->end() ? nullptr : &*found;
}

// Completes the paths of the peers' pre-shared keys, and reads these if they were to be checked.
void completePresharedKeys(const ConfigPlaces& places, const LoadOptions& options, Config& config,
                           ConfigDiagnostics& out) {
  for (size_t i = 0; i < config.peers.size(); ++i) {
    PeerConfig& peer = config.peers[i];
    if (peer.psk.empty()) continue;
    peer.psk = completePath(peer.psk, config.path, options);
    if (const PeerConfig* known = findPeer(options.peersInUse, peer)) {
      peer.options.psk = known->options.psk;
      continue;
    }
    if (!options.checkIdentity) continue;
    try {
      peer.options.psk = loadPresharedKey(peer.psk, options.credentials);
    } catch (const IdentityError& error) {
      report(childOf(places.peers[i], "psk"), error.what(), out);
    }
  }
}

ConfigErrors oneError(const std::string& path, unsigned line, unsigned column, std::string problem,
                      std::string remedy) {
  return {ConfigError{path, line, column, "", std::move(problem), std::move(remedy)}};
}

using FragmentSource =
    std::function<std::vector<ConfigText>(const std::string& folder, ConfigDiagnostics& out)>;

ConfigResult parseWith(std::string_view text, const std::string& path, const LoadOptions& options,
                       const FragmentSource& source, ConfigNode* kept = nullptr) {
  if (text.size() > kMaxConfigBytes)
    return oneError(path, 0, 0, "is larger than 1 MiB", "shorten the file");
  std::variant<ConfigNode, YamlError> tree = parseYaml(text);
  if (auto* e = std::get_if<YamlError>(&tree))
    return oneError(path, e->line, e->column, e->problem, e->remedy);

  ConfigDiagnostics out(path);
  ConfigPlaces places{{&std::get<ConfigNode>(tree), "", nullptr}, {}, {}};
  Config config;
  config.path = path;
  std::string name = std::filesystem::path(path).stem().string();
  config.control.socket = "/run/braid/" + name + ".sock";
  config.state = std::string(kStateFolder) + "/" + name + ".state";
  config.peersFolder = std::string(kStateFolder) + "/" + name + ".peers.d";
  readSection(places.root, &config, out);
  std::optional<Pin> ownPin =
      completeIdentity(childOf(places.root, "identity"), options, config, out);
  config.texts = {std::string(text), source(config.peersFolder, out)};
  ConfigFragments fragments;
  for (const ConfigText& each : config.texts.fragments)
    parseFragment(each.file, each.text, fragments, out);
  readPeers(childOf(places.root, "peers"), fragments, config, places, out);
  completePresharedKeys(places, options, config, out);
  // A comparison of half-read sections would report consequences of mistakes that were reported
  // already.
  if (out.empty()) checkTogether(places, config, ownPin, out);
  if (!out.empty()) return out.take();
  ConfigDiagnostics warnings(path);
  warnTogether(places, config, warnings);
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
  return parseWith(text, path, options, [&](const std::string&, ConfigDiagnostics&) {
    return std::vector<ConfigText>(fragments.begin(), fragments.end());
  });
}

namespace {

// Without lines that are empty or only a comment: `setup` and `join` remove one from their file
// once the daemon has started with it.
std::string withoutComments(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin != line.npos && line[begin] != '#') out.append(line).append("\n");
  }
  return out;
}

ConfigTexts withoutComments(ConfigTexts texts) {
  texts.main = withoutComments(std::string_view(texts.main));
  for (ConfigText& each : texts.fragments) each.text = withoutComments(std::string_view(each.text));
  return texts;
}

}  // namespace

ConfigResult withFragment(const Config& before, const std::string& file,
                          const std::optional<std::string>& text, const LoadOptions& options) {
  std::vector<ConfigText> fragments = before.texts.fragments;
  auto at = std::ranges::lower_bound(fragments, file, {}, &ConfigText::file);
  if (at != fragments.end() && at->file == file) at = fragments.erase(at);
  if (text) fragments.insert(at, {file, *text});
  LoadOptions inUse = options;
  inUse.peersInUse = &before.peers;
  return parseConfig(before.texts.main, before.path, inUse, fragments);
}

std::string unappliedEdits(const Config& config, const LoadOptions& options) {
  const ConfigResult disk = loadConfig(config.path, options);
  if (const auto* errors = std::get_if<ConfigErrors>(&disk)) return errors->front().toString();
  const auto& found = std::get<Config>(disk);
  for (const PeerConfig& peer : found.peers) {
    const PeerConfig* known = findPeer(&config.peers, peer);
    if (known && known->options.psk != peer.options.psk)
      return peer.psk + " was changed since it was read";
  }
  if (withoutComments(found.texts) == withoutComments(config.texts)) return {};
  return config.path + " or " + config.peersFolder + " was edited since it was read";
}

}  // namespace braid
