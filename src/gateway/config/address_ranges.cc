#include "gateway/config/address_ranges.h"

#include <algorithm>
#include <optional>

namespace braid {

namespace {

Address lastOf(const Prefix& prefix) {
  Address out = prefix.address;
  for (unsigned bit = prefix.length; bit < out.bits(); ++bit)
    out.bytes[bit / 8] = static_cast<uint8_t>(out.bytes[bit / 8] | 0x80 >> bit % 8);
  return out;
}

// The next address; nullopt: `a` is the last of its family.
std::optional<Address> behind(Address a) {
  for (size_t i = a.view().size(); i-- > 0;)
    if (++a.bytes[i] != 0) return a;
  return std::nullopt;
}

Address before(Address a) {
  for (size_t i = a.view().size(); i-- > 0;)
    if (a.bytes[i]-- != 0) break;
  return a;
}

// Walks through prefixes in the order of their first addresses. `open_` holds the prefixes around
// the present address, each inside the one before.
class Walk {
 public:
  explicit Walk(std::vector<AddressRange>& out) : out_(out) {}

  void enter(const Prefix& prefix) {
    closeBefore(prefix.address);
    if (!open_.empty() && *from_ < prefix.address) out_.push_back({*from_, before(prefix.address)});
    open_.push_back(lastOf(prefix));
    from_ = prefix.address;
  }
  void end() {
    while (!open_.empty()) closeInner();
  }

 private:
  void closeBefore(const Address& at) {
    while (!open_.empty() && open_.back() < at) closeInner();
  }
  void closeInner() {
    Address last = open_.back();
    open_.pop_back();
    if (from_ && *from_ <= last) out_.push_back({*from_, last});
    from_ = behind(last);
    // Nothing is left of the outer prefixes that end at the same address.
    while (!open_.empty() && open_.back() == last) open_.pop_back();
  }

  std::vector<AddressRange>& out_;
  std::vector<Address> open_;    ///< last addresses, outermost first
  std::optional<Address> from_;  ///< addresses from this one on are not in `out_` yet
};

}  // namespace

std::vector<AddressRange> rangesOf(std::vector<Prefix> prefixes) {
  std::sort(prefixes.begin(), prefixes.end());
  prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
  std::vector<AddressRange> out;
  Walk walk(out);
  for (const Prefix& prefix : prefixes) walk.enter(prefix);
  walk.end();
  return out;
}

std::vector<AddressRange> joined(const std::vector<AddressRange>& ranges) {
  std::vector<AddressRange> out;
  for (const AddressRange& range : ranges) {
    if (!out.empty() && behind(out.back().last) == range.first) {
      out.back().last = range.last;
    } else {
      out.push_back(range);
    }
  }
  return out;
}

}  // namespace braid
