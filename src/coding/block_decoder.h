#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/field.h"
#include "base/ring.h"
#include "base/time.h"
#include "coding/block.h"
#include "coding/closed_blocks.h"
#include "coding/symbol_groups.h"
#include "coding/symbol_ring.h"

namespace braid {

/// Bounds of a decoder's memory.
struct DecoderOptions {
  size_t symbolCapacity = 2048;  ///< bytes of the largest symbol, 1..65535
  size_t packets = 1024;         ///< symbols kept per subflow at most, rounded up to a power of two
  size_t blocks = 32;            ///< open blocks, 1..255
  size_t parities = 64;          ///< parities and unread restored symbols of all blocks, 1..65535
  size_t uncoded = SIZE_MAX;  ///< symbols kept of a subflow of which no parity has spoken, at most `packets`
  Budget* memory = nullptr;   ///< bytes, shared with others; nullptr: no more bounds than the above
};

/// Gives back lost symbols from the ones that arrive and parities (CoFUSO sections 4.3 and 5.3); other than
/// there, a block may span subflows. Works in any order of arrival. Everything in the calls comes from the
/// peer, so everything is checked.
///
/// Memory: a ring per subflow from its first symbol on, which grows as long as it has too few places for what comes within
/// keepFor(), less far until a parity speaks of the subflow; for blocks and parities as much as were needed at once since
/// the last release(). Where DecoderOptions::memory gives none, symbols are not kept and parities are useless.
///
/// Work: bounded by the symbols that come. A block that needs more, for its symbols were used many times before, waits
/// until there is enough, or until it is evicted.
class BlockDecoder final : private Keeper {
 public:
  enum class Verdict : uint8_t {
    kTaken,    ///< kept, or used at once
    kUseless,  ///< its symbols are all here, its block is decoded or evicted, it is there, or a tail without
               ///< head
    kBad,      ///< contradicts its block or is absurd
  };
  /// A symbol that decoding gave back, padded with zeros to the block's symbolSize.
  struct Restored {
    uint16_t block = 0;
    uint8_t subflow = 0;
    uint64_t pn = 0;
    ByteView symbol;
  };
  struct Counts {
    uint64_t wholeParities = 0, blocksDecoded = 0, restored = 0, evicted = 0;
  };

  /// Places of a ring at first. Ours: a burst of ten packets and some that are lost.
  static constexpr size_t kFirstPlaces = 16;

  explicit BlockDecoder(const DecoderOptions& options);
  ~BlockDecoder();

  /// How long after a symbol a parity may come that names it; until it is told, as long as there is room.
  void keepFor(Duration time) { keepFor_ = time; }

  /// A datagram with data arrived itself; the pieces are its symbol. Empty ones, those above the capacity and
  /// packet numbers above 2^62 - 1 are ignored.
  void onSymbol(uint8_t subflow, uint64_t pn, std::span<const ByteView> pieces, Time now);
  /// `part`: the first bytes of the parity with this index, all of it when it has block.symbolSize bytes.
  Verdict onParity(const BlockDescription& description, size_t index, ByteView part);
  /// The rest of a parity whose first bytes came before: `offset` is their number, and the part reaches to
  /// the end.
  Verdict onTail(uint16_t block, size_t index, size_t offset, ByteView part);
  /// Nothing has come for long: gives all memory back. What is incomplete is evicted.
  void release();
  /// No parity has come for long: rings are small again.
  void slacken();
  /// The next restored symbol; false when there is none. The view is valid until the next poll().
  bool poll(Restored& out);

  const Counts& counts() const { return counts_; }
  /// Symbols that came, those that were not kept included.
  uint64_t symbols() const { return symbols_; }
  /// Bytes of memory for symbols and parities.
  size_t footprint() const { return kept(); }

 private:
  struct Block;
  struct Parity;
  struct Pending {
    Restored symbol;
    size_t buffer = 0;
  };

  /// A subflow's ring, and when it was last written to, counted in symbols of all subflows.
  struct SubflowRing {
    std::unique_ptr<SymbolRing> symbols;
    uint64_t used = 0;
  };

  void giveBack() override;  // Keeper
  bool reserveBlock();
  bool addBuffers();
  size_t bufferBytes() const;
  /// Of a subflow's ring.
  size_t mostPlaces(uint8_t subflow) const {
    return std::bit_ceil(coded_[subflow] ? options_.packets : std::min(options_.packets, options_.uncoded));
  }
  size_t ringBytes(size_t packets) const { return SymbolRing::footprint(options_.symbolCapacity, packets); }
  SymbolRing* ringFor(uint8_t subflow, uint64_t pn);
  void grow(SubflowRing& ring, uint8_t subflow, uint64_t pn);
  void drop(SubflowRing& ring);
  Block* find(uint16_t id);
  SymbolRing* ring(uint8_t subflow) const {
    return subflow < rings_.size() ? rings_[subflow].symbols.get() : nullptr;
  }
  bool open(const BlockDescription& description);
  bool lookForSymbols(Block& block) const;
  Verdict take(Block& block, Parity& parity, size_t offset, ByteView part);
  bool allot(const Block& block, Parity& parity);
  bool note(uint8_t subflow, uint64_t pn, size_t size);
  void settle();
  static uint64_t workOf(const Block& block);
  bool decode(Block& block);
  void restore(Block& block, size_t column, Parity& parity);
  void close(size_t position);
  void evict(size_t position);

  DecoderOptions options_;
  Duration keepFor_ = Duration::max();
  Time now_{};                                  // when the last symbol came
  std::vector<SubflowRing> rings_;              // by subflow, as far as there were symbols
  std::bitset<256> coded_;                      // subflows that parities have spoken of
  uint64_t symbols_ = 0;                        // that came
  uint64_t work_;                               // that decoding may still take, see workOf()
  std::vector<std::unique_ptr<Block>> blocks_;  // at most one more than may be open: the one being opened
  std::vector<size_t> unused_;                  // of blocks_
  std::vector<size_t> order_;                   // the open ones of blocks_, oldest first
  ClosedBlocks ids_;
  SymbolGroups buffers_;      // parities, in place of which come the symbols that they restore
  std::vector<size_t> free_;  // of buffers_
  Ring<Pending> restored_;
  size_t polled_;  // the buffer that the last poll() gave out
  Counts counts_;
};

template <>
inline constexpr auto kFieldsOf<BlockDecoder::Counts> = field::table<BlockDecoder::Counts>(
    field::counter("whole_parities", FieldUnit::kPackets,
                   "parities that came whole, with their tail, as receiver",
                   &BlockDecoder::Counts::wholeParities),
    field::counter("blocks_decoded", FieldUnit::kNone, "coding blocks that parities completed, as receiver",
                   &BlockDecoder::Counts::blocksDecoded),
    field::counter("packets_decoded", FieldUnit::kPackets, "packets that decoding gave back, as receiver",
                   &BlockDecoder::Counts::restored),
    field::counter("blocks_evicted", FieldUnit::kNone,
                   "coding blocks given up before they were complete, as receiver: no room, or long past",
                   &BlockDecoder::Counts::evicted));

}  // namespace braid
