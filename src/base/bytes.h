#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace braid {

using ByteView = std::span<const uint8_t>;
using ByteSpan = std::span<uint8_t>;

/// Big-endian loads and stores at an address that the caller has checked.
inline uint16_t load16(const uint8_t* p) {
  return static_cast<uint16_t>(p[0] << 8 | p[1]);
}
inline uint32_t load32(const uint8_t* p) {
  return uint32_t{load16(p)} << 16 | load16(p + 2);
}
inline uint64_t load64(const uint8_t* p) {
  return uint64_t{load32(p)} << 32 | load32(p + 4);
}
inline void store16(uint8_t* p, uint16_t v) {
  p[0] = static_cast<uint8_t>(v >> 8);
  p[1] = static_cast<uint8_t>(v);
}
inline void store32(uint8_t* p, uint32_t v) {
  store16(p, static_cast<uint16_t>(v >> 16));
  store16(p + 2, static_cast<uint16_t>(v));
}
inline void store64(uint8_t* p, uint64_t v) {
  store32(p, static_cast<uint32_t>(v >> 32));
  store32(p + 4, static_cast<uint32_t>(v));
}

/// Bytes that QUIC's variable-length integer encoding (RFC 9000 section 16) takes for v; v < 2^62.
constexpr size_t varintSize(uint64_t v) {
  return v < 64 ? 1 : v < 16384 ? 2 : v < 1073741824 ? 4 : 8;
}

/// Reads network-order fields one after the other. A read past the end returns zeros and makes ok()
/// false forever, so a parser can read a whole structure and check once.
class Reader {
 public:
  explicit Reader(ByteView bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  size_t remaining() const { return bytes_.size(); }

  uint8_t u8() {
    ByteView b = take(1);
    return b.empty() ? uint8_t{0} : b[0];
  }
  uint16_t u16() {
    ByteView b = take(2);
    return b.empty() ? uint16_t{0} : load16(b.data());
  }
  uint32_t u32() {
    ByteView b = take(4);
    return b.empty() ? 0 : load32(b.data());
  }
  uint64_t u64() {
    ByteView b = take(8);
    return b.empty() ? 0 : load64(b.data());
  }
  /// A variable-length integer (RFC 9000 section 16).
  uint64_t varint() {
    if (bytes_.empty()) return fail(), 0;
    ByteView b = take(size_t{1} << (bytes_[0] >> 6));
    if (b.empty()) return 0;
    uint64_t v = b[0] & 0x3f;
    for (uint8_t byte : b.subspan(1)) v = v << 8 | byte;
    return v;
  }
  /// The next n bytes; empty (and no longer ok) when fewer remain.
  ByteView take(size_t n) {
    if (n > bytes_.size()) return fail(), ByteView{};
    ByteView b = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return b;
  }

 private:
  void fail() {
    ok_ = false;
    bytes_ = {};
  }
  ByteView bytes_;
  bool ok_ = true;
};

/// Writes network-order fields one after the other into a fixed span. A field that does not fit is
/// not written and makes ok() false.
class Writer {
 public:
  explicit Writer(ByteSpan out) : out_(out) {}

  bool ok() const { return ok_; }
  size_t size() const { return size_; }
  size_t remaining() const { return out_.size() - size_; }

  void u8(uint8_t v) {
    if (uint8_t* p = grow(1)) *p = v;
  }
  void u16(uint16_t v) {
    if (uint8_t* p = grow(2)) store16(p, v);
  }
  void u32(uint32_t v) {
    if (uint8_t* p = grow(4)) store32(p, v);
  }
  void u64(uint64_t v) {
    if (uint8_t* p = grow(8)) store64(p, v);
  }
  /// A variable-length integer in its shortest form (RFC 9000 section 16); v < 2^62.
  void varint(uint64_t v) {
    size_t n = varintSize(v);
    uint8_t* p = grow(n);
    if (!p) return;
    for (size_t i = n; i-- > 0; v >>= 8) p[i] = static_cast<uint8_t>(v);
    p[0] |= static_cast<uint8_t>((n == 1 ? 0 : n == 2 ? 1 : n == 4 ? 2 : 3) << 6);
  }
  void bytes(ByteView b) {
    uint8_t* p = grow(b.size());
    if (p && !b.empty()) std::memcpy(p, b.data(), b.size());
  }
  void zeros(size_t n) {
    uint8_t* p = grow(n);
    if (p && n > 0) std::memset(p, 0, n);
  }

 private:
  uint8_t* grow(size_t n) {
    if (!ok_ || n > remaining()) {
      ok_ = false;
      return nullptr;
    }
    uint8_t* p = out_.data() + size_;
    size_ += n;
    return p;
  }
  ByteSpan out_;
  size_t size_ = 0;
  bool ok_ = true;
};

/// Two lower-case hexadecimal digits for each byte.
inline std::string toHex(ByteView bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// Fills `out` from hexadecimal text: two digits for each byte, of either case. False when the text
/// has another length or another character; `out` may be partly filled then.
inline bool fromHex(std::string_view text, std::span<uint8_t> out) {
  if (text.size() != 2 * out.size()) return false;
  for (uint8_t& byte : out) {
    if (std::from_chars(text.data(), text.data() + 2, byte, 16).ptr != text.data() + 2)
      return false;
    text.remove_prefix(2);
  }
  return true;
}

}  // namespace braid
