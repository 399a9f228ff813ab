// The readers of config_reader.h for addresses, networks and endpoints, and those of
// config_values.h.

#include "gateway/config/config_values.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "gateway/config/settings.h"
#include "gateway/config/units.h"
#include "inet/ip.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {

constexpr const char* kEndpointRemedy =
    "write ADDRESS:PORT, such as 192.0.2.1:4433 or [2001:db8::1]:4433";

// Says what is wrong with an endpoint that Endpoint::parse() refused; nullopt: nothing more than
// that it is malformed.
std::optional<std::pair<std::string, std::string>> explainEndpoint(const std::string& text) {
  size_t colon = text.rfind(':');
  if (Address::parse(text))
    return {{"has no port",
             "add one: " +
                 (text.find(':') == std::string::npos ? text + ":4433" : "[" + text + "]:4433")}};
  if (colon == std::string::npos)
    return {{"has no port", "add one, such as " + text.substr(0, 80) + ":4433"}};
  std::string host = text.substr(0, colon), port = text.substr(colon + 1);
  std::optional<Address> address = Address::parse(host);
  if (address && address->isV6()) {
    return {{"is an IPv6 address without brackets", "write [" + host + "]:" + port}};
  }
  std::optional<uint64_t> number = parseNumber(port);
  if (!number || *number == 0 || *number > 65535) {
    return {{"has no valid port", "use a port from 1 to 65535"}};
  }
  return std::nullopt;
}

/// A number of 32 bits, as C writes it: decimal, or hexadecimal after 0x.
std::optional<uint32_t> parseBits(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  unsigned long bits = std::strtoul(text.c_str(), &end, 0);
  bool isNumber = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
  if (!isNumber || *end != '\0' || errno != 0 || bits > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(bits);
}

constexpr size_t kAnyLength = SIZE_MAX;
constexpr size_t kMaxEndpoints = 16;
constexpr size_t kMaxEtherTypes = 32;
constexpr size_t kLongestSocketPath = 107;  // sockaddr_un::sun_path without its terminating zero

/// A number that may also be given by a name.
struct NamedNumber {
  std::string_view name;
  uint64_t number = 0;
};
constexpr NamedNumber kProtocols[] = {{"tcp", ip::kTcp}, {"udp", ip::kUdp}};
// RFC 2474 section 4.2.2, RFC 2597 section 6, RFC 3246, RFC 5865, RFC 8622.
constexpr NamedNumber kDscps[] = {
    {"cs0", 0},   {"cs1", 8},   {"cs2", 16},  {"cs3", 24},         {"cs4", 32},  {"cs5", 40},
    {"cs6", 48},  {"cs7", 56},  {"af11", 10}, {"af12", 12},        {"af13", 14}, {"af21", 18},
    {"af22", 20}, {"af23", 22}, {"af31", 26}, {"af32", 28},        {"af33", 30}, {"af41", 34},
    {"af42", 36}, {"af43", 38}, {"ef", 46},   {"voice-admit", 44}, {"le", 1}};

// The number of one of `names`, or a number from 0 to `high`.
std::optional<uint64_t> readNamedNumber(const ConfigValue& value,
                                        std::span<const NamedNumber> names, uint64_t high,
                                        ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::string known;
  for (const NamedNumber& named : names) {
    if (named.name == *text) return named.number;
    known.append(known.empty() ? "" : ", ").append(named.name);
  }
  std::optional<uint64_t> number = parseNumber(*text);
  if (number && *number <= high) return number;
  out.add(
      value,
      inQuotes(*text) + " is neither a known name nor a number from 0 to " + std::to_string(high),
      "names are: " + known);
  return std::nullopt;
}

// `problem`: what a value is that is no complete path. `folder`: it may end with a slash.
std::optional<std::string> readPath(const ConfigValue& value, bool folder, size_t longest,
                                    const char* problem, const char* example,
                                    ConfigDiagnostics& out) {
  std::optional<std::string> path = readText(value, out);
  if (path && (path->empty() || path->front() != '/' || (!folder && path->back() == '/') ||
               path->size() > longest))
    out.add(value, problem, std::string("write one such as ") + example);
  return path;
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

}  // namespace

// RFC 1123 section 2.1: labels of 1 to 63 letters, digits and dashes, at most 253 characters in
// all. Underscores are allowed, too. A last label of digits only is refused: it would be a mistyped
// IPv4 address.
bool isHostName(const std::string& text) {
  if (text.empty() || text.size() > 253) return false;
  size_t start = 0;
  while (true) {
    size_t end = std::min(text.find('.', start), text.size());
    std::string label = text.substr(start, end - start);
    bool good = !label.empty() && label.size() <= 63 && label.front() != '-' &&
                label.back() != '-' && std::all_of(label.begin(), label.end(), [](unsigned char c) {
                  return (c < 0x80 && std::isalnum(c)) || c == '-' || c == '_';
                });
    if (!good) return false;
    if (end == text.size())
      return !std::all_of(label.begin(), label.end(),
                          [](unsigned char c) { return std::isdigit(c); });
    start = end + 1;
  }
}

std::optional<Address> readAddress(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::optional<Address> address = Address::parse(*text);
  if (!address)
    out.add(value, inQuotes(*text) + " is no IP address",
            "write one such as 192.0.2.1 or 2001:db8::1");
  return address;
}

std::optional<InterfaceAddress> readInterfaceAddress(const ConfigValue& value,
                                                     ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  size_t slash = text->find('/');
  std::optional<Address> address = Address::parse(text->substr(0, slash));
  std::optional<uint64_t> length = slash == std::string::npos
                                       ? std::nullopt
                                       : parseNumber(std::string_view(*text).substr(slash + 1));
  if (!address) {
    out.add(value, inQuotes(*text) + " is no address with a prefix length",
            "write one such as 10.99.0.1/30 or fd99::1/64");
  } else if (!length || *length == 0 || *length > address->bits()) {
    out.add(value,
            inQuotes(*text) + " has no prefix length from 1 to " + std::to_string(address->bits()),
            "write one such as " + address->toString() + (address->isV4() ? "/30" : "/64"));
  } else {
    return InterfaceAddress{*address, static_cast<unsigned>(*length)};
  }
  return std::nullopt;
}

std::optional<Prefix> readPrefix(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::optional<Prefix> prefix = Prefix::parse(*text);
  if (!prefix) {
    out.add(value, inQuotes(*text) + " is no network",
            "write one such as 10.1.0.0/16 or fd00:1::/32");
    return std::nullopt;
  }
  std::optional<Address> written = Address::parse(text->substr(0, text->find('/')));
  if (written && *written != prefix->address) {
    out.add(value, inQuotes(*text) + " has host bits set",
            "write " + prefix->toString() + " for the network or " + written->toString() + "/" +
                std::to_string(written->bits()) + " for the one host");
    return std::nullopt;
  }
  return prefix;
}

std::optional<Endpoint> readEndpoint(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::optional<Endpoint> endpoint = Endpoint::parse(*text);
  if (endpoint && endpoint->port != 0) return endpoint;
  if (auto reason = explainEndpoint(*text)) {
    out.add(value, inQuotes(*text) + " " + reason->first, reason->second);
  } else {
    out.add(value, inQuotes(*text) + " is no address and port", kEndpointRemedy);
  }
  return std::nullopt;
}

std::optional<RemoteEndpoint> readRemoteEndpoint(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::optional<Endpoint> endpoint = Endpoint::parse(*text);
  if (endpoint && endpoint->port != 0) return RemoteEndpoint{endpoint, {}};
  if (auto reason = explainEndpoint(*text)) {
    out.add(value, inQuotes(*text) + " " + reason->first, reason->second);
    return std::nullopt;
  }
  size_t colon = text->rfind(':');
  std::string host = text->substr(0, colon);
  if (isHostName(host)) {
    return RemoteEndpoint{std::nullopt,
                          {host, static_cast<uint16_t>(*parseNumber(text->substr(colon + 1)))}};
  }
  out.add(value, inQuotes(host) + " is neither an address nor a host name", kEndpointRemedy);
  return std::nullopt;
}

std::string RemoteEndpoint::toString() const {
  return numeric ? numeric->toString() : host.host + ":" + std::to_string(host.port);
}

std::optional<std::string> readPeersFolder(const ConfigValue& value, ConfigDiagnostics& out) {
  return readPath(value, true, kAnyLength, "is no complete path", "/var/lib/braid/edge.peers.d",
                  out);
}

std::optional<std::string> readStatePath(const ConfigValue& value, ConfigDiagnostics& out) {
  return readPath(value, false, kAnyLength, "is no complete path", "/var/lib/braid/edge.state",
                  out);
}

std::optional<std::string> readSocketPath(const ConfigValue& value, ConfigDiagnostics& out) {
  return readPath(value, false, kLongestSocketPath, "is no complete path of at most 107 bytes",
                  "/run/braid/edge.sock", out);
}

std::optional<std::string> readTracePath(const ConfigValue& value, ConfigDiagnostics& out) {
  if (value && value.node->kind == ConfigNode::Kind::kScalar && value.node->text.empty()) return "";
  return readPath(value, false, kAnyLength, "is no complete path of a file",
                  "/run/braid/edge.trace", out);
}

namespace {
std::optional<std::string> fileNameOf(const ConfigValue& value, const char* remedy,
                                      ConfigDiagnostics& out) {
  std::optional<std::string> name = readText(value, out);
  if (!name || (!name->empty() && name->find('\0') == std::string::npos)) return name;
  out.add(value, "is no file name", remedy);
  return std::nullopt;
}
}  // namespace

std::optional<std::string> readFileName(const ConfigValue& value, ConfigDiagnostics& out) {
  return fileNameOf(value, kIdentityRemedy, out);
}

std::optional<std::string> readPskName(const ConfigValue& value, ConfigDiagnostics& out) {
  return fileNameOf(value, "name the file with the base64 of 32 random bytes", out);
}

std::optional<std::vector<Address>> readAddressPair(const ConfigValue& value,
                                                    ConfigDiagnostics& out) {
  if (!value) return std::nullopt;
  std::vector<ConfigValue> items{value};
  if (value.node->kind != ConfigNode::Kind::kScalar) items = readSequence(value, 2, out);
  std::vector<Address> addresses;
  for (const ConfigValue& item : items) {
    std::optional<Address> address = readAddress(item, out);
    if (!address) continue;
    if (!addresses.empty() && addresses[0].family == address->family) {
      out.add(item, "is a second address of the same family",
              "give one IPv4 and one IPv6 address at most");
      continue;
    }
    addresses.push_back(*address);
  }
  return addresses;
}

void readUplinkGateway(const ConfigValue& value, UplinkConfig& uplink, ConfigDiagnostics& out) {
  bool word = value.node->kind == ConfigNode::Kind::kScalar;
  if (word && value.node->text == "auto") return;
  if (word && value.node->text == "none") {
    uplink.gateway = UplinkConfig::Gateway::kNone;
    return;
  }
  uplink.gateway = UplinkConfig::Gateway::kAddress;
  assign(uplink.gateways, readAddressPair(value, out));
}

std::optional<uint64_t> readCap(const ConfigValue& value, ConfigDiagnostics& out) {
  return readByteCount(value, kSmallestCap, kLargestCap, out);
}

std::optional<Pin> readPeerPin(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::optional<Pin> pin = parsePin(*text);
  if (!pin) {
    out.add(value, "is no pin",
            "write 'sha256:' and 44 base64 characters as 'braidctl pin FILE.crt' prints them");
  }
  return pin;
}

void readPeerEndpoints(const ConfigValue& value, PeerConfig& peer, ConfigDiagnostics& out) {
  for (const ConfigValue& item : readSequence(value, kMaxEndpoints, out)) {
    std::optional<RemoteEndpoint> remote = readRemoteEndpoint(item, out);
    if (!remote) continue;
    if (remote->numeric) {
      peer.options.endpoints.push_back(*remote->numeric);
    } else {
      peer.hosts.push_back(remote->host);
    }
  }
}

std::optional<Duration> readKeepalive(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<Duration> time = readDuration(value, 0s, 60s, out);
  if (time && *time != 0s && *time < 100ms)
    out.add(value, "is below 100ms", "use 0 for none, or 100ms to 60s");
  return time;
}

void readEtherTypes(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  BridgeOptions& bridge = config.tunnel.bridge;
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
      out.add(item, inQuotes(*text) + " is no EtherType",
              "use ipv4, arp, ipv6, stp, any or a number from 0x0600 to 0xffff");
    }
  }
}

std::optional<uint32_t> readMarkMask(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::optional<uint32_t> mask = parseBits(*text);
  if (mask && *mask != 0 && *mask >> std::countr_zero(*mask) == 0xff) return mask;
  out.add(value, inQuotes(*text) + " is no mask of eight adjacent bits",
          "use one such as 0xff or 0xff0000");
  return std::nullopt;
}

std::optional<MarkMatch> readMark(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  size_t slash = text->find('/');
  std::optional<uint32_t> mark = parseBits(text->substr(0, slash)), mask = UINT32_MAX;
  if (slash != std::string::npos) mask = parseBits(text->substr(slash + 1));
  if (!mark || !mask) {
    out.add(value, inQuotes(*text) + " is no packet mark",
            "write MARK or MARK/MASK as 'ip rule' does, such as 0xca6c or 0x80000/0xff0000");
  } else if ((*mark & ~*mask) != 0) {
    out.add(value, inQuotes(*text) + " has bits outside of its mask, so no packet has this mark",
            "write MARK/MASK as 'ip rule' does, such as 0x80000/0xff0000");
  } else if (*mark == 0) {
    out.add(value, "0 is the mark of packets that no program has marked",
            "name the mark that the program gives its packets");
  } else {
    return MarkMatch{*mark, *mask};
  }
  return std::nullopt;
}

void readNat(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  constexpr std::string_view kChoices[] = {"on", "ipv4", "off"};
  if (std::optional<std::string> nat = readChoice(value, kChoices, out)) {
    config.router.natV4 = *nat != "off";
    config.router.natV6 = *nat == "on";
  }
}

void readPortalCheck(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  constexpr std::string_view kChoices[] = {"on", "any", "off"};
  if (std::optional<std::string> check = readChoice(value, kChoices, out))
    config.portals = *check == "off"   ? PortalCheck::kOff
                     : *check == "any" ? PortalCheck::kAny
                                       : PortalCheck::kOn;
}

void readForwardTarget(const ConfigValue& value, PortForward& forward, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return;
  if (std::optional<Address> address = Address::parse(*text)) {
    forward.to = *address;
  } else if (std::optional<Endpoint> endpoint = Endpoint::parse(*text);
             endpoint && endpoint->port != 0) {
    forward.to = endpoint->address;
    forward.toPort = endpoint->port;
  } else {
    out.add(value, inQuotes(*text) + " is no address, nor one with a port",
            "write ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT, such as 192.168.1.10:80");
  }
}

void readAmpPackets(const ConfigValue& value, Config&, ConfigDiagnostics& out) {
  readNumber(value, 1, kMostAmpPackets, out);
}

std::optional<std::string> readPolicy(const ConfigValue& value, ConfigDiagnostics& out) {
  return readChoice(value, kRecoveryPolicies, out);
}

std::optional<uint64_t> readProtocol(const ConfigValue& value, ConfigDiagnostics& out) {
  return readNamedNumber(value, kProtocols, 255, out);
}

std::optional<uint64_t> readDscp(const ConfigValue& value, ConfigDiagnostics& out) {
  return readNamedNumber(value, kDscps, 63, out);
}

}  // namespace braid
