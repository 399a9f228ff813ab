#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/packet.h"

namespace braid {

/// Empty packets of a pool for who reads into them. Usually they come from the pool one by one; while the stock is lent
/// to another thread, which must not touch the pool, from a heap that was piled up before.
class PacketStock {
 public:
  explicit PacketStock(PacketPool& pool) : pool_(&pool) {}

  PacketPool& pool() { return *pool_; }
  size_t payload() const { return pool_->payload(); }

  /// From now on another thread may take `count` packets, fewer when the pool has no more.
  void lend(size_t count) {
    heap_.reserve(count);
    while (heap_.size() < count) {
      Packet packet = pool_->allocate();
      if (!packet) break;
      heap_.push_back(std::move(packet));
    }
    lent_ = true;
  }
  /// What was not taken stays for the next time, or for the pool's thread.
  void takeBack() { lent_ = false; }
  /// The thread that it is lent to gets no more.
  bool isUsedUp() const { return lent_ && heap_.empty(); }
  /// Gives the pool what was piled up.
  void clear() { heap_.clear(); }

  /// An empty handle: there are no more.
  Packet take() {
    if (heap_.empty()) return lent_ ? Packet() : pool_->allocate();
    Packet packet = std::move(heap_.back());
    heap_.pop_back();
    return packet;
  }
  /// An empty packet that was not needed.
  void giveBack(Packet packet) {
    if (lent_ && packet) heap_.push_back(std::move(packet));
  }

 private:
  PacketPool* pool_;
  std::vector<Packet> heap_;
  bool lent_ = false;
};

}  // namespace braid
