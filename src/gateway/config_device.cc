// `identity` and `device`.

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "gateway/config_sections.h"

namespace braid {
namespace {

constexpr size_t kMaxAddresses = 16;
constexpr size_t kMaxRoutes = 1024;
constexpr uint64_t kSmallestMtu = 576;  // RFC 791: what every IPv4 host takes
constexpr uint64_t kLargestMtu = 9216;  // jumbo frames

std::string completePath(const std::string& text, const std::string& configPath, const LoadOptions& options) {
  namespace fs = std::filesystem;
  if (fs::path(text).is_absolute()) return text;
  std::error_code ignored;
  fs::path credential = fs::path(options.credentials) / text;
  if (!options.credentials.empty() && fs::exists(credential, ignored)) return credential.string();
  return (fs::path(configPath).parent_path() / text).string();
}

// False (and reported) when the file is not there or, for a private one, others may read it.
void checkFile(const ConfigValue& at, const std::string& path, bool secret, ConfigDiagnostics& out) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    out.add(at, "cannot find " + path + ": " + std::strerror(errno),
            "'braidctl keygen NAME' makes key and certificate");
  } else if (!S_ISREG(info.st_mode)) {
    out.add(at, path + " is no regular file", "name the file itself");
  } else if (secret && (info.st_mode & 077) != 0) {
    out.add(at, path + " can be read by others than its owner", "run 'chmod 600 " + path + "'");
  }
}

template <typename T>
void addOnce(std::vector<T>& list, const T& item, const ConfigValue& at, ConfigDiagnostics& out) {
  if (std::find(list.begin(), list.end(), item) == list.end()) {
    list.push_back(item);
  } else {
    out.add(at, item.toString() + " is given twice", "remove one of them");
  }
}

}  // namespace

void readIdentity(const ConfigValue& value, const LoadOptions& options, Config& config,
                  ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value, {"key", "certificate"}, out);
  const std::string remedy = "name the file; 'braidctl keygen NAME' makes key and certificate";
  ConfigValue key = section.require("key", remedy);
  ConfigValue certificate = section.require("certificate", remedy);
  auto read = [&](const ConfigValue& at, bool secret) -> std::string {
    std::optional<std::string> text = readText(at, out);
    if (!text) return {};
    if (text->empty() || text->find('\0') != std::string::npos) {
      out.add(at, "is no file name", remedy);
      return {};
    }
    std::string path = completePath(*text, config.path, options);
    if (options.checkIdentity) checkFile(at, path, secret, out);
    return path;
  };
  config.identity.key = read(key, true);
  config.identity.certificate = read(certificate, false);
}

void readDevice(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  static constexpr std::string_view kModes[] = {"tun", "tap"};
  if (!value) return;
  ConfigSection section(value, {"name", "mode", "addresses", "routes", "mtu", "bridge"}, out);
  DeviceConfig& device = config.device;
  if (auto name = readInterface(section.find("name"), out)) device.name = *name;
  if (auto mode = readChoice(section.find("mode"), kModes, out)) {
    config.tunnel.mode = *mode == "tap" ? TunnelOptions::Mode::kTap : TunnelOptions::Mode::kTun;
  }
  for (const ConfigValue& item : readSequence(section.find("addresses"), kMaxAddresses, out)) {
    if (auto address = readInterfaceAddress(item, out)) addOnce(device.addresses, *address, item, out);
  }
  for (const ConfigValue& item : readSequence(section.find("routes"), kMaxRoutes, out)) {
    if (auto route = readPrefix(item, out)) addOnce(device.routes, *route, item, out);
  }
  if (auto mtu = readAutoOrNumber(section.find("mtu"), kSmallestMtu, kLargestMtu, out)) device.mtu = *mtu;
  if (auto bridge = readInterface(section.find("bridge"), out)) device.bridge = *bridge;
}

}  // namespace braid
