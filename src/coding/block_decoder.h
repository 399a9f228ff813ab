#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/containers.h"
#include "base/field.h"
#include "base/memory_quota.h"
#include "base/time.h"
#include "coding/symbols.h"

namespace braid {

/// Remembers which of the last kWindow block ids are closed: decoded, evicted, or not needed. Ids
/// count up modulo 2^16; an id that is less than 2^15 ahead of the newest is newer.
class ClosedBlocks {
 public:
  /// How far an id may lag behind the newest. Chosen: blocks come in order, except for the
  /// difference of the paths' delays.
  static constexpr uint16_t kWindow = 1024;

  /// Whether the id is older than the window, or was closed before.
  bool closed(uint16_t id) const { return tooOld(id) || (!isNewer(id) && closed_[id % kWindow]); }
  /// Whether the id is older than the window.
  bool tooOld(uint16_t id) const {
    return !isNewer(id) && static_cast<uint16_t>(newest_ - id) >= kWindow;
  }
  /// A block with this id has come. True when it is the newest.
  bool advance(uint16_t id) {
    if (!isNewer(id)) return false;
    const uint16_t steps = any_ ? static_cast<uint16_t>(id - newest_) : kWindow;
    if (steps >= kWindow) {
      closed_.reset();
    } else {
      for (uint16_t i = 0; i < steps; ++i) closed_[static_cast<uint16_t>(id - i) % kWindow] = false;
    }
    newest_ = id;
    any_ = true;
    return true;
  }
  /// Marks an id that advance() has seen.
  void close(uint16_t id) {
    if (!tooOld(id)) closed_[id % kWindow] = true;
  }

 private:
  bool isNewer(uint16_t id) const {
    const auto ahead = static_cast<uint16_t>(id - newest_);
    return !any_ || (ahead != 0 && ahead < 0x8000);
  }
  bool any_ = false;
  uint16_t newest_ = 0;
  std::bitset<kWindow> closed_;
};

/// Limits for a decoder's memory.
struct DecoderOptions {
  size_t symbolCapacity = 2048;  ///< bytes of the largest symbol, 1..65535
  size_t packets = 1024;         ///< most symbols kept per subflow, rounded up to a power of two
  size_t blocks = 32;            ///< open blocks, 1..255
  size_t parities = 64;          ///< parities and unread restored symbols of all blocks, 1..65535
  /// Most symbols kept of a subflow that no parity has named since the last release() or slacken();
  /// `packets` is a limit here, too.
  size_t uncoded = SIZE_MAX;
  /// Quota of bytes, shared with others; nullptr: only the limits above apply.
  MemoryQuota* memory = nullptr;
};

/// Restores lost symbols from those that arrive and from parities (CoFUSO sections 4.3 and 5.3).
/// Unlike in CoFUSO, a block may span subflows. Symbols and parities may arrive in any order.
/// Everything in the calls comes from the peer, so everything is checked.
///
/// Memory: each subflow has a ring from its first symbol on. The ring grows while it has too few
/// places for what comes within the time of keepFor(), up to DecoderOptions::uncoded places, or
/// `packets` once a parity has named the subflow. Blocks and parities take as much as was needed at
/// once since the last release(). Where DecoderOptions::memory has no room, symbols are not kept
/// and parities are useless.
///
/// Work: each symbol that comes allows a fixed amount of decoding work. A block that needs more
/// than is left, because its symbols were used many times before, waits until there is enough, or
/// until it is evicted.
class BlockDecoder final : private QuotaUser {
 public:
  enum class Verdict : uint8_t {
    kTaken,  ///< kept, or used at once
    /// All symbols are here, the block is decoded or evicted, the parity was there already, it is a
    /// tail without its first part, or memory is short.
    kUseless,
    kBad,  ///< contradicts its block or is absurd
  };
  /// A symbol that decoding restored, padded with zeros to the block's symbolSize.
  struct Restored {
    uint16_t block = 0;
    uint8_t subflow = 0;
    uint64_t pn = 0;
    ByteView symbol;
  };
  struct Counts {
    uint64_t wholeParities = 0, blocksDecoded = 0, restored = 0, evicted = 0;
  };

  /// Places of a ring at first. Chosen: a burst of ten packets and some that are lost.
  static constexpr size_t kFirstPlaces = 16;

  explicit BlockDecoder(const DecoderOptions& options);
  ~BlockDecoder();

  /// Sets how long after a symbol a parity that names it may come. Without this call, symbols are
  /// kept as long as there is room.
  void keepFor(Duration time) { keepFor_ = time; }

  /// A datagram with data arrived; the pieces form its symbol. Empty symbols, symbols above the
  /// capacity, and packet numbers above 2^62 - 1 are ignored.
  void onSymbol(uint8_t subflow, uint64_t pn, std::span<const ByteView> pieces, Time now);
  /// A parity arrived. `part`: the first bytes of the parity with this index; the whole parity when
  /// it has `symbolSize` bytes.
  Verdict onParity(const BlockDescription& description, size_t index, ByteView part);
  /// The rest of a parity arrived. `offset`: the number of bytes that came before; `part` is all
  /// the bytes after them.
  Verdict onTail(uint16_t block, size_t index, size_t offset, ByteView part);
  /// Frees all memory; called when nothing has come for some time. Incomplete blocks are evicted.
  void release();
  /// Shrinks the rings to DecoderOptions::uncoded; called when no parity has come for some time.
  void slacken();
  /// The next restored symbol; false when there is none. The view is valid until the next poll().
  bool poll(Restored& out);

  const Counts& counts() const { return counts_; }
  /// Symbols that came, including those that were not kept.
  uint64_t symbols() const { return symbols_; }
  /// Bytes of memory for symbols and parities.
  size_t footprint() const { return used(); }

 private:
  struct Block;
  struct Parity;
  struct Pending {
    Restored symbol;
    size_t buffer = 0;
  };

  /// A subflow's ring, and when it was last written to (`used`: the value of symbols_ then).
  struct SubflowRing {
    std::unique_ptr<SymbolRing> symbols;
    uint64_t used = 0;
  };

  void reclaim() override;  // QuotaUser
  bool reserveBlock();
  bool addBuffers();
  size_t bufferBytes() const;
  /// Largest number of places that a subflow's ring may have now.
  size_t mostPlaces(uint8_t subflow) const {
    return std::bit_ceil(coded_[subflow] ? options_.packets
                                         : std::min(options_.packets, options_.uncoded));
  }
  size_t ringBytes(size_t packets) const {
    return SymbolRing::footprint(options_.symbolCapacity, packets);
  }
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
  Time now_{};                      // when the last symbol came
  std::vector<SubflowRing> rings_;  // by subflow, up to the highest one that sent a symbol
  std::bitset<256> coded_;          // subflows that parities have named
  uint64_t symbols_ = 0;            // number of symbols that came
  uint64_t work_;                   // work that decoding may still do, see workOf()
  // At most one more than may be open: the one being opened.
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<size_t> unused_;  // indices into blocks_
  std::vector<size_t> order_;   // indices into blocks_ of the open blocks, oldest first
  ClosedBlocks ids_;
  SymbolGroups buffers_;      // parities; decoding overwrites them with the restored symbols
  std::vector<size_t> free_;  // indices into buffers_
  Ring<Pending> restored_;
  size_t polled_;  // the buffer that the last poll() gave out
  Counts counts_;
};

template <>
inline constexpr auto kFieldsOf<BlockDecoder::Counts> = field::table<BlockDecoder::Counts>(
    field::counter("whole_parities", FieldUnit::kPackets,
                   "parities that came whole, with their tail, as receiver",
                   &BlockDecoder::Counts::wholeParities),
    field::counter("blocks_decoded", FieldUnit::kNone,
                   "coding blocks that parities completed, as receiver",
                   &BlockDecoder::Counts::blocksDecoded),
    field::counter("packets_decoded", FieldUnit::kPackets,
                   "packets that decoding gave back, as receiver", &BlockDecoder::Counts::restored),
    field::counter(
        "blocks_evicted", FieldUnit::kNone,
        "coding blocks given up before they were complete, as receiver: no room, or long past",
        &BlockDecoder::Counts::evicted));

}  // namespace braid
