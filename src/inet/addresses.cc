#include "inet/addresses.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <iterator>

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

namespace {

/// The bits of byte i that a prefix of `length` bits covers.
uint8_t maskByte(unsigned length, size_t i) {
  size_t before = 8 * i;
  if (length <= before) return 0;
  size_t covered = std::min<size_t>(8, length - before);
  return static_cast<uint8_t>(0xff00 >> covered);
}

size_t rootOf(const Address& a) {
  return static_cast<size_t>(a.family);
}

/// Bit `i` of the address; bit 0 is the most significant one.
unsigned bitOf(const Address& a, unsigned i) {
  return a.bytes[i / 8] >> (7 - i % 8) & 1;
}

/// The first `length` bits of the address.
Prefix prefixOf(const Address& a, unsigned length) {
  Prefix prefix{a, length};
  for (size_t i = 0; i < a.bytes.size(); ++i) prefix.address.bytes[i] &= maskByte(length, i);
  return prefix;
}

/// The number of leading bits that two prefixes have in common.
unsigned sharedBits(const Prefix& a, const Prefix& b) {
  unsigned most = std::min(a.length, b.length);
  for (unsigned i = 0; 8 * i < most; ++i) {
    auto differing = static_cast<uint8_t>(a.address.bytes[i] ^ b.address.bytes[i]);
    if (differing != 0)
      return std::min(most, 8 * i + static_cast<unsigned>(std::countl_zero(differing)));
  }
  return most;
}

}  // namespace

std::optional<Prefix> Prefix::parse(std::string_view text) {
  size_t slash = text.find('/');
  auto address = Address::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  Prefix prefix{*address, address->bits()};
  if (slash == std::string_view::npos) return prefix;

  std::string_view digits = text.substr(slash + 1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix.length);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  if (prefix.length > address->bits()) return std::nullopt;
  return prefixOf(*address, prefix.length);
}

std::string Prefix::toString() const {
  return address.toString() + "/" + std::to_string(length);
}

bool Prefix::contains(const Address& a) const {
  if (a.family != address.family || a.family == Address::Family::kNone) return false;
  size_t whole = length / 8;
  if (!std::equal(a.bytes.begin(), a.bytes.begin() + whole, address.bytes.begin())) return false;
  return length % 8 == 0 ||
         ((a.bytes[whole] ^ address.bytes[whole]) & maskByte(length, whole)) == 0;
}

bool Prefix::isEverything() const {
  return length <= 1 || (length <= globalUnicast().length + 1 && overlaps(globalUnicast()));
}

const Prefix& globalUnicast() {
  static const Prefix kNetwork = *Prefix::parse("2000::/3");
  return kNetwork;
}

bool PrefixTable::insert(const Prefix& prefix, size_t value) {
  std::unique_ptr<Node>* link = &roots_[rootOf(prefix.address)];
  while (true) {
    Node* node = link->get();
    unsigned shared = node ? sharedBits(node->prefix, prefix) : 0;
    if (!node || shared < node->prefix.length) {
      // The new prefix contains the node here, or both need a fork after the bits that they share.
      // Either way a new node is inserted above the present one.
      Prefix above = node ? prefixOf(prefix.address, shared) : prefix;
      auto fork = std::make_unique<Node>(Node{above});
      if (node) fork->next[bitOf(node->prefix.address, shared)] = std::move(*link);
      *link = std::move(fork);
      node = link->get();
    }
    if (node->prefix.length == prefix.length) {
      if (node->value) return false;
      node->value = value;
      return true;
    }
    link = &node->next[bitOf(prefix.address, node->prefix.length)];
  }
}

std::optional<size_t> PrefixTable::find(const Address& a) const {
  std::optional<size_t> longest;
  const Node* node = roots_[rootOf(a)].get();
  while (node) {
    if (node->value) {
      if (!node->prefix.contains(a)) break;
      longest = node->value;
    }
    if (node->prefix.length == a.bits()) break;
    node = node->next[bitOf(a, node->prefix.length)].get();
  }
  return longest;
}

namespace {

struct NamedRange {
  const char* prefix;
  SpecialKind kind;
};

// Sources: RFC 6890 and the registries that it started (IANA IPv4 and IPv6 Special-Purpose Address
// Registry); for clouds, their own documents, which are named below.
constexpr NamedRange kRanges[] = {
    {"0.0.0.0/8", SpecialKind::kNobody},         // "this network", RFC 791 section 3.2
    {"127.0.0.0/8", SpecialKind::kNobody},       // loopback, RFC 1122 section 3.2.1.3
    {"169.254.0.0/16", SpecialKind::kLink},      // RFC 3927
    {"224.0.0.0/4", SpecialKind::kLink},         // multicast, RFC 5771
    {"255.255.255.255/32", SpecialKind::kLink},  // limited broadcast, RFC 919 section 7
    {"::/96",
     SpecialKind::kNobody},  // ::, ::1 and IPv4-compatible, RFC 4291 sections 2.5.2, 2.5.3, 2.5.5.1
    {"::ffff:0:0/96", SpecialKind::kNobody},  // IPv4-mapped, RFC 4291 section 2.5.5.2
    {"fe80::/10", SpecialKind::kLink},        // RFC 4291 section 2.5.6
    {"ff00::/8", SpecialKind::kLink},         // multicast, RFC 4291 section 2.7

    // EC2, Google Compute Engine, Azure, Oracle, OpenStack and most others: "Instance metadata"
    {"169.254.169.254/32", SpecialKind::kCloud},
    {"169.254.170.2/32", SpecialKind::kCloud},    // Amazon ECS, "Task IAM role"
    {"169.254.170.23/32", SpecialKind::kCloud},   // Amazon EKS, "Pod Identity"
    {"169.254.0.23/32", SpecialKind::kCloud},     // Tencent Cloud, metadata.tencentyun.com
    {"169.254.10.10/32", SpecialKind::kCloud},    // Tencent Cloud, metadata.tencentyun.com
    {"169.254.42.42/32", SpecialKind::kCloud},    // Scaleway, "Instance metadata"
    {"100.100.100.200/32", SpecialKind::kCloud},  // Alibaba Cloud ECS, "Instance metadata"
    {"168.63.129.16/32",
     SpecialKind::kCloud},  // Azure, "What is IP address 168.63.129.16?" (WireServer)
    {"192.0.0.192/32", SpecialKind::kCloud},       // Oracle Cloud Classic, "Instance metadata"
    {"fe80::a9fe:a9fe/128", SpecialKind::kCloud},  // OpenStack Nova, "Metadata service"; Linode
    {"fd00:ec2::/32",
     SpecialKind::kCloud},  // Amazon VPC, "Route tables": reserved for its services
    {"fd20:ce::254/128", SpecialKind::kCloud},        // Google Compute Engine, "VM metadata"
    {"fd00:c1::a9fe:a9fe/128", SpecialKind::kCloud},  // Oracle, "Instance metadata"
    {"fd00:42::42/128", SpecialKind::kCloud},         // Scaleway, "Instance metadata"
    {"fd00:a9fe:a9fe::1/128", SpecialKind::kCloud},   // Linode (Akamai), "Metadata service"
    {"fd00:100::100:200/128", SpecialKind::kCloud},   // Alibaba Cloud ECS, "Instance metadata"
};

// The positions in an IPv6 address at which translators and tunnels embed the four bytes of an IPv4
// address.
using Places = std::array<uint8_t, 4>;
struct Embedding {
  const char* prefix;
  std::array<Places, 4> at;
  size_t count;  // number of entries of `at` in use
};
constexpr Places kAtEnd = {12, 13, 14, 15};
constexpr Embedding kEmbeddings[] = {
    {"64:ff9b::/96", {kAtEnd}, 1},  // NAT64, RFC 6052 section 2.1
    // Local-use NAT64 (RFC 8215); the IPv4 address follows a prefix of 96, 64, 56 or 48 bits (RFC
    // 6052 section 2.2)
    {"64:ff9b:1::/48", {kAtEnd, {9, 10, 11, 12}, {7, 9, 10, 11}, {6, 7, 9, 10}}, 4},
    {"2002::/16", {{{2, 3, 4, 5}}}, 1},  // 6to4, RFC 3056 section 2
    {"::ffff:0:0:0/96", {kAtEnd}, 1},    // IPv4-translated, RFC 2765 section 2.1
};

Address embedded(const Address& address, const Places& at) {
  std::array<uint8_t, 4> out;
  std::transform(at.begin(), at.end(), out.begin(),
                 [&](uint8_t place) { return address.bytes[place]; });
  return Address::v4(out);
}

// The length of the translator's prefix within 64:ff9b:1::/48 is unknown, so an address is read at
// all positions where the IPv4 address may be. At a wrong position, zeros that follow the address
// (RFC 6052 section 2.2) are read as part of it. So an IPv4 address there that begins with 0, is
// multicast or above, or ends in 0 is taken for such a misreading.
bool mayBeMisread(const Address& v4) {
  return v4.bytes[0] == 0 || v4.bytes[0] >= 224 || v4.bytes[3] == 0;
}

}  // namespace

SpecialAddresses::SpecialAddresses() {
  for (const NamedRange& range : kRanges) {
    Prefix prefix = *Prefix::parse(range.prefix);
    table_.insert(prefix, entries_.size());
    entries_.push_back({prefix, range.kind});
  }
  for (size_t i = 0; i < std::size(kEmbeddings); ++i)
    embeddings_.insert(*Prefix::parse(kEmbeddings[i].prefix), i);
}

std::optional<SpecialRange> SpecialAddresses::find(const Address& address) const {
  if (std::optional<size_t> place = table_.find(address)) {
    const Entry& entry = entries_[*place];
    return SpecialRange{entry.kind, entry.prefix.length};
  }
  std::optional<size_t> place = embeddings_.find(address);
  if (!place) return std::nullopt;
  const Embedding& e = kEmbeddings[*place];
  for (size_t i = 0; i < e.count; ++i) {
    Address inside = embedded(address, e.at[i]);
    if (e.count > 1 && mayBeMisread(inside)) continue;
    if (table_.find(inside)) return SpecialRange{SpecialKind::kNobody, address.bits()};
  }
  return std::nullopt;
}

bool SpecialAddresses::overlap(const Prefix& network) const {
  return std::ranges::any_of(entries_, [&](const Entry& e) { return e.prefix.overlaps(network); });
}

}  // namespace braid
