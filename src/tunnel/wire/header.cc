#include "tunnel/wire/header.h"

namespace braid {

namespace {
constexpr uint8_t kFixedBits = 0x40;
}  // namespace

void writeHeader(const DatagramHeader& header, uint8_t* out) {
  out[0] = static_cast<uint8_t>(kFixedBits | header.version << 4 | header.epoch << 2 |
                                header.generation);
  store32(out + 1, header.session);
  out[5] = header.subflow.value();
  store32(out + 6, header.packetNumber);
}

std::optional<DatagramHeader> readHeader(ByteView datagram) {
  if (datagram.size() < kMinDatagram || !isSessionDatagram(datagram)) return std::nullopt;
  DatagramHeader header;
  header.version = datagram[0] >> 4 & 3;
  header.epoch = datagram[0] >> 2 & 3;
  header.generation = datagram[0] & 3;
  header.session = load32(&datagram[1]);
  header.subflow = SubflowId(datagram[5]);
  header.packetNumber = load32(&datagram[6]);
  return header;
}

uint64_t expandNumber(uint32_t low, uint64_t expected) {
  constexpr uint64_t kWindow = uint64_t{1} << 32;
  constexpr uint64_t kHalf = kWindow / 2;
  uint64_t candidate = (expected & ~(kWindow - 1)) | low;
  if (candidate + kHalf <= expected) return candidate + kWindow;
  if (candidate > expected + kHalf && candidate >= kWindow) return candidate - kWindow;
  return candidate;
}

}  // namespace braid
