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

namespace braid {

/// A datagram as received.
struct ReceivedDatagram {
  Route from;
  Ecn ecn = Ecn::kNotEct;
  Packet bytes;
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

  explicit ReceiveBatch(PacketPool& pool) : pool_(pool) {}

  /// Clears the last batch and prepares up to `limit` empty packets. Returns how many; 0 when the
  /// pool is exhausted.
  size_t prepare(size_t limit);
  /// Where to write the bytes of the i-th prepared packet.
  ByteSpan room(size_t i) { return {spare_[i].data(), pool_.payload()}; }
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

  PacketPool& pool_;
  std::array<Packet, kSize> spare_;
  std::unique_ptr<uint8_t[]> spills_;
  std::vector<ReceivedDatagram> received_;  ///< cleared, but never shrunk
};

}  // namespace braid
