// The frame parser: an accepted frame must be unchanged after it is encoded and parsed again. The
// block described by a PARITY frame must be within the limits.

#include <cstdlib>
#include <vector>

#include "tests/fuzz/bounded.h"
#include "tunnel/wire/frame_payloads.h"
#include "tunnel/wire/frame_table.h"

namespace {

using namespace braid;

BlockDescription describe(const ParityFrame& parity) {
  BlockDescription block = braid::describe(
      parity, [](SubflowId subflow) { return PacketNumber(uint64_t{subflow.value()} << 30); });
  if (block.rangeCount == 0 || block.rangeCount > kMaxBlockSymbols ||
      block.symbols() > kMaxBlockSymbols)
    std::abort();
  return block;
}

void write(Writer& out, const DataFrame& data) {
  uint8_t header[kDataFrameHeader];
  writeDataHeader(data.flow, Dsn(data.dsn), data.payload.size(), header);
  out.bytes(header);
  out.bytes(data.payload);
}

void write(Writer& out, const StreamFrame& stream) {
  std::vector<uint8_t> unit(kLargestStreamPrefix + stream.bytes.size());
  Writer in(unit);
  writeStreamPrefix(in, stream.stream, stream.opening ? &*stream.opening : nullptr);
  in.bytes(stream.bytes);
  if (!in.ok()) std::abort();
  uint8_t header[kDataFrameHeader];
  writeStreamHeader(stream.type, stream.offset, in.size(), header);
  out.bytes(header);
  out.bytes(ByteView(unit).first(in.size()));
}

void write(Writer& out, const ParityFrame& parity) {
  BlockDescription block = describe(parity);
  size_t before = out.size();
  writeParityHeader(out, block, parity.index, parity.part.size());
  if (out.size() - before != parityHeaderSize(block)) std::abort();
  out.bytes(parity.part);
}

void write(Writer& out, const ParityTailFrame& tail) {
  writeParityTailHeader(out, tail);
  out.bytes(tail.part);
}

void write(Writer& out, const TimedAckFrame& timed) {
  writeFrame(out, timed.ack);
}

template <typename F>
void write(Writer& out, const F& frame) {
  writeFrame(out, frame);
}

std::vector<uint8_t> encode(const WireFrame& frame) {
  std::vector<uint8_t> out(70000);
  Writer writer(out);
  std::visit([&](const auto& f) { write(writer, f); }, frame);
  if (!writer.ok()) std::abort();
  out.resize(writer.size());
  return out;
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  ByteView input(data, size);
  readHeader(input);
  FrameReader frames(input);
  while (std::optional<WireFrame> frame = frames.next()) {
    std::vector<uint8_t> once = encode(*frame);
    FrameReader again(once);
    std::optional<WireFrame> read = again.next();
    if (!read || read->index() != frame->index() || encode(*read) != once) std::abort();
  }
}
