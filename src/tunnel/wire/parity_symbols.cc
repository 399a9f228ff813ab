#include "tunnel/wire/parity_symbols.h"

#include "tunnel/wire/frame_traits.h"

namespace braid {
namespace {

/// Packet numbers between two runs of a coding block; farther apart they are groups of their own. Ours.
constexpr uint64_t kMaxRunGap = 1 << 14;

/// Packet numbers between a range and the one before it, of the same subflow and higher up.
uint64_t gapBefore(const SymbolRange* range) {
  return range[0].first - range[-1].first - range[-1].count;
}

bool continuesGroup(const SymbolRange* range) {
  const SymbolRange& before = range[-1];
  return range->subflow == before.subflow && range->first > before.first + before.count &&
         gapBefore(range) < kMaxRunGap;
}

/// Calls visit(first range of a group, number of ranges in it).
template <typename F>
void forEachGroup(const BlockDescription& block, F&& visit) {
  for (size_t i = 0; i < block.rangeCount;) {
    size_t end = i + 1;
    while (end < block.rangeCount && continuesGroup(&block.ranges[end])) ++end;
    visit(&block.ranges[i], end - i);
    i = end;
  }
}

}  // namespace

size_t parityHeaderSize(const BlockDescription& block) {
  size_t size = 1 + 2 + 1 + 1 + 2 + 1 + 2;
  forEachGroup(block, [&](const SymbolRange* ranges, size_t count) {
    size += 6;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) size += varintSize(gapBefore(ranges + i) - 1);
      size += varintSize(ranges[i].count - 1);
    }
  });
  return size;
}

void writeParityHeader(Writer& out, const BlockDescription& block, size_t index, size_t part) {
  out.u8(kFrame<ParityFrame>.number);
  out.u16(block.block);
  out.u8(static_cast<uint8_t>(index));
  out.u8(block.parities);
  out.u16(block.symbolSize);
  size_t groups = 0;
  forEachGroup(block, [&](const SymbolRange*, size_t) { ++groups; });
  out.u8(static_cast<uint8_t>(groups));
  forEachGroup(block, [&](const SymbolRange* ranges, size_t count) {
    out.u8(ranges->subflow);
    out.u32(static_cast<uint32_t>(ranges->first));
    out.u8(static_cast<uint8_t>(count));
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) out.varint(gapBefore(ranges + i) - 1);
      out.varint(ranges[i].count - 1);
    }
  });
  out.u16(static_cast<uint16_t>(part));
}

ByteView takeSymbols(Reader& in) {
  Reader begin = in;
  size_t symbols = 0;
  size_t groups = in.u8();
  for (size_t group = 0; group < groups; ++group) {
    in.take(5);
    size_t runs = in.u8();
    if (!in.ok() || runs == 0) return {};
    for (size_t run = 0; run < runs; ++run) {
      uint64_t gap = run > 0 ? in.varint() : 0;
      uint64_t length = in.varint();
      if (!in.ok() || gap >= kMaxRunGap || length >= kMaxBlockSymbols) return {};
      symbols += length + 1;
      if (symbols > kMaxBlockSymbols) return {};
    }
  }
  if (symbols == 0) return {};
  return begin.take(begin.remaining() - in.remaining());
}

}  // namespace braid
