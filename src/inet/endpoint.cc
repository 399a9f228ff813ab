#include "inet/endpoint.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>
#include <charconv>

namespace braid {

Address Address::v4(ByteView four) {
  assert(four.size() == 4);
  Address a{Family::kV4, {}};
  std::copy_n(four.begin(), 4, a.bytes.begin());
  return a;
}

Address Address::v6(ByteView sixteen) {
  assert(sixteen.size() == 16);
  Address a{Family::kV6, {}};
  std::copy_n(sixteen.begin(), 16, a.bytes.begin());
  return a;
}

std::optional<Address> Address::parse(std::string_view text) {
  char name[INET6_ADDRSTRLEN];
  if (text.size() >= sizeof name || text.find('\0') != std::string_view::npos) return std::nullopt;
  *std::copy(text.begin(), text.end(), name) = '\0';
  Address a;
  a.family = text.find(':') == std::string_view::npos ? Family::kV4 : Family::kV6;
  if (inet_pton(a.isV4() ? AF_INET : AF_INET6, name, a.bytes.data()) != 1) return std::nullopt;
  return a;
}

std::string Address::toString() const {
  if (family == Family::kNone) return "none";
  char name[INET6_ADDRSTRLEN];
  return inet_ntop(isV4() ? AF_INET : AF_INET6, bytes.data(), name, sizeof name);
}

namespace {

constexpr size_t kPortDigits = 5;

std::optional<uint16_t> parsePort(std::string_view text) {
  if (text.empty() || text.size() > kPortDigits) return std::nullopt;
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

}  // namespace

std::optional<Endpoint> Endpoint::parse(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  auto address = Address::parse(host);
  auto port = parsePort(text.substr(colon + 1));
  if (!address || !port || address->isV6() != bracketed) return std::nullopt;
  return Endpoint{*address, *port};
}

std::string Endpoint::toString() const {
  std::string name = address.toString();
  return (address.isV6() ? "[" + name + "]" : name) + ":" + std::to_string(port);
}

}  // namespace braid
