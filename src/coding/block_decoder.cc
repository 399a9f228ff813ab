#include "coding/block_decoder.h"

#include <algorithm>
#include <bit>

#include "coding/erasure_code.h"

namespace braid {
namespace {

constexpr size_t kNone = SIZE_MAX;
/// Decoding work is counted in products of a parity and a symbol. At most kMostWork may be saved
/// up: the work of 32 full blocks. Each symbol that comes adds kWorkOfASymbol, as many products as
/// one block may need of it. So a sender that puts each symbol into one block never reaches the
/// limit.
constexpr uint64_t kMostWork = 32 * kMaxBlockSymbols * kMaxBlockParities;
constexpr uint64_t kWorkOfASymbol = kMaxBlockParities;
constexpr uint64_t kMaxPacketNumber = (uint64_t{1} << 62) - 1;  // RFC 9000 section 12.3

std::span<const SymbolRange> rangesOf(const BlockDescription& description) {
  return {description.ranges.data(), description.rangeCount};
}

// Checks everything, except whether the ranges are disjoint.
bool isPlausible(const BlockDescription& description, size_t capacity) {
  if (description.parities == 0 || description.parities > kMaxBlockParities) return false;
  if (description.symbolSize == 0 || description.symbolSize > capacity) return false;
  if (description.rangeCount == 0 || description.rangeCount > kMaxBlockSymbols) return false;
  uint64_t symbols = 0;  // 128 counts of 32 bits do not overflow it
  for (const SymbolRange& range : rangesOf(description)) {
    if (range.count == 0) return false;
    if (range.first > kMaxPacketNumber - (range.count - 1)) return false;
    symbols += range.count;
  }
  return symbols <= kMaxBlockSymbols;
}

bool isDisjoint(const BlockDescription& description) {
  std::array<SymbolRange, kMaxBlockSymbols> sorted;
  auto end = std::ranges::copy(rangesOf(description), sorted.begin()).out;
  std::sort(sorted.begin(), end, [](const SymbolRange& a, const SymbolRange& b) {
    return a.subflow != b.subflow ? a.subflow < b.subflow : a.first < b.first;
  });
  return std::adjacent_find(sorted.begin(), end, [](const SymbolRange& a, const SymbolRange& b) {
           return a.subflow == b.subflow && b.first - a.first < a.count;
         }) == end;
}

bool isSame(const BlockDescription& a, const BlockDescription& b) {
  return a.block == b.block && a.parities == b.parities && a.symbolSize == b.symbolSize &&
         a.rangeCount == b.rangeCount && std::ranges::equal(rangesOf(a), rangesOf(b));
}

}  // namespace

struct BlockDecoder::Parity {
  size_t buffer = kNone;  // index into buffers_
  size_t size = 0;        // bytes that have come
};

struct BlockDecoder::Block {
  BlockDescription description;
  size_t symbols = 0;                  // K
  std::bitset<256> subflows;           // subflows of the ranges
  uint64_t low = 0, high = 0;          // lowest and highest packet number of all ranges
  std::bitset<kMaxBlockSymbols> have;  // columns found by lookForSymbols(), and what came since
  size_t whole = 0;                    // parities that have come in full
  bool lies = false;                   // a symbol is longer than the description says
  std::array<Parity, kMaxBlockParities> parities;

  // Takes over the description. Copies only the ranges that are in use.
  void start(const BlockDescription& from) {
    description.block = from.block;
    description.parities = from.parities;
    description.symbolSize = from.symbolSize;
    description.rangeCount = from.rangeCount;
    std::ranges::copy(rangesOf(from), description.ranges.begin());
    symbols = from.symbols();
    subflows.reset();
    low = UINT64_MAX;
    high = 0;
    for (const SymbolRange& range : rangesOf(from)) {
      subflows[range.subflow] = true;
      low = std::min(low, range.first);
      high = std::max(high, range.first + range.count - 1);
    }
    whole = 0;
    lies = false;
    parities.fill({});
  }

  // The column of a symbol, or kNone.
  size_t columnOf(uint8_t subflow, uint64_t pn) const {
    if (pn < low || pn > high || !subflows[subflow]) return kNone;
    size_t column = 0;
    for (const SymbolRange& range : rangesOf(description)) {
      if (range.subflow == subflow && pn >= range.first && pn - range.first < range.count) {
        return column + static_cast<size_t>(pn - range.first);
      }
      column += range.count;
    }
    return kNone;
  }

  size_t missing() const { return symbols - have.count(); }
};

BlockDecoder::BlockDecoder(const DecoderOptions& options)
    : QuotaUser(options.memory, Reclaimable::kYes),
      options_(options),
      work_(kMostWork),
      buffers_(options.symbolCapacity, options.parities),
      polled_(kNone) {
  ErasureCode::prepare();
}

BlockDecoder::~BlockDecoder() = default;

// ---- memory

size_t BlockDecoder::bufferBytes() const {
  return blocks_.size() * sizeof(Block) + buffers_.footprint();
}

// Makes sure that there is an unused block. When memory is too short for one more, the oldest open
// block is evicted; otherwise blocks that never become complete would keep later ones out. False
// when memory is too short for a single block.
bool BlockDecoder::reserveBlock() {
  if (!unused_.empty()) return true;
  if (!makeRoom(sizeof(Block))) {
    if (order_.empty()) return false;
    evict(0);
    return true;
  }
  const size_t place = blocks_.size();
  unused_.reserve(place + 1);  // closing a block takes no memory
  order_.reserve(place + 1);
  blocks_.push_back(std::make_unique<Block>());
  unused_.push_back(place);
  setUsed(used() + sizeof(Block));
  return true;
}

// Adds some buffers. False when their largest number is reached, or when memory is short.
bool BlockDecoder::addBuffers() {
  const size_t more = buffers_.growth();
  if (more == 0 || !makeRoom(more)) return false;
  size_t i = buffers_.size();
  buffers_.grow();
  setUsed(used() + more);
  free_.reserve(buffers_.size());  // freeing a buffer takes no memory
  for (; i < buffers_.size(); ++i) free_.push_back(i);
  return true;
}

// The ring for a symbol that has come; nullptr: memory is too short for a ring.
SymbolRing* BlockDecoder::ringFor(uint8_t subflow, uint64_t pn) {
  if (rings_.size() <= subflow) rings_.resize(subflow + size_t{1});
  SubflowRing& own = rings_[subflow];
  own.used = ++symbols_;
  if (!own.symbols) {
    const size_t first = std::min(mostPlaces(subflow), kFirstPlaces);
    if (!makeRoom(ringBytes(first))) return nullptr;
    own.symbols = std::make_unique<SymbolRing>(options_.symbolCapacity, first);
    setUsed(used() + ringBytes(first));
  }
  grow(own, subflow, pn);
  return own.symbols.get();
}

// Grows the ring so that this symbol has a place without overwriting one that came within keepFor_.
void BlockDecoder::grow(SubflowRing& ring, uint8_t subflow, uint64_t pn) {
  const size_t had = ring.symbols->packets();
  const size_t wanted = ring.symbols->placesFor(pn, now_, keepFor_, mostPlaces(subflow));
  if (wanted <= had || !makeRoom(ringBytes(wanted) - ringBytes(had))) return;
  ring.symbols->resize(options_.symbolCapacity, wanted);
  setUsed(used() + ringBytes(wanted) - ringBytes(had));
}

void BlockDecoder::drop(SubflowRing& ring) {
  setUsed(used() - ringBytes(ring.symbols->packets()));
  ring.symbols.reset();
}

// Frees the largest ring; among equal ones the one that was not used for the longest time. Without
// rings, frees all the rest.
void BlockDecoder::reclaim() {
  SubflowRing* least = nullptr;
  for (SubflowRing& ring : rings_) {
    if (!ring.symbols) continue;
    size_t packets = ring.symbols->packets(), most = least ? least->symbols->packets() : 0;
    if (packets > most || (packets == most && ring.used < least->used)) least = &ring;
  }
  if (least) return drop(*least);
  release();
}

// Restored symbols that were not read yet are kept, and with them all blocks and buffers.
void BlockDecoder::release() {
  for (SubflowRing& ring : rings_) {
    if (ring.symbols) drop(ring);
  }
  coded_.reset();
  if (blocks_.empty() || polled_ != kNone || !restored_.empty()) return;
  while (!order_.empty()) evict(0);
  const size_t left = used() - bufferBytes();
  // New vectors: `= {}`, an empty list, would keep their capacity.
  blocks_ = std::vector<std::unique_ptr<Block>>();
  for (std::vector<size_t>* indices : {&unused_, &order_, &free_}) *indices = std::vector<size_t>();
  buffers_.clear();
  setUsed(left);
}

void BlockDecoder::slacken() {
  coded_.reset();
  const size_t few = mostPlaces(0);
  for (SubflowRing& ring : rings_) {
    const size_t had = ring.symbols ? ring.symbols->packets() : 0;
    if (had <= few) continue;
    ring.symbols->resize(options_.symbolCapacity, few);
    setUsed(used() + ringBytes(few) - ringBytes(had));
  }
}

// ---- what comes

void BlockDecoder::onSymbol(uint8_t subflow, uint64_t pn, std::span<const ByteView> pieces,
                            Time now) {
  const size_t size = totalSize(pieces);
  if (size == 0 || size > options_.symbolCapacity || pn > kMaxPacketNumber) return;
  work_ = std::min(kMostWork, work_ + kWorkOfASymbol);
  now_ = now;
  SymbolRing* own = ringFor(subflow, pn);
  if (own && own->add(pn, pieces, now) && note(subflow, pn, size)) settle();
}

BlockDecoder::Verdict BlockDecoder::onParity(const BlockDescription& description, size_t index,
                                             ByteView part) {
  if (!isPlausible(description, options_.symbolCapacity) || index >= description.parities ||
      part.empty() || part.size() > description.symbolSize) {
    return Verdict::kBad;
  }
  Block* block = find(description.block);
  if (!block) {
    if (ids_.closed(description.block)) return Verdict::kUseless;
    if (!isDisjoint(description)) return Verdict::kBad;
    if (!reserveBlock()) return Verdict::kUseless;
    for (const SymbolRange& range : rangesOf(description)) coded_[range.subflow] = true;
    if (!open(description)) return Verdict::kBad;
    block = find(description.block);
    if (!block) return Verdict::kUseless;
  } else if (!isSame(block->description, description)) {
    return Verdict::kBad;
  }
  Parity& parity = block->parities[index];
  return part.size() <= parity.size ? Verdict::kUseless : take(*block, parity, 0, part);
}

BlockDecoder::Verdict BlockDecoder::onTail(uint16_t id, size_t index, size_t offset,
                                           ByteView part) {
  if (index >= kMaxBlockParities || part.empty()) return Verdict::kBad;
  Block* block = find(id);
  if (!block) return Verdict::kUseless;
  if (index >= block->description.parities) return Verdict::kBad;
  const size_t symbolSize = block->description.symbolSize;
  if (offset >= symbolSize || part.size() != symbolSize - offset) return Verdict::kBad;
  Parity& parity = block->parities[index];
  if (parity.size == 0 || parity.size == symbolSize) return Verdict::kUseless;
  if (offset != parity.size) return Verdict::kBad;
  return take(*block, parity, offset, part);
}

bool BlockDecoder::poll(Restored& out) {
  if (polled_ != kNone) {
    free_.push_back(polled_);
    polled_ = kNone;
  }
  if (restored_.empty()) return false;
  out = restored_.front().symbol;
  polled_ = restored_.front().buffer;
  restored_.popFront();
  return true;
}

BlockDecoder::Block* BlockDecoder::find(uint16_t id) {
  for (size_t i : order_) {
    if (blocks_[i]->description.block == id) return blocks_[i].get();
  }
  return nullptr;
}

// Opens a block, unless all its symbols are here. False when a symbol contradicts the description.
bool BlockDecoder::open(const BlockDescription& description) {
  const size_t place = unused_.back();
  Block& block = *blocks_[place];
  block.start(description);
  if (!lookForSymbols(block)) return false;
  if (ids_.advance(description.block)) {
    for (size_t i = order_.size(); i-- > 0;) {
      if (ids_.tooOld(blocks_[order_[i]]->description.block)) evict(i);
    }
  }
  if (block.missing() == 0) return ids_.close(description.block), true;
  if (order_.size() == options_.blocks) evict(0);
  std::erase(unused_, place);
  order_.push_back(place);
  return true;
}

// Finds out which symbols of the block are in the rings now. False when one is longer than the
// description says.
bool BlockDecoder::lookForSymbols(Block& block) const {
  block.have.reset();
  size_t column = 0;
  for (const SymbolRange& range : rangesOf(block.description)) {
    const SymbolRing* symbols = ring(range.subflow);
    for (uint32_t i = 0; i < range.count; ++i, ++column) {
      auto symbol = symbols ? symbols->find(range.first + i) : std::nullopt;
      if (!symbol) continue;
      if (symbol->size() > block.description.symbolSize) return false;
      block.have[column] = true;
    }
  }
  return true;
}

BlockDecoder::Verdict BlockDecoder::take(Block& block, Parity& parity, size_t offset,
                                         ByteView part) {
  if (parity.buffer == kNone && !allot(block, parity)) return Verdict::kUseless;
  uint8_t* buffer = buffers_[parity.buffer];
  std::memcpy(buffer + offset, part.data(), part.size());
  parity.size = offset + part.size();
  if (parity.size < block.description.symbolSize) return Verdict::kTaken;
  padSymbol(buffer, parity.size);
  ++block.whole;
  ++counts_.wholeParities;
  settle();
  return Verdict::kTaken;
}

// Finds a buffer for a parity. When no more buffers can be added, the oldest other block that has
// one is evicted. False when no other block has one.
bool BlockDecoder::allot(const Block& block, Parity& parity) {
  while (free_.empty() && !addBuffers()) {
    auto oldest = std::ranges::find_if(order_, [&](size_t i) {
      return blocks_[i].get() != &block &&
             std::ranges::any_of(blocks_[i]->parities,
                                 [](const Parity& p) { return p.buffer != kNone; });
    });
    if (oldest == order_.end()) return false;
    evict(static_cast<size_t>(oldest - order_.begin()));
  }
  parity.buffer = free_.back();
  free_.pop_back();
  return true;
}

// Marks a symbol as present in the open blocks that include it. True when there is such a block.
bool BlockDecoder::note(uint8_t subflow, uint64_t pn, size_t size) {
  bool held = false;
  for (size_t i : order_) {
    Block& block = *blocks_[i];
    const size_t column = block.columnOf(subflow, pn);
    if (column == kNone) continue;
    held = true;
    block.have[column] = true;
    block.lies |= size > block.description.symbolSize;
  }
  return held;
}

// Decodes the blocks that can be decoded, and closes those that need no decoding. After each
// decoding the search starts again, because an older block may wait for a restored symbol. Each
// restart closes a block, so there are no more restarts than blocks.
void BlockDecoder::settle() {
  for (size_t i = 0; i < order_.size();) {
    Block& block = *blocks_[order_[i]];
    if (block.lies || block.missing() == 0) {
      close(i);
    } else if (block.missing() <= block.whole && decode(block)) {
      close(i);
      i = 0;
    } else {
      ++i;
    }
  }
}

// Number of products of a parity and a symbol that decoding the block takes: each present symbol is
// multiplied into as many parities as symbols are missing.
uint64_t BlockDecoder::workOf(const Block& block) {
  return block.missing() * block.have.count();
}

// Decodes the block. False when symbols that had come were overwritten in their rings, so that too
// few are left, or when the work is too much for now.
bool BlockDecoder::decode(Block& block) {
  if (workOf(block) > work_ || !lookForSymbols(block) || block.missing() > block.whole)
    return false;
  work_ -= std::min(work_, workOf(block));
  const size_t size = block.description.symbolSize;
  std::array<ErasureCode::Symbol, kMaxBlockSymbols> present;
  std::array<size_t, kMaxBlockParities> missing;
  size_t presentCount = 0, missingCount = 0, column = 0;
  for (const SymbolRange& range : rangesOf(block.description)) {
    for (uint32_t i = 0; i < range.count; ++i, ++column) {
      if (block.have[column]) {
        present[presentCount++] = {column, *ring(range.subflow)->find(range.first + i)};
      } else {
        missing[missingCount++] = column;
      }
    }
  }
  std::array<size_t, kMaxBlockParities> indices;
  std::array<uint8_t*, kMaxBlockParities> buffers;
  for (size_t index = 0, n = 0; n < missingCount; ++index) {
    const Parity& parity = block.parities[index];
    if (parity.size < size) continue;
    indices[n] = index;
    buffers[n++] = buffers_[parity.buffer];
    ErasureCode::addTo({buffers_[parity.buffer], size}, index, {present.data(), presentCount});
  }
  ErasureCode::restore({missing.data(), missingCount}, {indices.data(), missingCount},
                       {buffers.data(), missingCount}, size);
  for (size_t i = 0; i < missingCount; ++i) restore(block, missing[i], block.parities[indices[i]]);
  ++counts_.blocksDecoded;
  return true;
}

// Takes over the symbol of this column, which the parity's buffer holds now.
void BlockDecoder::restore(Block& block, size_t column, Parity& parity) {
  const SymbolRange* range = block.description.ranges.data();
  size_t offset = column;
  for (; offset >= range->count; ++range) offset -= range->count;
  const uint64_t pn = range->first + offset;
  const ByteView symbol(buffers_[parity.buffer], block.description.symbolSize);
  restored_.pushBack({{block.description.block, range->subflow, pn, symbol}, parity.buffer});
  parity.buffer = kNone;
  ++counts_.restored;
  SymbolRing* symbols = ring(range->subflow);
  if (symbols && !symbols->isOld(pn)) grow(rings_[range->subflow], range->subflow, pn);
  if (symbols && symbols->addRestored(pn, symbol))
    note(range->subflow, pn, symbols->find(pn)->size());
}

void BlockDecoder::close(size_t position) {
  Block& block = *blocks_[order_[position]];
  for (const Parity& parity : block.parities) {
    if (parity.buffer != kNone) free_.push_back(parity.buffer);
  }
  ids_.close(block.description.block);
  unused_.push_back(order_[position]);
  order_.erase(order_.begin() + static_cast<ptrdiff_t>(position));
}

void BlockDecoder::evict(size_t position) {
  ++counts_.evicted;
  close(position);
}

}  // namespace braid
