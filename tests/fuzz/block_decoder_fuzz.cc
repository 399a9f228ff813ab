// The block decoder on any sequence of symbols, parities and tails. Input: one byte that chooses
// the limits, then calls; each has a byte for its kind and its fields (below). Sizes and numbers
// are small, so that calls concern the same blocks; one bit of the kind makes them absurdly large.
// Memory must stay limited, and restored symbols must fit their block.

#include <algorithm>
#include <array>
#include <vector>

#include "coding/block_decoder.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using namespace braid;
using fuzz::require;

constexpr size_t kCapacity = 80;
const std::array<DecoderOptions, 4> kBounds{
    {{kCapacity, 16, 2, 4}, {kCapacity, 8, 1, 1}, {kCapacity, 64, 8, 64}, {kCapacity, 4, 3, 2}}};

class Calls {
 public:
  Calls(const DecoderOptions& options, ByteView input) : decoder_(options), in_(input) {
    decoder_.keepFor(100ms);
  }

  void run() {
    while (in_.remaining() > 0) {
      const uint8_t kind = in_.u8();
      absurd_ = (kind & 0x80) != 0;
      switch (kind & 3) {
        case 0:
          symbol();
          break;
        case 1:
          parity();
          break;
        case 2:
          tail();
          break;
        default:
          poll();
          break;
      }
      if ((kind & 0x40) != 0) poll();
    }
    while (poll()) {
    }
    const auto& counts = decoder_.counts();
    require(counts.restored >= counts.blocksDecoded, "a decoded block that gave nothing back");
    require(counts.restored == polled_, "a restored symbol was lost");
  }

 private:
  uint64_t number() { return absurd_ ? in_.u64() : in_.u8(); }

  // Bytes of one value.
  ByteView bytes() {
    const size_t size = absurd_ ? in_.u16() : in_.u8() % (kCapacity + 8);
    fill_.assign(size, in_.u8());
    return fill_;
  }
  void symbol() {
    const uint8_t subflow = in_.u8() & 3;
    const uint64_t pn = number();
    const ByteView all = bytes();
    const std::array<ByteView, 2> pieces{all.first(all.size() / 2), all.subspan(all.size() / 2)};
    now_ += std::chrono::milliseconds(pn % 64);
    decoder_.onSymbol(subflow, pn, pieces, now_);
  }
  void parity() {
    BlockDescription block;
    block.block = absurd_ ? in_.u16() : in_.u8() & 15;
    block.parities = in_.u8() & (absurd_ ? 255 : 3);
    block.symbolSize = absurd_ ? in_.u16() : in_.u8() % (kCapacity + 1);
    block.rangeCount = absurd_ ? in_.u16() : in_.u8() & 3;
    for (size_t i = 0; i < std::min(block.rangeCount, kMaxBlockSymbols); ++i) {
      block.ranges[i].subflow = in_.u8() & 3;
      block.ranges[i].first = number();
      block.ranges[i].count = absurd_ ? in_.u32() : in_.u8() & 7;
    }
    const size_t index = absurd_ ? in_.u64() : in_.u8() & 3;
    const ByteView part = bytes();
    const auto verdict = decoder_.onParity(block, index, part);
    if (verdict == BlockDecoder::Verdict::kBad) return;
    require(block.parities >= 1 && block.parities <= kMaxBlockParities && index < block.parities,
            "wrong parity");
    require(block.rangeCount <= kMaxBlockSymbols && block.symbols() >= 1 &&
                block.symbols() <= kMaxBlockSymbols,
            "a block of a wrong size");
    require(block.symbolSize <= kCapacity && part.size() <= block.symbolSize,
            "a symbol of a wrong size");
  }
  void tail() {
    const uint16_t block = absurd_ ? in_.u16() : in_.u8() & 15;
    const size_t index = absurd_ ? in_.u64() : in_.u8() & 3;
    const size_t offset = absurd_ ? in_.u64() : in_.u8() % kCapacity;
    decoder_.onTail(block, index, offset, bytes());
  }
  bool poll() {
    BlockDecoder::Restored out;
    if (!decoder_.poll(out)) return false;
    ++polled_;
    require(!out.symbol.empty() && out.symbol.size() <= kCapacity,
            "a restored symbol of a wrong size");
    require(out.pn < uint64_t{1} << 62, "a restored symbol with an absurd packet number");
    unsigned sum = 0;
    // reads all of it, so that the sanitizer checks every byte
    for (uint8_t byte : out.symbol) sum += byte;
    require(sum <= 255 * kCapacity, "arithmetic");
    return true;
  }

  BlockDecoder decoder_;
  Time now_{};
  Reader in_;
  bool absurd_ = false;
  uint64_t polled_ = 0;
  std::vector<uint8_t> fill_;
};

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  if (size == 0) return;
  Calls(kBounds[data[0] & 3], ByteView(data + 1, size - 1)).run();
}
