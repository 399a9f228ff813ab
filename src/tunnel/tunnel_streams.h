#pragma once

#include "tunnel/api/options.h"
#include "tunnel/api/streams.h"
#include "tunnel/forward/forwarder.h"
#include "tunnel/peer/peer.h"
#include "tunnel/peer/peer_set.h"
#include "tunnel/stream/registry.h"
#include "tunnel/stream/session_streams.h"
#include "tunnel/stream/stream.h"

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
  bool canAsk(const Address& destination) const override;
  StreamHandle open(const StreamEnds& ends, Time now) override;
  StreamHandle openAsking(const StreamEnds& ends, Time now) override;
  void answer(StreamHandle stream) override;
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
  StreamHandle open(const StreamEnds& ends, Time now, bool asks);
  Session* sessionFor(const Address& destination) const;
  bool isAllowed(const Stream& stream) const;

  const TunnelOptions& options_;
  PeerSet& peers_;
  const Forwarder& forwarder_;
  StreamRegistry registry_;
};

inline void TunnelStreams::wakePeers() {
  registry_.takeTouched([&](uint32_t session) { peers_.wakeSession(session); });
}

// The session with the peer behind the destination; nullptr: none.
inline Session* TunnelStreams::sessionFor(const Address& destination) const {
  if (options_.mode != TunnelOptions::Mode::kTun) return nullptr;
  Peer* peer = forwarder_.peerBehind(destination);
  return peer ? peer->session() : nullptr;
}

inline bool TunnelStreams::canOpen(const Address& destination) const {
  Session* session = sessionFor(destination);
  return session && session->anyUsable() && session->streams().mayIntercept();
}

inline StreamHandle TunnelStreams::open(const StreamEnds& ends, Time now) {
  return open(ends, now, false);
}

inline StreamHandle TunnelStreams::open(const StreamEnds& ends, Time now, bool asks) {
  if (ends.source.address.family != ends.destination.address.family) return {};
  Session* session = sessionFor(ends.destination.address);
  return session ? session->streams().open(ends, now, asks) : StreamHandle{};
}

inline bool TunnelStreams::canAsk(const Address& destination) const {
  Session* session = sessionFor(destination);
  return session && session->streams().canAsk();
}

inline StreamHandle TunnelStreams::openAsking(const StreamEnds& ends, Time now) {
  return canAsk(ends.destination.address) ? open(ends, now, true) : StreamHandle{};
}

inline void TunnelStreams::answer(StreamHandle stream) {
  if (Stream* s = registry_.find(stream)) s->of().answer(*s);
}

inline const StreamEnds* TunnelStreams::ends(StreamHandle stream) const {
  const Stream* s = registry_.find(stream);
  return s ? &s->ends() : nullptr;
}

inline size_t TunnelStreams::writable(StreamHandle stream, size_t wanted) {
  Stream* s = registry_.find(stream);
  return s ? s->of().sendSide().writable(*s, wanted) : 0;
}

inline size_t TunnelStreams::room(StreamHandle stream, std::span<ByteSpan> buffers) {
  Stream* s = registry_.find(stream);
  return s ? s->of().sendSide().room(*s, buffers) : 0;
}

inline void TunnelStreams::commit(StreamHandle stream, size_t bytes, Time now) {
  if (Stream* s = registry_.find(stream)) s->of().sendSide().commit(*s, bytes, now);
}

inline size_t TunnelStreams::write(StreamHandle stream, ByteView bytes, Time now) {
  Stream* s = registry_.find(stream);
  return s ? s->of().sendSide().write(*s, bytes, now) : 0;
}

inline void TunnelStreams::finish(StreamHandle stream, Time now) {
  if (Stream* s = registry_.find(stream)) s->of().sendSide().finish(*s, now);
}

inline void TunnelStreams::reset(StreamHandle stream, StreamCause cause, Time now) {
  if (Stream* s = registry_.find(stream)) return s->of().reset(*s, cause, now);
  registry_.release(stream);
}

inline size_t TunnelStreams::readable(StreamHandle stream) const {
  const Stream* s = registry_.find(stream);
  return s ? s->assembly().readable() : 0;
}

inline size_t TunnelStreams::peek(StreamHandle stream, std::span<ByteView> views) const {
  const Stream* s = registry_.find(stream);
  return s ? s->assembly().peek(views) : 0;
}

inline void TunnelStreams::consume(StreamHandle stream, size_t bytes, Time now) {
  if (Stream* s = registry_.find(stream)) s->of().consume(*s, bytes, now);
}

inline bool TunnelStreams::isAtEnd(StreamHandle stream) const {
  const Stream* s = registry_.find(stream);
  return s && s->assembly().isAtEnd();
}

// A peer may open streams only between addresses between which it may also send packets.
inline bool TunnelStreams::isAllowed(const Stream& stream) const {
  const Peer* peer = peers_.find(stream.of().session()).peer;
  return peer && forwarder_.ownsSource(*peer, stream.ends().source.address) &&
         forwarder_.mayReach(stream.ends().destination.address) &&
         forwarder_.mayCross(*peer, stream.ends().destination.address);
}

inline bool TunnelStreams::pollStream(StreamEvent& out) {
  while (registry_.poll(out)) {
    Stream* stream = out.opened ? registry_.find(out.stream) : nullptr;
    if (!stream || isAllowed(*stream)) return true;
    stream->of().reset(*stream, StreamCause::kForbidden, stream->begun());
  }
  return false;
}

}  // namespace braid
