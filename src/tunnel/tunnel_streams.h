#pragma once

#include "base/time.h"
#include "tunnel/lane/stream_desk.h"
#include "tunnel/options.h"
#include "tunnel/stream_lanes.h"

namespace braid {

class Forwarder;
class PeerSet;
class Stream;
class Session;

/// The streams of all peers, as the tunnel's drivers see them: finds the peer of a destination, and the stream lane of a
/// handle.
class TunnelStreams final : public StreamLanes {
 public:
  /// All must outlive it.
  TunnelStreams(const TunnelOptions& options, PeerSet& peers, const Forwarder& forwarder)
      : options_(options), peers_(peers), forwarder_(forwarder) {}

  /// Where sessions and the driver meet. It outlives the sessions.
  StreamDesk& desk() { return desk_; }
  const StreamDesk& desk() const { return desk_; }
  /// Wakes the peers whose streams the driver has given work to. Before datagrams are polled.
  void wakePeers();

  // StreamLanes
  bool canOpen(const Address& destination) const override;
  StreamHandle open(const StreamEnds& ends, Time now) override;
  const StreamEnds* ends(StreamHandle stream) const override;
  size_t writable(StreamHandle stream, size_t wanted) override;
  size_t room(StreamHandle stream, std::span<ByteSpan> buffers) override;
  void commit(StreamHandle stream, size_t bytes, Time now) override;
  size_t write(StreamHandle stream, ByteView bytes, Time now) override;
  void finish(StreamHandle stream, Time now) override;
  void reset(StreamHandle stream, StreamCause cause, Time now) override;
  size_t readable(StreamHandle stream) const override;
  size_t peek(StreamHandle stream, std::span<ByteView> views) const override;
  void consume(StreamHandle stream, size_t bytes, Time now) override;
  bool isAtEnd(StreamHandle stream) const override;
  bool pollStream(StreamEvent& out) override;

 private:
  Session* sessionFor(const Address& destination) const;
  bool isAllowed(const Stream& stream) const;

  const TunnelOptions& options_;
  PeerSet& peers_;
  const Forwarder& forwarder_;
  StreamDesk desk_;
};

}  // namespace braid
