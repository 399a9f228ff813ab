#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/packet.h"
#include "inet/endpoint.h"
#include "tunnel/subflow/route.h"

namespace braid {

/// A datagram as it came.
struct ReceivedDatagram {
  Route from;
  Ecn ecn = Ecn::kNotEct;
  Packet bytes;
};

/// Where sockets put what they receive, one batch at a time; any number of sockets may share it. A batch
/// keeps kSize packets of the pool at hand, so that acks can still be read when the pool is exhausted by
/// queued data.
class ReceiveBatch {
 public:
  static constexpr size_t kSize = 64;

  explicit ReceiveBatch(PacketPool& pool) : pool_(pool) {}

  /// Forgets the batch before and makes up to `limit` empty packets ready; gives how many: 0 when the pool is
  /// exhausted.
  size_t prepare(size_t limit);
  /// Where the i-th ready packet's bytes may be written.
  ByteSpan room(size_t i) { return {spare_[i].data(), pool_.payload()}; }
  /// Takes the i-th ready packet, of which `size` bytes were written, as the batch's next datagram.
  void take(size_t i, size_t size, const Route& from, Ecn ecn);

  std::span<ReceivedDatagram> received() { return {received_.data(), count_}; }

 private:
  PacketPool& pool_;
  std::array<Packet, kSize> spare_;
  std::array<ReceivedDatagram, kSize> received_;
  size_t count_ = 0;
};

}  // namespace braid
