#pragma once

// The contents of ACK and PARITY frames.
//
// A PARITY frame says which symbols its block holds by groups (docs/protocol.md section 5). A group
// is for one subflow: the subflow's number, the low 32 bits of the first packet number, and the
// number of runs of packet numbers; then the length of the first run, and for each further run the
// gap before it and its length. Gaps and lengths are coded minus one.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "coding/symbols.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// Received packet numbers of one subflow, as the ranges that an ACK frame reports. Holds at most
/// kMax ranges: when one more is needed, the lowest range is forgotten (RFC 9000 section 13.2.3).
/// Never allocates.
class AckRanges {
 public:
  using Range = AckFrame::Range;
  static constexpr size_t kMax = 64;

  /// Adds a packet number. Returns false when it was there already, or when it is below kMax ranges
  /// and so is forgotten at once. O(1) when pn is at or above the largest, else O(kMax).
  bool add(PacketNumber pn);
  /// Forgets every packet number below pn (RFC 9000 section 13.2.4).
  void dropBelow(PacketNumber pn);
  void clear() { count_ = 0; }

  bool contains(PacketNumber pn) const;
  bool empty() const { return count_ == 0; }
  /// Number of ranges.
  size_t size() const { return count_; }
  /// Ranges from the largest (0) down to the smallest (size() - 1); disjoint and not adjacent.
  const Range& range(size_t i) const { return ring_[index(count_ - 1 - i)]; }
  /// The largest packet number; empty() must be false.
  PacketNumber largest() const { return range(0).last; }
  /// Copies the largest ranges, as many as fit the frame.
  void fill(AckFrame& frame) const;

 private:
  size_t index(size_t i) const { return (head_ + i) % kMax; }
  Range& at(size_t i) { return ring_[index(i)]; }
  const Range& at(size_t i) const { return ring_[index(i)]; }
  /// How many ranges, counted from the smallest, begin at or below pn.
  size_t startingUpTo(PacketNumber pn) const;
  void insert(size_t i, Range range);
  void erase(size_t i);
  void popLowest();

  std::array<Range, kMax> ring_{};  // from head_ on, smallest first
  size_t head_ = 0;
  size_t count_ = 0;
};

/// Writes a PARITY frame up to and including the length of the part; the `part` bytes of the parity
/// must follow.
void writeParityHeader(Writer& out, const BlockDescription& block, size_t index, size_t part);
/// Bytes that writeParityHeader() takes.
size_t parityHeaderSize(const BlockDescription& block);

/// Takes the groups, from their count on, from `in` and returns their bytes. Returns an empty view
/// when they are malformed: cut off, a group without runs, a gap that is too wide, or not
/// 1..kMaxBlockSymbols symbols.
ByteView takeSymbols(Reader& in);

/// The block that a PARITY frame belongs to. `expected(subflow)` must return the packet number
/// after the largest one received on that subflow.
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
