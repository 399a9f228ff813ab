#pragma once

#include <cstdint>

namespace braid {

/// What stands before a packet that is read or written (virtio 1.2 section 5.1.6, the tun driver's form of it: host
/// byte order). <linux/virtio_net.h> is no C++.
struct VirtioHeader {
  static constexpr uint8_t kNeedsChecksum = 1;
  static constexpr uint8_t kNoSegments = 0, kTcpV4 = 1, kTcpV6 = 4, kUdp = 5;

  uint8_t flags = 0;
  uint8_t segmentType = kNoSegments;
  uint16_t headers = 0;         ///< bytes before the payload
  uint16_t segmentSize = 0;     ///< payload of a segment
  uint16_t checksumStart = 0;   ///< what the checksum covers begins there
  uint16_t checksumOffset = 0;  ///< the field, from there
};
static_assert(sizeof(VirtioHeader) == 10);

}  // namespace braid
