// The frame parser: whatever it accepts encodes to something that it reads as the same again.

#include <cstdlib>
#include <vector>

#include "tunnel/wire.h"

namespace {

using namespace braid;

std::vector<uint8_t> encode(const WireFrame& frame) {
  std::vector<uint8_t> out(70000);
  Writer writer(out);
  if (const auto* data = std::get_if<DataFrame>(&frame)) {
    uint8_t header[kDataFrameHeader];
    writeDataHeader(data->flow, data->dsn, data->payload.size(), header);
    writer.bytes(header);
    writer.bytes(data->payload);
  } else {
    std::visit(
        [&](const auto& f) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(f)>, DataFrame>) writeFrame(writer, f);
        },
        frame);
  }
  if (!writer.ok()) std::abort();
  out.resize(writer.size());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteView input(data, size);
  readHeader(input);
  FrameReader frames(input);
  while (std::optional<WireFrame> frame = frames.next()) {
    std::vector<uint8_t> once = encode(*frame);
    FrameReader again(once);
    std::optional<WireFrame> read = again.next();
    if (!read || read->index() != frame->index() || encode(*read) != once) std::abort();
  }
  return 0;
}
