// `identity`, `device` and `offloads`.

#include <algorithm>
#include <filesystem>

#include "gateway/config/config_sections.h"
#include "gateway/dtls/identity.h"

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

// What loadIdentity() has to say, at the key that it is about. Gives the gateway's own pin.
std::optional<Pin> checkIdentity(const ConfigValue& key, const ConfigValue& certificate,
                                 const IdentityConfig& paths, const std::string& credentials,
                                 ConfigDiagnostics& out) {
  auto report = [&](const ConfigValue& at, std::string text) {
    size_t end = std::min(text.find("; "), text.size());
    out.add(at, text.substr(0, end), end < text.size() ? text.substr(end + 2) : "check the file");
  };
  bool certificateRead = true;
  try {
    readPin(paths.certificate);
  } catch (const IdentityError& error) {
    certificateRead = false;
    report(certificate, error.what());
  }
  try {
    return loadIdentity(paths.key, paths.certificate, credentials).pin;
  } catch (const IdentityError& error) {
    std::string text = error.what();
    bool aboutKey = !text.starts_with(paths.certificate + ":");
    if (aboutKey || certificateRead) report(aboutKey ? key : certificate, text);
  }
  return std::nullopt;
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

void readSwitch(bool& to, const ConfigValue& value, ConfigDiagnostics& out) {
  if (auto choice = readChoice(value, kSwitch, out)) to = *choice == "on";
}

std::optional<Pin> readIdentity(const ConfigValue& value, const LoadOptions& options, Config& config,
                                ConfigDiagnostics& out) {
  if (!value) return std::nullopt;
  ConfigSection section(value, {"key", "certificate"}, out);
  const std::string remedy = "name the file; 'braidctl keygen NAME' makes key and certificate";
  ConfigValue key = section.require("key", remedy);
  ConfigValue certificate = section.require("certificate", remedy);
  auto read = [&](const ConfigValue& at) -> std::string {
    std::optional<std::string> text = readText(at, out);
    if (!text) return {};
    if (!text->empty() && text->find('\0') == std::string::npos)
      return completePath(*text, config.path, options);
    out.add(at, "is no file name", remedy);
    return {};
  };
  config.identity = {read(key), read(certificate)};
  if (!options.checkIdentity || config.identity.key.empty() || config.identity.certificate.empty())
    return std::nullopt;
  return checkIdentity(key, certificate, config.identity, options.credentials, out);
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

void readOffloads(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value, {"device", "sockets"}, out);
  readSwitch(config.offloads.device, section.find("device"), out);
  readSwitch(config.offloads.sockets, section.find("sockets"), out);
}

}  // namespace braid
