#include "inet/tcp_options.h"

#include <algorithm>

namespace braid {

namespace {

/// Two no-operations and the head of the timestamps, as nearly all segments begin (RFC 7323 appendix A).
constexpr uint32_t kAlignedTimestamps = 0x0101080a;
constexpr uint8_t kMaxWindowShift = 14;

void readSacks(ByteView blocks, TcpOptionFields& fields) {
  fields.sackCount = static_cast<uint8_t>(std::min(blocks.size() / 8, TcpOptionFields::kMaxSacks));
  for (size_t i = 0; i < fields.sackCount; ++i) {
    fields.sacks[i] = {{load32(&blocks[i * 8])}, {load32(&blocks[i * 8 + 4])}};
  }
}

}  // namespace

TcpOptionFields parseTcpOptions(ByteView options) {
  TcpOptionFields fields;
  if (options.size() >= 12 && load32(options.data()) == kAlignedTimestamps) {
    fields.timestamps = {load32(&options[4]), load32(&options[8])};
    options = options.subspan(12);
  }
  forEachTcpOption(options, [&](uint8_t kind, size_t offset, size_t length) {
    const uint8_t* value = options.data() + offset;
    if (kind == tcpopt::kMss && length == 2) fields.mss = load16(value);
    if (kind == tcpopt::kWindowScale && length == 1) fields.windowShift = std::min(value[0], kMaxWindowShift);
    if (kind == tcpopt::kSackPermitted && length == 0) fields.sackPermitted = true;
    if (kind == tcpopt::kTimestamps && length == 8) fields.timestamps = {load32(value), load32(value + 4)};
    if (kind == tcpopt::kSack && length >= 8 && length % 8 == 0) {
      readSacks(options.subspan(offset, length), fields);
    }
  });
  return fields;
}

}  // namespace braid
