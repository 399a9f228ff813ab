#include "inet/prefix.h"

#include <algorithm>
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
  for (size_t i = 0; i < prefix.address.bytes.size(); ++i) {
    prefix.address.bytes[i] &= maskByte(prefix.length, i);
  }
  return prefix;
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
  auto [first, last] =
      std::equal_range(entries_.begin(), entries_.end(), Entry{prefix, 0},
                       [](const Entry& a, const Entry& b) { return a.prefix.length > b.prefix.length; });
  if (std::any_of(first, last, [&](const Entry& e) { return e.prefix == prefix; })) return false;
  entries_.insert(last, Entry{prefix, value});
  return true;
}

void PrefixTable::clear() {
  entries_.clear();
}

std::optional<size_t> PrefixTable::find(const Address& a) const {
  for (const Entry& entry : entries_) {
    if (entry.prefix.contains(a)) return entry.value;
  }
  return std::nullopt;
}

}  // namespace braid
