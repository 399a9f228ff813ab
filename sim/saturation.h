#pragma once

// A sender that always has more data, without an inner TCP: a long flow of AMP.

#include <cstdint>

#include "simnet/world.h"

namespace braid::sim {

/// Keeps `ahead` full segments between the server's host and the client's, in queues and links
/// together. When one arrives, the next is sent at once. Segments are ECN-capable, so queue
/// management does not drop them.
class Saturation final : public Host {
 public:
  /// Default of `ahead`, segments: more than the windows and queues of a fabric hold.
  static constexpr size_t kAhead = 256;

  /// Begins at once. `port`: must be new for each flow between these two. `bytes`: total to send,
  /// rounded up to whole segments; by default without end.
  Saturation(World& world, Node& client, Node& server, uint16_t port, uint16_t mss,
             size_t ahead = kAhead, uint64_t bytes = UINT64_MAX);

  /// Sends `segments` more, to replace those that the tunnel gave up.
  void add(size_t segments) {
    for (size_t i = 0; i < segments && sent_ < bytes_; ++i) send();
  }
  /// Sends no more segments from now on.
  void stop() { stopped_ = true; }
  /// Bytes that arrived at the client.
  uint64_t received() const { return received_; }
  /// When all bytes had arrived; kNever before.
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
