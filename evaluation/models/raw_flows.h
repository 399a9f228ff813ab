#pragma once

// Flows as raw inner packets, without an inner TCP, so that only the tunnel repairs losses: a
// request with its response, which is a "flow" of the papers, and a sender that always has more
// data.

#include <cstdint>
#include <functional>
#include <vector>

#include "simnet/world.h"

namespace braid::sim {

struct MessageOptions {
  uint64_t bytes = 16 << 10;  ///< size of the response, at least 1
  uint16_t mss = 1400;        ///< payload of its full segments
  size_t ahead =
      0;  ///< most segments in flight, like a sender's window; 0: the whole response at once
};

/// The client sends one small segment. The server answers with the whole response at once, or with
/// the first MessageOptions::ahead segments and then one segment for each that arrives. The last
/// segment has PSH set. All segments are ECN-capable, so that queue management marks them instead
/// of dropping them.
class MessageFlow final : public Host {
 public:
  /// Sends the request at once. `port`: must be new for each flow between these two (a new
  /// 5-tuple).
  MessageFlow(World& world, Node& client, Node& server, uint16_t port, MessageOptions options);

  bool done() const { return missing_ == 0; }
  /// From the request to the arrival of the response's last byte at the client; until now when that
  /// is still missing.
  Duration completionTime() const { return (done() ? finished_ : world_.now()) - started_; }
  /// Called when the last byte has arrived.
  std::function<void()> onDone;
  const MessageOptions& options() const { return options_; }
  size_t segments() const { return seen_.size(); }

 private:
  void onRequest();
  void sendNext();
  void onSegment(const InnerPacket& ip);

  World& world_;
  Node& client_;
  Node& server_;
  MessageOptions options_;
  uint16_t port_;
  Time started_;
  Time finished_;
  bool answered_ = false;
  uint64_t sent_ = 0;  // bytes of the response
  std::vector<bool> seen_;
  size_t missing_;
};

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

/// Payload of a full segment on this tunnel: what the inner MTU allows, less `spare` bytes.
uint16_t segmentSize(const Node& node, size_t spare = 0);

}  // namespace braid::sim
