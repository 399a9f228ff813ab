#include "tunnel/wire/frame_payloads.h"

#include <algorithm>

#include "tunnel/wire/frame_table.h"

namespace braid {

bool AckRanges::add(PacketNumber pn) {
  size_t above = startingUpTo(pn);
  if (above > 0) {
    Range& below = at(above - 1);
    if (pn <= below.last) return false;
    if (pn == below.last + 1) {
      below.last = pn;
      if (above < count_ && at(above).first == pn + 1) {
        below.last = at(above).last;
        erase(above);
      }
      return true;
    }
  }
  if (above < count_ && at(above).first == pn + 1) {
    at(above).first = pn;
    return true;
  }
  if (count_ == kMax) {
    if (above == 0) return false;
    popLowest();
    --above;
  }
  insert(above, {pn, pn});
  return true;
}

void AckRanges::dropBelow(PacketNumber pn) {
  while (count_ > 0 && at(0).last < pn) popLowest();
  if (count_ > 0) at(0).first = std::max(at(0).first, pn);
}

bool AckRanges::contains(PacketNumber pn) const {
  size_t above = startingUpTo(pn);
  return above > 0 && pn <= at(above - 1).last;
}

void AckRanges::fill(AckFrame& frame) const {
  frame.count = std::min(count_, frame.ranges.size());
  for (size_t i = 0; i < frame.count; ++i) frame.ranges[i] = range(i);
}

size_t AckRanges::startingUpTo(PacketNumber pn) const {
  size_t n = count_;
  while (n > 0 && at(n - 1).first > pn) --n;
  return n;
}

void AckRanges::insert(size_t i, Range range) {
  for (size_t j = count_; j > i; --j) at(j) = at(j - 1);
  at(i) = range;
  ++count_;
}

void AckRanges::erase(size_t i) {
  for (size_t j = i; j + 1 < count_; ++j) at(j) = at(j + 1);
  --count_;
}

void AckRanges::popLowest() {
  head_ = index(1);
  --count_;
}

namespace {

/// From this many packet numbers between two runs of a coding block on, the second run begins a
/// group of its own.
constexpr uint64_t kMaxRunGap = 1 << 14;

/// Number of packet numbers between a range and the one before it, which must be of the same
/// subflow and lower.
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
