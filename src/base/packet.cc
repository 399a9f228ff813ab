#include "base/packet.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace braid {

namespace {
constexpr size_t kBlocksPerSlab = 64;
}

uint8_t* Packet::prepend(size_t n) {
  assert(n <= headroom());
  offset_ -= static_cast<uint32_t>(n);
  size_ += static_cast<uint32_t>(n);
  return data();
}

uint8_t* Packet::append(size_t n) {
  assert(n <= tailroom());
  uint8_t* end = data() + size_;
  size_ += static_cast<uint32_t>(n);
  return end;
}

void Packet::trimFront(size_t n) {
  assert(n <= size_);
  offset_ += static_cast<uint32_t>(n);
  size_ -= static_cast<uint32_t>(n);
}

void Packet::setSize(size_t n) {
  assert(n <= size_ + tailroom());
  size_ = static_cast<uint32_t>(n);
}

void Packet::reset() {
  if (!pool_) return;
  pool_->release(block_);
  pool_ = nullptr;
  block_ = nullptr;
  offset_ = size_ = 0;
}

PacketPool::PacketPool(size_t payload, size_t limit)
    : payload_(payload),
      limit_(limit),
      budgets_{Budget(limit / 4), Budget(limit / 8 * 3), Budget(limit / 4)} {
  free_.reserve(limit);
  slabs_.reserve(limit / kBlocksPerSlab + 1);
}

PacketPool::~PacketPool() {
  assert(inUse_ == 0 && "a packet outlives its pool");
}

Packet PacketPool::allocate() {
  if (free_.empty()) {
    size_t more = std::min(kBlocksPerSlab, limit_ - made_);
    std::unique_ptr<uint8_t[]> slab(more > 0 ? new (std::nothrow) uint8_t[more * blockSize()] : nullptr);
    if (!slab) {  // all are in use, or the machine has no memory for more
      ++exhausted_;
      return {};
    }
    slabs_.push_back(std::move(slab));
    for (size_t i = 0; i < more; ++i) free_.push_back(slabs_.back().get() + i * blockSize());
    made_ += more;
  }
  Packet p;
  p.pool_ = this;
  p.block_ = free_.back();
  p.offset_ = kHeadroom;
  free_.pop_back();
  ++inUse_;
  return p;
}

Packet PacketPool::copy(ByteView bytes) {
  if (bytes.size() > payload_) return {};
  Packet p = allocate();
  if (p && !bytes.empty()) std::memcpy(p.append(bytes.size()), bytes.data(), bytes.size());
  return p;
}

void PacketPool::release(uint8_t* block) {
  free_.push_back(block);
  --inUse_;
}

}  // namespace braid
