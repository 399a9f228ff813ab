#include "web/access.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "inet/endpoint.h"

namespace braid {
namespace {

bool sameText(std::string_view a, std::string_view b) {
  auto lower = [](unsigned char c) { return std::tolower(c); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

// The host of "host", "host:port", "[v6]" and "[v6]:port"; empty: malformed.
std::string_view hostOf(std::string_view header) {
  std::string_view host = header, rest;
  if (header.starts_with('[')) {
    size_t end = header.find(']');
    if (end == std::string_view::npos) return {};
    host = header.substr(1, end - 1);
    rest = header.substr(end + 1);
  } else if (size_t colon = header.find(':'); colon != std::string_view::npos) {
    host = header.substr(0, colon);
    rest = header.substr(colon);
  }
  bool isPort = rest.empty() || (rest.size() <= 6 && rest.front() == ':' &&
                                 std::all_of(rest.begin() + 1, rest.end(),
                                             [](unsigned char c) { return std::isdigit(c) != 0; }));
  return isPort ? host : std::string_view();
}

// Takes the same time wherever they differ.
bool sameSecret(std::string_view a, std::string_view b) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> x{}, y{};
  SHA256(reinterpret_cast<const unsigned char*>(a.data()), a.size(), x.data());
  SHA256(reinterpret_cast<const unsigned char*>(b.data()), b.size(), y.data());
  return CRYPTO_memcmp(x.data(), y.data(), x.size()) == 0;
}

// The password of "user:password" in base64; nullopt: malformed.
std::optional<std::string> passwordOf(std::string_view encoded) {
  if (encoded.empty() || encoded.size() > 1024 || encoded.size() % 4 != 0) return std::nullopt;
  std::string text(encoded.size() / 4 * 3, '\0');
  int decoded = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                reinterpret_cast<const unsigned char*>(encoded.data()),
                                static_cast<int>(encoded.size()));
  if (decoded < 0) return std::nullopt;
  size_t padding = encoded.size() - (encoded.find_last_not_of('=') + 1);
  text.resize(static_cast<size_t>(decoded) - std::min<size_t>(padding, 2));
  size_t colon = text.find(':');
  return colon == std::string::npos ? std::nullopt : std::optional(text.substr(colon + 1));
}

}  // namespace

Access::Access(std::vector<std::string> hosts, std::string token)
    : hosts_(std::move(hosts)), token_(std::move(token)) {}

bool Access::isOwnHost(std::string_view header) const {
  std::string_view host = hostOf(header);
  if (host.empty()) return false;
  if (Address::parse(host) || sameText(host, "localhost")) return true;
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const std::string& h) { return sameText(h, host); });
}

bool Access::isLetIn(const std::optional<std::string>& authorization) const {
  if (token_.empty()) return true;
  if (!authorization) return false;
  size_t space = authorization->find(' ');
  if (space == std::string::npos) return false;
  std::string_view scheme = std::string_view(*authorization).substr(0, space);
  std::string_view rest = std::string_view(*authorization).substr(space + 1);
  if (sameText(scheme, "Bearer")) return sameSecret(rest, token_);
  if (!sameText(scheme, "Basic")) return false;
  std::optional<std::string> password = passwordOf(rest);
  return password && sameSecret(*password, token_);
}

}  // namespace braid
