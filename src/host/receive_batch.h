#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/packet.h"
#include "inet/addresses.h"
#include "tunnel/subflow/route.h"
#include "tunnel/wire/aead.h"

namespace braid {

/// Provides empty packets of a pool for reading into. Usually it takes them from the pool one by
/// one. While it is lent to another thread, which must not touch the pool, it takes them from a
/// reserve that was filled before.
class PacketStock {
 public:
  explicit PacketStock(PacketPool& pool) : pool_(&pool) {}

  PacketPool& pool() { return *pool_; }
  size_t payload() const { return pool_->payload(); }

  /// Lends the stock to another thread: it may take `count` packets from now on, or fewer when the
  /// pool has no more.
  void lend(size_t count) {
    heap_.reserve(count);
    while (heap_.size() < count) {
      Packet packet = pool_->allocate();
      if (!packet) break;
      heap_.push_back(std::move(packet));
    }
    lent_ = true;
  }
  /// Ends the lending. Packets that were not taken stay for the next time, or for the pool's
  /// thread.
  void takeBack() { lent_ = false; }
  /// Whether the stock is lent and no packet is left.
  bool isUsedUp() const { return lent_ && heap_.empty(); }
  /// Returns the reserve to the pool.
  void clear() { heap_.clear(); }

  /// Takes an empty packet; an empty handle when there are no more.
  Packet take() {
    if (heap_.empty()) return lent_ ? Packet() : pool_->allocate();
    Packet packet = std::move(heap_.back());
    heap_.pop_back();
    return packet;
  }
  /// Takes back an empty packet that was not needed.
  void reclaim(Packet packet) {
    if (lent_ && packet) heap_.push_back(std::move(packet));
  }

 private:
  PacketPool* pool_;
  std::vector<Packet> heap_;
  bool lent_ = false;
};

/// A datagram as received.
struct ReceivedDatagram {
  Route from;
  Ecn ecn = Ecn::kNotEct;
  Packet bytes;
  CipherWork opening{};  ///< the work of opening it, already done; empty: not tried yet
};

/// A buffer into which sockets receive, one batch at a time. Any number of sockets may share it. It
/// keeps kSize packets of the pool in reserve, so that acks can still be read when queued data has
/// exhausted the pool.
class ReceiveBatch {
 public:
  /// The most messages in a batch.
  static constexpr size_t kSize = 64;
  /// The greatest length of a message that holds several datagrams, in bytes (UDP's length field).
  static constexpr size_t kLongest = 65535;

  explicit ReceiveBatch(PacketPool& pool) : stock_(pool) {}

  PacketPool& pool() { return stock_.pool(); }

  /// Clears the last batch and prepares up to `limit` empty packets. Returns how many; 0 when the
  /// pool is exhausted.
  size_t prepare(size_t limit);
  /// Call after prepare(): lends the batch to another thread, which may fill it. It may use up to
  /// `several` packets in addition to the prepared ones.
  void lend(size_t several);
  void takeBack() { stock_.takeBack(); }
  /// Returns the packets that lend() took in reserve to the pool.
  void clearStock() { stock_.clear(); }
  /// Where to write the bytes of the i-th prepared packet.
  ByteSpan room(size_t i) { return {spare_[i].data(), stock_.payload()}; }
  /// Where to write the bytes of the i-th message that do not fit into room(i). The kernel provides
  /// memory only for parts that are written.
  ByteSpan spill(size_t i);
  /// Adds the i-th prepared packet, into which `size` bytes were written, as the batch's next
  /// datagram.
  void take(size_t i, size_t size, const Route& from, Ecn ecn);
  /// Adds the datagrams of a message that holds several. They have `each` bytes, except the last.
  /// `each` must fit room(i); the bytes after room(i) are in spill(i). Returns the number of
  /// datagrams that were lost because there was no packet for them.
  size_t takeSeveral(size_t i, size_t size, size_t each, const Route& from, Ecn ecn);

  std::span<ReceivedDatagram> received() { return received_; }

 private:
  void add(Packet packet, const Route& from, Ecn ecn) {
    received_.push_back({from, ecn, std::move(packet)});
  }

  PacketStock stock_;
  std::array<Packet, kSize> spare_;
  std::unique_ptr<uint8_t[]> spills_;
  std::vector<ReceivedDatagram> received_;  ///< cleared, but never shrunk
};

}  // namespace braid
