#include "tunnel/tunnel_streams.h"

#include "tunnel/forward/forwarder.h"
#include "tunnel/peer/peer.h"
#include "tunnel/peer/peer_set.h"
#include "tunnel/stream/session_streams.h"
#include "tunnel/stream/stream.h"

namespace braid {

void TunnelStreams::wakePeers() {
  registry_.takeTouched([&](uint32_t session) { peers_.wakeSession(session); });
}

// The session with the peer behind the destination; nullptr: none.
Session* TunnelStreams::sessionFor(const Address& destination) const {
  if (options_.mode != TunnelOptions::Mode::kTun) return nullptr;
  Peer* peer = forwarder_.peerBehind(destination);
  return peer ? peer->session() : nullptr;
}

bool TunnelStreams::canOpen(const Address& destination) const {
  Session* session = sessionFor(destination);
  return session && session->anyUsable() && session->streams().mayTakeOver();
}

StreamHandle TunnelStreams::open(const StreamEnds& ends, Time now) {
  if (ends.source.address.family != ends.destination.address.family) return {};
  Session* session = sessionFor(ends.destination.address);
  return session ? session->streams().open(ends, now) : StreamHandle{};
}

const StreamEnds* TunnelStreams::ends(StreamHandle stream) const {
  const Stream* s = registry_.find(stream);
  return s ? &s->ends() : nullptr;
}

size_t TunnelStreams::writable(StreamHandle stream, size_t wanted) {
  Stream* s = registry_.find(stream);
  return s ? s->of().sending().writable(*s, wanted) : 0;
}

size_t TunnelStreams::room(StreamHandle stream, std::span<ByteSpan> buffers) {
  Stream* s = registry_.find(stream);
  return s ? s->of().sending().room(*s, buffers) : 0;
}

void TunnelStreams::commit(StreamHandle stream, size_t bytes, Time now) {
  if (Stream* s = registry_.find(stream)) s->of().sending().commit(*s, bytes, now);
}

size_t TunnelStreams::write(StreamHandle stream, ByteView bytes, Time now) {
  Stream* s = registry_.find(stream);
  return s ? s->of().sending().write(*s, bytes, now) : 0;
}

void TunnelStreams::finish(StreamHandle stream, Time now) {
  if (Stream* s = registry_.find(stream)) s->of().sending().finish(*s, now);
}

void TunnelStreams::reset(StreamHandle stream, StreamCause cause, Time now) {
  if (Stream* s = registry_.find(stream)) s->of().reset(*s, cause, now);
}

size_t TunnelStreams::readable(StreamHandle stream) const {
  const Stream* s = registry_.find(stream);
  return s ? s->assembly().readable() : 0;
}

size_t TunnelStreams::peek(StreamHandle stream, std::span<ByteView> views) const {
  const Stream* s = registry_.find(stream);
  return s ? s->assembly().peek(views) : 0;
}

void TunnelStreams::consume(StreamHandle stream, size_t bytes, Time now) {
  if (Stream* s = registry_.find(stream)) s->of().consume(*s, bytes, now);
}

bool TunnelStreams::isAtEnd(StreamHandle stream) const {
  const Stream* s = registry_.find(stream);
  return s && s->assembly().isAtEnd();
}

// A peer may open streams only between addresses between which it may also send packets.
bool TunnelStreams::isAllowed(const Stream& stream) const {
  const Peer* peer = peers_.find(stream.of().session()).peer;
  return peer && forwarder_.ownsSource(*peer, stream.ends().source.address) &&
         forwarder_.mayReach(stream.ends().destination.address);
}

bool TunnelStreams::pollStream(StreamEvent& out) {
  while (registry_.poll(out)) {
    Stream* stream = out.opened ? registry_.find(out.stream) : nullptr;
    if (!stream || isAllowed(*stream)) return true;
    stream->of().reset(*stream, StreamCause::kForbidden, stream->begun());
  }
  return false;
}

}  // namespace braid
