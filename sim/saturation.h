#pragma once

// A sender that always has more: what AMP's long flows are, without an inner TCP.

#include <cstdint>

#include "simnet/world.h"

namespace braid::sim {

/// Keeps `ahead` full segments on their way from the server's host to the client's, in queues and links
/// together: each one that arrives lets the next one go, without delay. ECN-capable, so that queue management
/// does not drop them.
class Saturation final : public Host {
 public:
  /// More than windows and queues of a fabric hold. Segments.
  static constexpr size_t kAhead = 256;

  /// Begins at once. `port`: fresh for each flow between these two. `bytes`: what it sends in all, in whole segments;
  /// without, it has no end.
  Saturation(World& world, Node& client, Node& server, uint16_t port, uint16_t mss, size_t ahead = kAhead,
             uint64_t bytes = UINT64_MAX);

  /// So many more on their way from now on: in place of those that the tunnel gave up.
  void add(size_t segments) {
    for (size_t i = 0; i < segments && sent_ < bytes_; ++i) send();
  }
  /// No more segments from now on.
  void stop() { stopped_ = true; }
  /// Bytes that came out at the client.
  uint64_t received() const { return received_; }
  /// When all of it had come out; kNever before.
  Time doneAt() const { return doneAt_; }

 private:
  void send();

  World& world_;
  Node& client_;
  Node& server_;
  uint16_t port_;
  uint16_t mss_;
  uint64_t bytes_;
  uint32_t next_ = 1;
  uint64_t sent_ = 0, received_ = 0;
  Time doneAt_ = kNever;
  bool stopped_ = false;
};

}  // namespace braid::sim
