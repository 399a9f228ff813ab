#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/packet.h"
#include "host/packet_stock.h"
#include "inet/endpoint.h"
#include "tunnel/subflow/route.h"
#include "tunnel/wire/cipher_work.h"

namespace braid {

/// A datagram as it came.
struct ReceivedDatagram {
  Route from;
  Ecn ecn = Ecn::kNotEct;
  Packet bytes;
  CipherWork opening{};  ///< has been done; empty: nobody has tried
};

/// Where sockets put what they receive, one batch at a time; any number of sockets may share it. A batch
/// keeps kSize packets of the pool at hand, so that acks can still be read when the pool is exhausted by
/// queued data.
class ReceiveBatch {
 public:
  /// Messages of a batch.
  static constexpr size_t kSize = 64;
  /// A message that holds several datagrams is at most so long (UDP's length field).
  static constexpr size_t kLongest = 65535;

  explicit ReceiveBatch(PacketPool& pool) : stock_(pool) {}

  PacketPool& pool() { return stock_.pool(); }

  /// Forgets the batch before and makes up to `limit` empty packets ready; gives how many: 0 when the pool is
  /// exhausted.
  size_t prepare(size_t limit);
  /// After prepare(): another thread may fill the batch, with `several` packets beside the ready ones at most.
  void lend(size_t several);
  void takeBack() { stock_.takeBack(); }
  /// Gives back what lend() has piled up.
  void clearStock() { stock_.clear(); }
  /// Where the i-th ready packet's bytes may be written.
  ByteSpan room(size_t i) { return {spare_[i].data(), stock_.payload()}; }
  /// Where the bytes of the i-th message go that room(i) is too small for. Memory that is never written to is not
  /// there.
  ByteSpan spill(size_t i);
  /// Takes the i-th ready packet, of which `size` bytes were written, as the batch's next datagram.
  void take(size_t i, size_t size, const Route& from, Ecn ecn);
  /// The same of a message of several datagrams, of `each` bytes but for the last; `each` fits room(i), and what came
  /// behind is in spill(i). Gives for how many datagrams there was no packet.
  size_t takeSeveral(size_t i, size_t size, size_t each, const Route& from, Ecn ecn);

  std::span<ReceivedDatagram> received() { return received_; }

 private:
  void add(Packet packet, const Route& from, Ecn ecn) { received_.push_back({from, ecn, std::move(packet)}); }

  PacketStock stock_;
  std::array<Packet, kSize> spare_;
  std::unique_ptr<uint8_t[]> spills_;
  std::vector<ReceivedDatagram> received_;  ///< keeps its memory
};

}  // namespace braid
