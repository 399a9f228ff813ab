// The readers of config_reader.h for addresses, networks and endpoints.

#include <algorithm>
#include <cctype>

#include "gateway/config/config_reader.h"
#include "gateway/config/units.h"

namespace braid {
namespace {

constexpr const char* kEndpointRemedy = "write ADDRESS:PORT, such as 192.0.2.1:4433 or [2001:db8::1]:4433";

std::string quote(const std::string& text) {
  return "'" + text.substr(0, 80) + "'";
}

// Says what is wrong with an endpoint that Endpoint::parse() refused; nullopt: only that it is none.
std::optional<std::pair<std::string, std::string>> explainEndpoint(const std::string& text) {
  size_t colon = text.rfind(':');
  if (Address::parse(text))
    return {{"has no port",
             "add one: " + (text.find(':') == std::string::npos ? text + ":4433" : "[" + text + "]:4433")}};
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

}  // namespace

// RFC 1123 section 2.1: letters, digits and dashes in labels of 1 to 63, 253 in all; underscores are let
// through. A last label of digits only would be a mistyped IPv4 address.
bool isHostName(const std::string& text) {
  if (text.empty() || text.size() > 253) return false;
  size_t start = 0;
  while (true) {
    size_t end = std::min(text.find('.', start), text.size());
    std::string label = text.substr(start, end - start);
    bool good = !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
                std::all_of(label.begin(), label.end(), [](unsigned char c) {
                  return (c < 0x80 && std::isalnum(c)) || c == '-' || c == '_';
                });
    if (!good) return false;
    if (end == text.size())
      return !std::all_of(label.begin(), label.end(), [](unsigned char c) { return std::isdigit(c); });
    start = end + 1;
  }
}

std::optional<Address> readAddress(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::optional<Address> address = Address::parse(*text);
  if (!address)
    out.add(value, quote(*text) + " is no IP address", "write one such as 192.0.2.1 or 2001:db8::1");
  return address;
}

std::optional<InterfaceAddress> readInterfaceAddress(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  size_t slash = text->find('/');
  std::optional<Address> address = Address::parse(text->substr(0, slash));
  std::optional<uint64_t> length =
      slash == std::string::npos ? std::nullopt : parseNumber(std::string_view(*text).substr(slash + 1));
  if (!address) {
    out.add(value, quote(*text) + " is no address with a prefix length",
            "write one such as 10.99.0.1/30 or fd99::1/64");
  } else if (!length || *length == 0 || *length > address->bits()) {
    out.add(value, quote(*text) + " has no prefix length from 1 to " + std::to_string(address->bits()),
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
    out.add(value, quote(*text) + " is no network", "write one such as 10.1.0.0/16 or fd00:1::/32");
    return std::nullopt;
  }
  std::optional<Address> written = Address::parse(text->substr(0, text->find('/')));
  if (written && *written != prefix->address) {
    out.add(value, quote(*text) + " has host bits set",
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
    out.add(value, quote(*text) + " " + reason->first, reason->second);
  } else {
    out.add(value, quote(*text) + " is no address and port", kEndpointRemedy);
  }
  return std::nullopt;
}

std::optional<RemoteEndpoint> readRemoteEndpoint(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::optional<Endpoint> endpoint = Endpoint::parse(*text);
  if (endpoint && endpoint->port != 0) return RemoteEndpoint{endpoint, {}};
  if (auto reason = explainEndpoint(*text)) {
    out.add(value, quote(*text) + " " + reason->first, reason->second);
    return std::nullopt;
  }
  size_t colon = text->rfind(':');
  std::string host = text->substr(0, colon);
  if (isHostName(host)) {
    return RemoteEndpoint{std::nullopt, {host, static_cast<uint16_t>(*parseNumber(text->substr(colon + 1)))}};
  }
  out.add(value, quote(host) + " is neither an address nor a host name", kEndpointRemedy);
  return std::nullopt;
}

}  // namespace braid
