#include "gateway/config/config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "gateway/config/config_sections.h"
#include "host/unique_fd.h"

namespace braid {
namespace {

constexpr size_t kLongestSocketPath = 107;  // sockaddr_un::sun_path without its terminating zero

void readControl(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  config.control.socket = "/run/braid/" + std::filesystem::path(config.path).stem().string() + ".sock";
  if (!value) return;
  ConfigSection section(value, {"socket", "group"}, out);
  ConfigValue socket = section.find("socket");
  if (std::optional<std::string> path = readText(socket, out)) {
    if (path->empty() || path->front() != '/' || path->back() == '/' || path->size() > kLongestSocketPath) {
      out.add(socket, "is no complete path of at most 107 bytes", "write one such as /run/braid/edge.sock");
    }
    config.control.socket = *path;
  }
  if (std::optional<std::string> group = readName(section.find("group"), out)) config.control.group = *group;
}

void readState(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  config.state = "/var/lib/braid/" + std::filesystem::path(config.path).stem().string() + ".state";
  std::optional<std::string> path = readText(value, out);
  if (!path) return;
  if (path->empty() || path->front() != '/' || path->back() == '/')
    out.add(value, "is no complete path", "write one such as /var/lib/braid/edge.state");
  config.state = *path;
}

void readLog(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  static constexpr std::string_view kLevels[] = {"trace", "debug", "info", "warning", "error"};
  if (!value) return;
  ConfigSection section(value, {"level"}, out);
  if (std::optional<std::string> level = readChoice(section.find("level"), kLevels, out))
    config.logLevel = *level;
}

ConfigErrors oneError(const std::string& path, unsigned line, unsigned column, std::string problem,
                      std::string remedy) {
  return {ConfigError{path, line, column, "", std::move(problem), std::move(remedy)}};
}

// The file's bytes, or why there are none.
std::variant<std::string, ConfigErrors> readFile(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    return oneError(path, 0, 0, std::string("cannot be opened: ") + std::strerror(errno),
                    "check the path and the permissions");
  }
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return oneError(path, 0, 0, "is no regular file", "name the configuration file itself");
  }
  std::string text;
  char part[16384];
  ssize_t got = 0;
  do {
    got = read(file.get(), part, sizeof part);
    if (got > 0) text.append(part, static_cast<size_t>(got));
  } while (text.size() <= kMaxConfigBytes && (got > 0 || (got < 0 && errno == EINTR)));
  if (got < 0)
    return oneError(path, 0, 0, std::string("cannot be read: ") + std::strerror(errno), "check the disk");
  return text;
}

}  // namespace

std::string ConfigError::toString() const {
  std::string text = file;
  if (line > 0) text += ":" + std::to_string(line) + ":" + std::to_string(column);
  if (!key.empty()) text += ": " + key;
  return text + ": " + problem + "; " + remedy;
}

unsigned workersOf(const Config& config) {
  return config.workers ? config.workers : workersFor(std::thread::hardware_concurrency());
}

ConfigResult loadConfig(const std::string& path, const LoadOptions& options) {
  std::variant<std::string, ConfigErrors> text = readFile(path);
  if (auto* errors = std::get_if<ConfigErrors>(&text)) return std::move(*errors);
  return parseConfig(std::get<std::string>(text), path, options);
}

ConfigResult parseConfig(std::string_view text, const std::string& path, const LoadOptions& options) {
  if (text.size() > kMaxConfigBytes) return oneError(path, 0, 0, "is larger than 1 MiB", "shorten the file");
  std::variant<ConfigNode, YamlError> tree = parseYaml(text);
  if (auto* e = std::get_if<YamlError>(&tree))
    return oneError(path, e->line, e->column, e->problem, e->remedy);

  ConfigDiagnostics out(path);
  Config config;
  config.path = path;
  ConfigSection root({&std::get<ConfigNode>(tree), ""},
                     {"identity", "device", "offloads", "workers", "uplinks", "listen", "peers", "control",
                      "recovery", "tunnel", "streams", "state", "log"},
                     out);
  std::optional<Pin> ownPin =
      readIdentity(root.require("identity",
                                "add 'identity: {key: NAME.key, certificate: NAME.crt}'; "
                                "'braidctl keygen NAME' makes the two files"),
                   options, config, out);
  readDevice(root.find("device"), config, out);
  readOffloads(root.find("offloads"), config, out);
  assign(config.workers, readAutoOrNumber(root.find("workers"), 1, kMostWorkers, out));
  readUplinks(root.find("uplinks"), config, out);
  readListen(root.find("listen"), config, out);
  readPeers(root.require("peers", "add the gateways at the other end with name, pin and prefixes"), config,
            out);
  readControl(root.find("control"), config, out);
  readTunnel(root.find("tunnel"), config, out);
  readStreams(root.find("streams"), config, out);
  readRecovery(root.find("recovery"), config, out);
  readState(root.find("state"), config, out);
  readLog(root.find("log"), config, out);
  // Cross-checks on half-read parts would report consequences of what is reported already.
  if (out.empty()) checkTogether(root, config, ownPin, out);
  if (!out.empty()) return out.take();
  return config;
}

}  // namespace braid
