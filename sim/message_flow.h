#pragma once

// A request and its response as raw inner packets, without an inner TCP: what the papers call a flow. What is
// lost in the tunnel is the tunnel's to repair.

#include <cstdint>
#include <functional>
#include <vector>

#include "simnet/world.h"

namespace braid::sim {

struct MessageOptions {
  uint64_t bytes = 16 << 10;  ///< of the response, at least 1
  uint16_t mss = 1400;        ///< payload of its full segments
  size_t ahead = 0;  ///< segments on their way at most, as a sender's window bounds them; 0: all at once
};

/// The client sends one small segment; the server answers with the whole response at once, or so much of it as may be
/// on its way and then a segment for each that arrives. PSH is on the last segment. The segments are ECN-capable, so that
/// queue management marks instead of dropping.
class MessageFlow final : public Host {
 public:
  /// Sends the request at once. `port`: fresh for each flow between these two (a new 5-tuple).
  MessageFlow(World& world, Node& client, Node& server, uint16_t port, MessageOptions options);

  bool done() const { return missing_ == 0; }
  /// From the request to the last byte of the response at the client; so far when it is not done.
  Duration completionTime() const { return (done() ? finished_ : world_.now()) - started_; }
  /// Called when the last byte has come.
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

/// Payload of a full segment on this tunnel, `spare` bytes below what its inner MTU allows.
uint16_t segmentSize(const Node& node, size_t spare = 0);

}  // namespace braid::sim
