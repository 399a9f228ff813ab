#include "inet/special_addresses.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace braid {

namespace {

struct NamedRange {
  const char* prefix;
  SpecialKind kind;
};

// Sources: RFC 6890 and the registries that it began (IANA, IPv4 and IPv6 Special-Purpose Address), and the clouds' own
// documents, which are named.
constexpr NamedRange kRanges[] = {
    {"0.0.0.0/8", SpecialKind::kNobody},         // "this network", RFC 791 section 3.2
    {"127.0.0.0/8", SpecialKind::kNobody},       // loopback, RFC 1122 section 3.2.1.3
    {"169.254.0.0/16", SpecialKind::kLink},      // RFC 3927
    {"224.0.0.0/4", SpecialKind::kLink},         // multicast, RFC 5771
    {"255.255.255.255/32", SpecialKind::kLink},  // limited broadcast, RFC 919 section 7
    {"::/96", SpecialKind::kNobody},  // ::, ::1 and IPv4-compatible, RFC 4291 sections 2.5.2, 2.5.3, 2.5.5.1
    {"::ffff:0:0/96", SpecialKind::kNobody},  // IPv4-mapped, RFC 4291 section 2.5.5.2
    {"fe80::/10", SpecialKind::kLink},        // RFC 4291 section 2.5.6
    {"ff00::/8", SpecialKind::kLink},         // multicast, RFC 4291 section 2.7

    // EC2, Google Compute Engine, Azure, Oracle, OpenStack and most others: "Instance metadata"
    {"169.254.169.254/32", SpecialKind::kCloud},
    {"169.254.170.2/32", SpecialKind::kCloud},     // Amazon ECS, "Task IAM role"
    {"169.254.170.23/32", SpecialKind::kCloud},    // Amazon EKS, "Pod Identity"
    {"169.254.0.23/32", SpecialKind::kCloud},      // Tencent Cloud, metadata.tencentyun.com
    {"169.254.10.10/32", SpecialKind::kCloud},     // Tencent Cloud, the same
    {"169.254.42.42/32", SpecialKind::kCloud},     // Scaleway, "Instance metadata"
    {"100.100.100.200/32", SpecialKind::kCloud},   // Alibaba Cloud ECS, "Instance metadata"
    {"168.63.129.16/32", SpecialKind::kCloud},     // Azure, "What is IP address 168.63.129.16?" (WireServer)
    {"192.0.0.192/32", SpecialKind::kCloud},       // Oracle Cloud Classic, "Instance metadata"
    {"fe80::a9fe:a9fe/128", SpecialKind::kCloud},  // OpenStack Nova, "Metadata service"; Linode
    {"fd00:ec2::/32", SpecialKind::kCloud},        // Amazon VPC, "Route tables": reserved for its services
    {"fd20:ce::254/128", SpecialKind::kCloud},     // Google Compute Engine, "VM metadata"
    {"fd00:c1::a9fe:a9fe/128", SpecialKind::kCloud},  // Oracle, "Instance metadata"
    {"fd00:42::42/128", SpecialKind::kCloud},         // Scaleway, "Instance metadata"
    {"fd00:a9fe:a9fe::1/128", SpecialKind::kCloud},   // Linode (Akamai), "Metadata service"
    {"fd00:100::100:200/128", SpecialKind::kCloud},   // Alibaba Cloud ECS, "Instance metadata"
};

// Where in an IPv6 address translators and tunnels find the bytes of an IPv4 address.
using Places = std::array<uint8_t, 4>;
struct Embedding {
  const char* prefix;
  std::array<Places, 4> at;
  size_t count;  // of `at`
};
constexpr Places kAtEnd = {12, 13, 14, 15};
constexpr Embedding kEmbeddings[] = {
    {"64:ff9b::/96", {kAtEnd}, 1},  // NAT64, RFC 6052 section 2.1
    // NAT64 of a site, RFC 8215; behind a prefix of 96, 64, 56 or 48 bits, RFC 6052 section 2.2
    {"64:ff9b:1::/48", {kAtEnd, {9, 10, 11, 12}, {7, 9, 10, 11}, {6, 7, 9, 10}}, 4},
    {"2002::/16", {{{2, 3, 4, 5}}}, 1},  // 6to4, RFC 3056 section 2
    {"::ffff:0:0:0/96", {kAtEnd}, 1},    // IPv4-translated, RFC 2765 section 2.1
};

Address embedded(const Address& address, const Places& at) {
  std::array<uint8_t, 4> out;
  std::transform(at.begin(), at.end(), out.begin(), [&](uint8_t place) { return address.bytes[place]; });
  return Address::v4(out);
}

// How long the translator's prefix within 64:ff9b:1::/48 is, nobody knows, so an address is read at all places where it may
// be. At a wrong one the zeros behind it (RFC 6052 section 2.2) are read, too. So what begins with 0, is a group, or ends
// in 0 is taken for such a misreading there.
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
