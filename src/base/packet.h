#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/containers.h"
#include "base/memory_quota.h"

namespace braid {

class PacketPool;
struct PacketSlab;

/// A pooled buffer with room before and after its bytes, so that the same buffer can be passed from
/// the device to a socket without a copy. Move-only; returns its block to the pool on destruction.
/// An empty handle (false) owns nothing; an exhausted pool returns such handles.
class Packet {
 public:
  Packet() = default;
  Packet(Packet&& other) noexcept { take(other); }
  Packet& operator=(Packet&& other) noexcept {
    if (this == &other) return *this;
    reset();
    take(other);
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
  /// Size of its block in bytes, however few are used; 0 for an empty handle.
  size_t footprint() const;
  ByteSpan span() { return {data(), size_}; }
  ByteView view() const { return {data(), size_}; }

  /// Bytes that prepend() and append() can still give.
  size_t headroom() const { return offset_; }
  size_t tailroom() const;
  /// All bytes from data() to the end of the block. For reading into an empty packet; call
  /// setSize() afterwards.
  ByteSpan room() { return {data(), size_ + tailroom()}; }

  /// Adds n bytes before (after) the present ones and returns their address. n must not exceed
  /// headroom() (tailroom()).
  uint8_t* prepend(size_t n);
  uint8_t* append(size_t n);
  /// Removes n bytes at the front; n <= size().
  void trimFront(size_t n);
  /// Cuts bytes off the end, or adds uninitialized ones; n <= size() + tailroom().
  void setSize(size_t n);
  /// Returns the block to the pool now.
  void reset() {
    if (slab_) release();
  }

 private:
  friend class PacketPool;
  void release();
  /// This handle owns nothing.
  void take(Packet& other) {
    slab_ = std::exchange(other.slab_, nullptr);
    block_ = std::exchange(other.block_, nullptr);
    offset_ = std::exchange(other.offset_, 0);
    size_ = std::exchange(other.size_, 0);
  }
  PacketSlab* slab_ = nullptr;
  uint8_t* block_ = nullptr;
  uint32_t offset_ = 0;
  uint32_t size_ = 0;
};

/// Why packets are kept. Each use has a quota of its own.
enum class PacketUse : uint8_t {
  kQueued,  ///< waiting to be sent
  kSent,    ///< sent, and kept because they may have to be sent again
  kHeld,    ///< received out of order, waiting for the packets before them
};

/// A slab of up to 64 blocks of a pool, which is allocated and freed as a whole. One bit mask here
/// tells which blocks are free, instead of a link inside each block, so that returning a block does
/// not touch memory that is not in the cache.
struct alignas(16) PacketSlab {
  static constexpr size_t kMostBlocks = 64;
  PacketPool* pool;
  size_t blocks;  // 1 to kMostBlocks; they follow this header in memory
  uint64_t free;  // one bit for each free block
  ListLink<PacketSlab> link;

  uint64_t all() const { return UINT64_MAX >> (kMostBlocks - blocks); }
  uint8_t* first() { return reinterpret_cast<uint8_t*>(this + 1); }
};

/// A bounded pool of blocks of equal size. Memory is allocated on demand in slabs, and kept until
/// shrink(). After warm-up, allocate() and the release of a packet only clear and set a bit. Partly
/// used slabs are used up first, so that others become free as a whole. Not thread-safe. Must
/// outlive its packets.
///
/// A class that keeps packets for longer than it takes to pass them on must count them in the quota
/// of their PacketUse. The quotas leave an eighth of the pool to packets that pass through, so that
/// arriving and departing packets find a buffer however much is kept.
class PacketPool {
 public:
  /// Room before the bytes of a new packet: tunnel header, frame header and device prefixes.
  static constexpr size_t kHeadroom = 64;
  /// Room after the payload: the AEAD tag, rounded up.
  static constexpr size_t kTailroom = 32;

  /// Packets have up to `payload` bytes (plus headroom and tailroom); at most `limit` are in use at
  /// a time.
  PacketPool(size_t payload, size_t limit);
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  /// A packet without bytes and with kHeadroom in front; an empty handle when `limit` packets are
  /// in use.
  Packet allocate();
  /// A packet with these bytes; an empty handle when the pool is exhausted or they do not fit.
  Packet copy(ByteView bytes);

  /// Frees some of the slabs that were unused all the time since the last call that returned false.
  /// True: there are more, call again.
  bool shrink();
  /// Whether there are slabs without a used block.
  bool hasSpare() const { return spare_ > 0; }
  /// Memory that the pool has allocated, in bytes.
  size_t footprint() const;

  /// The quota of a use: a quarter of the pool for kQueued, three eighths for kSent, a quarter for
  /// kHeld.
  MemoryQuota& quota(PacketUse use) { return quotas_[static_cast<size_t>(use)]; }
  const MemoryQuota& quota(PacketUse use) const { return quotas_[static_cast<size_t>(use)]; }

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
  std::array<MemoryQuota, 3> quotas_;  // by PacketUse
  IntrusiveList<PacketSlab, &PacketSlab::link>
      slabs_;              // slabs with a free block; those without a used block come last
  size_t spare_ = 0;       // slabs without a used block
  size_t leastSpare_ = 0;  // the least spare_ since shrink() returned false
};

inline size_t Packet::footprint() const {
  return slab_ ? slab_->pool->blockSize() : 0;
}
inline size_t Packet::tailroom() const {
  return footprint() - offset_ - size_;
}

}  // namespace braid
