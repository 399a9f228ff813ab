#include "inet/prefix.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace braid {

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

/// Bit `i` of the address, counted from its front.
unsigned bitOf(const Address& a, unsigned i) {
  return a.bytes[i / 8] >> (7 - i % 8) & 1;
}

/// The first `length` bits of the address.
Prefix prefixOf(const Address& a, unsigned length) {
  Prefix prefix{a, length};
  for (size_t i = 0; i < a.bytes.size(); ++i) prefix.address.bytes[i] &= maskByte(length, i);
  return prefix;
}

/// How many bits at the front two prefixes have in common.
unsigned sharedBits(const Prefix& a, const Prefix& b) {
  unsigned most = std::min(a.length, b.length);
  for (unsigned i = 0; 8 * i < most; ++i) {
    auto differing = static_cast<uint8_t>(a.address.bytes[i] ^ b.address.bytes[i]);
    if (differing != 0) return std::min(most, 8 * i + static_cast<unsigned>(std::countl_zero(differing)));
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
  return length % 8 == 0 || ((a.bytes[whole] ^ address.bytes[whole]) & maskByte(length, whole)) == 0;
}

bool PrefixTable::insert(const Prefix& prefix, size_t value) {
  std::unique_ptr<Node>* link = &roots_[rootOf(prefix.address)];
  while (true) {
    Node* node = link->get();
    unsigned shared = node ? sharedBits(node->prefix, prefix) : 0;
    if (!node || shared < node->prefix.length) {
      // The new prefix goes above what is here, or the two part behind the bits that they share.
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

}  // namespace braid
