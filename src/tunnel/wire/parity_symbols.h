#pragma once

// How PARITY says which symbols its block holds (docs/protocol.md section 5): groups of one subflow each with
// its number, the low 32 bits of the first packet number, and how many runs of packet numbers follow; then
// the length of the first run, and for each further one the gap before the run and its length. Gaps and
// lengths are less one.

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "coding/block.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// PARITY up to and with the length of the part; `part` bytes of the parity follow.
void writeParityHeader(Writer& out, const BlockDescription& block, size_t index, size_t part);
/// Bytes that writeParityHeader() takes.
size_t parityHeaderSize(const BlockDescription& block);

/// The bytes of the groups, from their number on, which are taken from `in`. Empty when malformed: cut off, a
/// group without runs, a gap that is too wide, or not 1..kMaxBlockSymbols symbols.
ByteView takeSymbols(Reader& in);

/// The block of a PARITY that was read. `expected(subflow)` is the packet number after the largest one seen
/// there.
template <typename Expected>
BlockDescription describe(const ParityFrame& parity, Expected&& expected) {
  BlockDescription b;
  b.block = parity.block.value();
  b.parities = parity.parities;
  b.symbolSize = parity.symbolSize;
  Reader in(parity.symbols);  // takeSymbols() has checked all that follows
  for (size_t groups = in.u8(); groups > 0; --groups) {
    SubflowId subflow(in.u8());
    PacketNumber pn = expandPacketNumber(in.u32(), expected(subflow));
    for (size_t run = 0, runs = in.u8(); run < runs; ++run) {
      if (run > 0) pn += in.varint() + 1;
      uint64_t count = in.varint() + 1;
      b.ranges[b.rangeCount++] = {subflow.value(), pn.value(), static_cast<uint32_t>(count)};
      pn += count;
    }
  }
  return b;
}

}  // namespace braid
