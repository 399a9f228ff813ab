#include "base/packet.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>
#include <utility>

namespace braid {

namespace {
constexpr size_t kSlabsPerShrink =
    32;  // about 4 MB, which the kernel takes back in well under a millisecond

// Ends the process instead of writing outside of a block: also in a release, because a mistake here
// could be one that a peer's datagram brings about.
void require(bool isWithinBlock) {
  if (!isWithinBlock) [[unlikely]]
    __builtin_trap();
}
}  // namespace

uint8_t* Packet::prepend(size_t n) {
  require(n <= headroom());
  offset_ -= static_cast<uint32_t>(n);
  size_ += static_cast<uint32_t>(n);
  return data();
}

uint8_t* Packet::append(size_t n) {
  require(n <= tailroom());
  uint8_t* end = data() + size_;
  size_ += static_cast<uint32_t>(n);
  return end;
}

void Packet::trimFront(size_t n) {
  require(n <= size_);
  offset_ += static_cast<uint32_t>(n);
  size_ -= static_cast<uint32_t>(n);
}

void Packet::setSize(size_t n) {
  require(n <= size_ + tailroom());
  size_ = static_cast<uint32_t>(n);
}

void Packet::release() {
  slab_->pool->release(*slab_, block_);
  slab_ = nullptr;
  block_ = nullptr;
  offset_ = size_ = 0;
}

PacketPool::PacketPool(size_t payload, size_t limit)
    : payload_(payload),
      limit_(limit),
      quotas_{MemoryQuota(limit / 4), MemoryQuota(limit / 8 * 3), MemoryQuota(limit / 4)} {}

PacketPool::~PacketPool() {
  assert(inUse_ == 0 && "a packet outlives its pool");
  while (!slabs_.empty()) unmap(*slabs_.back());
}

// Returns nullptr when `limit` blocks exist or the system has no memory. The slab is mapped
// directly instead of allocated on the heap, because the heap would seldom return its memory to the
// system.
PacketSlab* PacketPool::makeSlab() {
  size_t blocks = std::min(PacketSlab::kMostBlocks, limit_ - made_);
  if (blocks == 0) return nullptr;
  void* memory = ::mmap(nullptr, slabBytes(blocks), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* slab = new (memory) PacketSlab{this, blocks, 0, {}};
  slab->free = slab->all();
  made_ += blocks;
  ++spare_;
  slabs_.pushBack(*slab);
  return slab;
}

void PacketPool::unmap(PacketSlab& slab) {
  slabs_.erase(slab);
  made_ -= slab.blocks;
  --spare_;
  ::munmap(&slab, slabBytes(slab.blocks));
}

bool PacketPool::shrink() {
  size_t some = std::min(leastSpare_, kSlabsPerShrink);
  for (size_t n = 0; n < some; ++n) unmap(*slabs_.back());
  leastSpare_ -= some;
  if (leastSpare_ > 0) return true;
  leastSpare_ = spare_;
  return false;
}

size_t PacketPool::footprint() const {
  return made_ * stride();
}

Packet PacketPool::allocate() {
  PacketSlab* slab = slabs_.empty() ? makeSlab() : slabs_.front();
  if (!slab) {
    ++exhausted_;
    return {};
  }
  if (slab->free == slab->all()) leastSpare_ = std::min(leastSpare_, --spare_);
  auto index = static_cast<size_t>(std::countr_zero(slab->free));
  slab->free &= slab->free - 1;
  if (slab->free == 0) slabs_.erase(*slab);
  Packet p;
  p.slab_ = slab;
  p.block_ = slab->first() + index * stride();
  p.offset_ = kHeadroom;
  ++inUse_;
  return p;
}

Packet PacketPool::copy(ByteView bytes) {
  if (bytes.size() > payload_) return {};
  Packet p = allocate();
  if (p && !bytes.empty()) std::memcpy(p.append(bytes.size()), bytes.data(), bytes.size());
  return p;
}

void PacketPool::release(PacketSlab& slab, const uint8_t* block) {
  auto distance = static_cast<uint32_t>(block - slab.first());
  --inUse_;
  bool wasListed = slab.free != 0;
  slab.free |= uint64_t{1} << distance / static_cast<uint32_t>(stride());
  if (slab.free == slab.all()) {
    if (wasListed) slabs_.erase(slab);
    slabs_.pushBack(slab);
    ++spare_;
  } else if (!wasListed) {
    slabs_.pushFront(slab);
  }
}

}  // namespace braid
