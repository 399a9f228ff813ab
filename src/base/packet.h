#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/intrusive_list.h"

namespace braid {

class PacketPool;
struct PacketSlab;

/// A pooled buffer with room before and after its bytes, so that one buffer goes from device to socket.
/// Move-only; gives its block back on destruction. An empty handle (false) owns nothing: that is what an
/// exhausted pool gives.
class Packet {
 public:
  Packet() = default;
  Packet(Packet&& other) noexcept { swap(other); }
  Packet& operator=(Packet&& other) noexcept {
    Packet taken(std::move(other));
    swap(taken);
    return *this;
  }
  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;
  ~Packet() { reset(); }

  explicit operator bool() const { return slab_ != nullptr; }
  uint8_t* data() { return block_ + offset_; }
  const uint8_t* data() const { return block_ + offset_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// Bytes that it takes of memory, however few are used; 0 for an empty handle.
  size_t footprint() const;
  ByteSpan span() { return {data(), size_}; }
  ByteView view() const { return {data(), size_}; }

  /// Bytes that prepend() and append() can still give.
  size_t headroom() const { return offset_; }
  size_t tailroom() const;
  /// All bytes from data() to the end of the block, for a read into an empty packet; then setSize().
  ByteSpan room() { return {data(), size_ + tailroom()}; }

  /// n new bytes before (after) the present ones. n must not exceed headroom() (tailroom()).
  uint8_t* prepend(size_t n);
  uint8_t* append(size_t n);
  /// Drops n bytes at the front; n <= size().
  void trimFront(size_t n);
  /// Cuts or grows (unset bytes) the end; n <= size() + tailroom().
  void setSize(size_t n);
  /// Gives the block back now.
  void reset();

 private:
  friend class PacketPool;
  void swap(Packet& other) noexcept {
    std::swap(slab_, other.slab_);
    std::swap(block_, other.block_);
    std::swap(offset_, other.offset_);
    std::swap(size_, other.size_);
  }
  PacketSlab* slab_ = nullptr;
  uint8_t* block_ = nullptr;
  uint32_t offset_ = 0;
  uint32_t size_ = 0;
};

/// What packets are kept for.
enum class PacketUse : uint8_t {
  kQueued,  ///< they wait to be sent
  kSent,    ///< they were sent, and may have to be sent again
  kHeld,    ///< they wait for those before them
};

/// Blocks of a pool, which were taken from the machine at once and go back at once. Which of them are free is told by one
/// word here and not beside their bytes, so that giving a block back does not wait for memory that nobody has touched.
struct alignas(16) PacketSlab {
  static constexpr size_t kMostBlocks = 64;
  PacketPool* pool;
  size_t blocks;  // 1 to kMostBlocks, behind this one
  uint64_t free;  // a bit for each
  ListLink<PacketSlab> link;

  uint64_t all() const { return UINT64_MAX >> (kMostBlocks - blocks); }
  uint8_t* first() { return reinterpret_cast<uint8_t*>(this + 1); }
};

/// A bounded set of equal blocks. Memory is taken in slabs of blocks on demand and kept until shrink(); after warm-up
/// allocate() and release set and clear a bit. Slabs that are partly used are used up first, so that others become
/// free as a whole. Not thread-safe. Must outlive its packets.
///
/// Who keeps packets for longer than it takes to pass them on keeps them under the budget of their use. The budgets
/// leave an eighth of the pool to packets that pass: what arrives and what leaves finds a buffer, whatever is kept.
class PacketPool {
 public:
  /// Room before the bytes of a fresh packet: tunnel header, frame header and device prefixes.
  static constexpr size_t kHeadroom = 64;
  /// Room after payload: the AEAD tag, rounded up.
  static constexpr size_t kTailroom = 32;

  /// Packets of up to `payload` bytes (plus headroom and tailroom), at most `limit` of them at a time.
  PacketPool(size_t payload, size_t limit);
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  /// An empty packet with kHeadroom in front; an empty handle when `limit` packets are out.
  Packet allocate();
  /// A packet with these bytes; an empty handle when the pool is exhausted or they do not fit.
  Packet copy(ByteView bytes);

  /// Gives back the memory of slabs of which nothing was in use since the last call that gave false; of some of them.
  /// True: there are more.
  bool shrink();
  /// Whether there are slabs of which nothing is in use.
  bool hasSpare() const { return spare_ > 0; }
  /// Bytes of memory that the pool has.
  size_t footprint() const;

  /// A quarter of the pool for what is queued, three eighths for what was sent, a quarter for what is held.
  Budget& budget(PacketUse use) { return budgets_[static_cast<size_t>(use)]; }
  const Budget& budget(PacketUse use) const { return budgets_[static_cast<size_t>(use)]; }

  size_t payload() const { return payload_; }
  size_t limit() const { return limit_; }
  size_t inUse() const { return inUse_; }
  uint64_t exhausted() const { return exhausted_; }

 private:
  friend class Packet;
  void release(PacketSlab& slab, const uint8_t* block);
  PacketSlab* makeSlab();
  void unmap(PacketSlab& slab);
  size_t blockSize() const { return kHeadroom + payload_ + kTailroom; }
  size_t stride() const {
    return (blockSize() + alignof(PacketSlab) - 1) / alignof(PacketSlab) * alignof(PacketSlab);
  }
  size_t slabBytes(size_t blocks) const { return sizeof(PacketSlab) + blocks * stride(); }

  size_t payload_;
  size_t limit_;
  size_t made_ = 0;
  size_t inUse_ = 0;
  uint64_t exhausted_ = 0;
  std::array<Budget, 3> budgets_;                       // by PacketUse
  IntrusiveList<PacketSlab, &PacketSlab::link> slabs_;  // those with a free block; the spare ones at the end
  size_t spare_ = 0;                                    // slabs of which nothing is in use
  size_t leastSpare_ = 0;                               // since shrink()
};

inline size_t Packet::footprint() const {
  return slab_ ? slab_->pool->blockSize() : 0;
}
inline size_t Packet::tailroom() const {
  return footprint() - offset_ - size_;
}

}  // namespace braid
