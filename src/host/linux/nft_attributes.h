#pragma once

// Reading of messages of nf_tables.

#include <arpa/inet.h>  // must precede the kernel's headers, which then omit duplicates

#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid {

inline std::vector<uint8_t> bytesAt(const void* at, size_t n) {
  const auto* b = static_cast<const uint8_t*>(at);
  return {b, b + n};
}

/// The attributes of a message or of a nested attribute, by type. Incomplete ones are omitted.
class NftAttributes {
 public:
  NftAttributes(const void* begin, size_t bytes) {
    const auto* at = static_cast<const nlattr*>(begin);
    const char* end = static_cast<const char*>(begin) + bytes;
    for (; mnl_attr_ok(at, static_cast<int>(end - reinterpret_cast<const char*>(at)));
         at = mnl_attr_next(at))
      all_.emplace_back(mnl_attr_get_type(at), at);
  }
  explicit NftAttributes(const nlattr* nested)
      : NftAttributes(nested ? mnl_attr_get_payload(nested) : nullptr,
                      nested ? mnl_attr_get_payload_len(nested) : 0) {}

  const nlattr* get(uint16_t type) const {
    for (const auto& [t, a] : all_)
      if (t == type) return a;
    return nullptr;
  }
  std::string text(uint16_t type) const {
    const nlattr* a = get(type);
    if (!a || mnl_attr_validate(a, MNL_TYPE_NUL_STRING) < 0) return {};
    return mnl_attr_get_str(a);
  }
  /// A number, which the kernel sends in network order.
  std::optional<uint32_t> number(uint16_t type) const {
    const nlattr* a = get(type);
    if (!a || mnl_attr_get_payload_len(a) < sizeof(uint32_t)) return std::nullopt;
    return ntohl(mnl_attr_get_u32(a));
  }
  /// The bytes of a value: the NFTA_DATA_VALUE within the attribute.
  std::vector<uint8_t> value(uint16_t type) const {
    const nlattr* nested = get(type);
    const nlattr* a = nested ? NftAttributes(nested).get(NFTA_DATA_VALUE) : nullptr;
    return a ? bytesAt(mnl_attr_get_payload(a), mnl_attr_get_payload_len(a))
             : std::vector<uint8_t>{};
  }
  const std::vector<std::pair<uint16_t, const nlattr*>>& all() const { return all_; }

 private:
  std::vector<std::pair<uint16_t, const nlattr*>> all_;
};

}  // namespace braid
