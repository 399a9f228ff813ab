// The sections `identity` and `device`.
//
// `nat` and `forwards`: what the host does for packets of other hosts.

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "gateway/config/config_sections.h"
#include "gateway/dtls/identity.h"
#include "inet/ip.h"

namespace braid {

namespace {

constexpr size_t kMaxAddresses = 16;
constexpr size_t kMaxRoutes = 1024;
constexpr size_t kMaxNetworks = 1024;
constexpr size_t kMaxEtherTypes = 32;

std::string completePath(const std::string& text, const std::string& configPath,
                         const LoadOptions& options) {
  namespace fs = std::filesystem;
  if (fs::path(text).is_absolute()) return text;
  std::error_code ignored;
  fs::path credential = fs::path(options.credentials) / text;
  if (!options.credentials.empty() && fs::exists(credential, ignored)) return credential.string();
  return (fs::path(configPath).parent_path() / text).string();
}

// Reports the errors of loadIdentity() at the key that they are about. Returns the gateway's own
// pin.
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

// A name, or a number such as "0x88b5". Numbers below 0x600 are lengths in IEEE 802.3, not types.
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

}  // namespace

std::optional<Pin> readIdentity(const ConfigValue& value, const LoadOptions& options,
                                Config& config, ConfigDiagnostics& out) {
  if (!value) return std::nullopt;
  ConfigSection section(value, keysOf("identity"), out);
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
  if (!value) return;
  ConfigSection section(value, keysOf("device"), out);
  DeviceConfig& device = config.device;
  readSettings("device", section, config, out);
  assign(device.name, readInterface(section.find("name"), out));
  assign(device.bridge, readInterface(section.find("bridge"), out));
  for (const ConfigValue& item : readSequence(section.find("addresses"), kMaxAddresses, out)) {
    if (auto address = readInterfaceAddress(item, out))
      addOnce(device.addresses, *address, item, out);
  }
  for (const ConfigValue& item : readSequence(section.find("routes"), kMaxRoutes, out)) {
    if (auto route = readPrefix(item, out)) addOnce(device.routes, *route, item, out);
  }
  for (const ConfigValue& item : readSequence(section.find("networks"), kMaxNetworks, out)) {
    if (auto network = readPrefix(item, out)) addOnce(device.networks, *network, item, out);
  }
  readEtherTypes(section.find("ethertypes"), config.tunnel.bridge, out);
}

namespace {

/// There is a limit because each new connection is compared with all forwards.
constexpr size_t kMaxForwards = 256;
constexpr size_t kMaxForwardSources = 64;
constexpr std::string_view kNatChoices[] = {"on", "ipv4", "off"};
constexpr std::string_view kForwardProtocols[] = {"tcp", "udp"};
constexpr std::string_view kForwardSources[] = {"client", "own"};

// An address, optionally with a port.
void readTarget(const ConfigValue& value, PortForward& forward, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return;
  if (std::optional<Address> address = Address::parse(*text)) {
    forward.to = *address;
  } else if (std::optional<Endpoint> endpoint = Endpoint::parse(*text);
             endpoint && endpoint->port != 0) {
    forward.to = endpoint->address;
    forward.toPort = endpoint->port;
  } else {
    out.add(value, "'" + *text + "' is no address, nor one with a port",
            "write ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT, such as 192.168.1.10:80");
  }
}

PortForward readForward(const ConfigValue& value, ConfigDiagnostics& out) {
  PortForward forward;
  ConfigSection section(value, keysOf("forwards"), out);
  forward.protocol = ip::kTcp;
  if (std::optional<std::string> protocol =
          readChoice(section.find("protocol"), kForwardProtocols, out))
    forward.protocol = *protocol == "udp" ? ip::kUdp : ip::kTcp;
  ConfigValue port = section.require("port",
                                     "name the port of this gateway, such as 8080 or 5000-5010"),
              to = section.require(
                  "to", "name the host behind a peer, such as 192.168.1.10 or 192.168.1.10:80");
  if (std::optional<PortRange> range = readPortRange(port, out)) {
    forward.firstPort = range->first;
    forward.lastPort = range->last;
  }
  readTarget(to, forward, out);
  if (forward.toPort && forward.firstPort != forward.lastPort)
    out.add(to, "has a port, and several lead to it", "leave the port out: each stays as it is");
  for (const ConfigValue& item : readSequence(section.find("from"), kMaxForwardSources, out)) {
    std::optional<Prefix> from = readPrefix(item, out);
    if (!from) continue;
    if (forward.to.bits() && from->address.family != forward.to.family)
      out.add(item, "is of another address family than 'to'", "name networks of the same family");
    forward.from.push_back(*from);
  }
  if (std::optional<std::string> source = readChoice(section.find("source"), kForwardSources, out))
    forward.ownSource = *source == "own";
  return forward;
}

bool sharePorts(const PortForward& a, const PortForward& b) {
  return a.protocol == b.protocol && a.to.family == b.to.family && a.firstPort <= b.lastPort &&
         b.firstPort <= a.lastPort;
}

bool isBehindPeer(const Config& config, const Address& address) {
  return std::any_of(config.peers.begin(), config.peers.end(), [&](const PeerConfig& peer) {
    const std::vector<Prefix>& prefixes = peer.options.prefixes;
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](const Prefix& p) { return p.contains(address); });
  });
}

// Whether a forward would take over a port that the gateway itself listens on.
bool takesListen(const Config& config, const PortForward& forward) {
  return forward.protocol == ip::kUdp &&
         std::any_of(config.listen.begin(), config.listen.end(), [&](const Endpoint& own) {
           return own.address.family == forward.to.family && own.port >= forward.firstPort &&
                  own.port <= forward.lastPort;
         });
}

}  // namespace

void readRouter(const ConfigSection& root, Config& config, ConfigDiagnostics& out) {
  RouterConfig& router = config.router;
  if (std::optional<std::string> nat = readChoice(root.find("nat"), kNatChoices, out)) {
    router.natV4 = *nat != "off";
    router.natV6 = *nat == "on";
  }
  for (const ConfigValue& item : readSequence(root.find("forwards"), kMaxForwards, out)) {
    if (item) router.forwards.push_back(readForward(item, out));
  }
}

void checkRouter(const ConfigSection& root, const Config& config, ConfigDiagnostics& out) {
  const RouterConfig& router = config.router;
  if (config.tunnel.mode == TunnelOptions::Mode::kTap) {
    for (const char* key : {"nat", "forwards"}) {
      bool used = key[0] == 'n' ? router.natV4 : !router.forwards.empty();
      if (used)
        out.add(root.find(key),
                "a TAP device bridges frames, and no addresses are translated there",
                "set device.mode to tun, or remove it");
    }
    return;
  }
  ConfigValue list = root.find("forwards");
  for (size_t i = 0; i < router.forwards.size(); ++i) {
    const PortForward& forward = router.forwards[i];
    ConfigValue port = childOf(itemOf(list, i), "port");
    if (!isBehindPeer(config, forward.to))
      out.add(childOf(itemOf(list, i), "to"), forward.to.toString() + " is in no peer's prefixes",
              "name a host behind a peer, or add its network to that peer's prefixes");
    if (takesListen(config, forward))
      out.add(port, "takes the port that this gateway listens on",
              "choose another port, or another 'listen'");
    for (size_t j = 0; j < i; ++j) {
      const PortForward& earlier = router.forwards[j];
      if (!sharePorts(earlier, forward) || !earlier.from.empty()) continue;
      out.add(port, "is taken by forwards[" + std::to_string(j) + "] already",
              "choose another port, or put the one with 'from' first");
      break;
    }
  }
}

}  // namespace braid
