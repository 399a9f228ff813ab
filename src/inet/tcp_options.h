#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "inet/sequence.h"

namespace braid {

/// TCP option kinds (RFC 9293 section 3.2, RFC 7323, RFC 2018).
namespace tcpopt {
inline constexpr uint8_t kEnd = 0;
inline constexpr uint8_t kNoOperation = 1;
inline constexpr uint8_t kMss = 2;
inline constexpr uint8_t kWindowScale = 3;
inline constexpr uint8_t kSackPermitted = 4;
inline constexpr uint8_t kSack = 5;
inline constexpr uint8_t kTimestamps = 8;
}  // namespace tcpopt

/// Calls visit(kind, offset, length) for every option but padding; offset and length are those of the
/// option's value within `options`. Ends, as receivers do, at the first malformed option.
template <typename F>
void forEachTcpOption(ByteView options, F&& visit) {
  for (size_t at = 0; at < options.size() && options[at] != tcpopt::kEnd;) {
    if (options[at] == tcpopt::kNoOperation) {
      ++at;
      continue;
    }
    if (options.size() - at < 2) return;
    size_t length = options[at + 1];
    if (length < 2 || length > options.size() - at) return;
    visit(options[at], at + 2, length - 2);
    at += length;
  }
}

/// RFC 7323 section 3.2.
struct TcpTimestamps {
  uint32_t value = 0;  ///< TSval
  uint32_t echo = 0;   ///< TSecr
  bool operator==(const TcpTimestamps&) const = default;
};

/// The options that Braid reads. One that stands twice has the last value; one of a wrong length is ignored.
struct TcpOptionFields {
  static constexpr size_t kMaxSacks = 4;

  std::optional<uint16_t> mss;         ///< RFC 9293 section 3.7.1
  std::optional<uint8_t> windowShift;  ///< 0..14: more counts as 14 (RFC 7323 section 2.3)
  bool sackPermitted = false;          ///< RFC 2018 section 2
  std::optional<TcpTimestamps> timestamps;
  uint8_t sackCount = 0;  ///< RFC 2018 section 3
  std::array<SeqRange, kMaxSacks> sacks{};
};

/// `options` is what stands between the fixed TCP header and the payload.
TcpOptionFields parseTcpOptions(ByteView options);

}  // namespace braid
