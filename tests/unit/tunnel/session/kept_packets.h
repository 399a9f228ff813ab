#pragma once

#include <cstddef>
#include <vector>

#include "tunnel/queue/packet_events.h"

namespace braid {

/// Takes what a session, or a part of it, reports of packets, and counts it.
class KeptPackets {
 public:
  using Kind = PacketEvent::Kind;

  /// The object to which packets are reported.
  PacketEvents& in() { return in_; }
  size_t delivered() { return count(Kind::kDelivered); }
  size_t tooLarge() { return count(Kind::kTooLarge); }
  size_t handedBack() { return count(Kind::kReturned); }
  /// The bytes of all packets of that kind.
  const std::vector<std::vector<uint8_t>>& bytes(Kind kind) {
    take();
    return bytes_[static_cast<size_t>(kind)];
  }
  /// Takes what was reported, so that the buffers are free again.
  void take() {
    for (; !queue_.empty(); queue_.popFront()) {
      ByteView bytes = queue_.front().packet.view();
      bytes_[static_cast<size_t>(queue_.front().kind)].emplace_back(bytes.begin(), bytes.end());
    }
  }

 private:
  size_t count(Kind kind) { return bytes(kind).size(); }

  PacketEventQueue queue_;
  PacketEvents in_{queue_, nullptr};
  std::vector<std::vector<uint8_t>> bytes_[4];
};

}  // namespace braid
