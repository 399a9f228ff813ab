// `identity`, `device` and `offloads`.

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "gateway/config/config_sections.h"
#include "gateway/dtls/identity.h"

namespace braid {
namespace {

constexpr size_t kMaxAddresses = 16;
constexpr size_t kMaxRoutes = 1024;
constexpr size_t kMaxNetworks = 1024;
constexpr size_t kMaxEtherTypes = 32;
constexpr uint64_t kMostFloods = 1'000'000;
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

// A name, or "0x88b5". Lengths of IEEE 802.3 are below 0x600.
std::optional<uint16_t> etherTypeOf(std::string_view text) {
  constexpr uint16_t kSmallest = 0x600;
  if (text == "ipv4") return Frame::kIpV4;
  if (text == "ipv6") return Frame::kIpV6;
  if (text == "arp") return Frame::kArp;
  if (!text.starts_with("0x")) return std::nullopt;
  uint16_t number = 0;
  auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), number, 16);
  bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && number >= kSmallest ? std::optional(number) : std::nullopt;
}

void readEtherTypes(const ConfigValue& value, BridgeOptions& bridge, ConfigDiagnostics& out) {
  if (!value) return;
  bridge.etherTypes.clear();
  for (const ConfigValue& item : readSequence(value, kMaxEtherTypes, out)) {
    std::optional<std::string> text = readText(item, out);
    if (!text) continue;
    bridge.allTypes |= *text == "any";
    bridge.spanningTree |= *text == "stp";
    if (*text == "any" || *text == "stp") continue;
    if (std::optional<uint16_t> type = etherTypeOf(*text)) {
      bridge.etherTypes.push_back(*type);
    } else {
      out.add(item, "'" + *text + "' is no EtherType",
              "use ipv4, arp, ipv6, stp, any or a number from 0x0600 to 0xffff");
    }
  }
}

// What only a TAP device has.
void readBridging(const ConfigSection& section, BridgeOptions& bridge, ConfigDiagnostics& out) {
  readEtherTypes(section.find("ethertypes"), bridge, out);
  assign(bridge.macAge, readDuration(section.find("mac-age"), 1s, 24h, out));
  assign(bridge.floodLimit, readNumber(section.find("flood-limit"), 1, kMostFloods, out));
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
  ConfigSection section(value,
                        {"name", "mode", "addresses", "routes", "networks", "mtu", "bridge", "ethertypes",
                         "mac-age", "flood-limit"},
                        out);
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
  for (const ConfigValue& item : readSequence(section.find("networks"), kMaxNetworks, out)) {
    if (auto network = readPrefix(item, out)) addOnce(device.networks, *network, item, out);
  }
  if (auto mtu = readAutoOrNumber(section.find("mtu"), kSmallestMtu, kLargestMtu, out)) device.mtu = *mtu;
  if (auto bridge = readInterface(section.find("bridge"), out)) device.bridge = *bridge;
  readBridging(section, config.tunnel.bridge, out);
}

void readOffloads(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value, {"device", "sockets"}, out);
  readSwitch(config.offloads.device, section.find("device"), out);
  readSwitch(config.offloads.sockets, section.find("sockets"), out);
}

}  // namespace braid
