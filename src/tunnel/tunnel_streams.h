#pragma once

#include "tunnel/api/options.h"
#include "tunnel/api/streams.h"
#include "tunnel/stream/registry.h"

namespace braid {

class Forwarder;
class PeerSet;
class Session;
class Stream;

/// The streams of all peers in one interface for the tunnel's driver: finds the peer behind a
/// destination, and the stream of a handle.
class TunnelStreams final : public StreamApi {
 public:
  /// All arguments must outlive this object.
  TunnelStreams(const TunnelOptions& options, PeerSet& peers, const Forwarder& forwarder)
      : options_(options), peers_(peers), forwarder_(forwarder) {}

  /// The registry through which sessions and the driver exchange stream events. It outlives the
  /// sessions.
  StreamRegistry& registry() { return registry_; }
  const StreamRegistry& registry() const { return registry_; }
  /// Wakes the peers that have streams to which the driver has given work. Call it before datagrams
  /// are polled.
  void wakePeers();

  // StreamApi
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
  StreamRegistry registry_;
};

}  // namespace braid
