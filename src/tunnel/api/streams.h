#pragma once

// The interface between the core and the driver that holds the TCP connections at the ends of
// streams: TPROXY sockets in the daemon, modelled hosts in virtual time.
//
// A stream is a TCP connection that is split at the gateways: each gateway terminates the TCP
// connection of its side, and the bytes cross the tunnel between them. This interface has no
// sockets, no threads and no clock: the driver reports what happened at its connection, with the
// time, and polls for what it must do there.
//
//     near gateway                              far gateway
//     client connects   -> open(ends)           pollStream: opened -> connect() to the destination
//     client sends      -> room, commit | write pollStream: readable -> peek, send(), consume
//     client's FIN      -> finish               readable, isAtEnd -> shutdown(SHUT_WR)
//     client's RST      -> reset(kReset)        pollStream: reset -> RST (SO_LINGER of 0)
//     pollStream: reset -> RST to the client    connect() failed -> reset(kRefused, ...)
//
// What the server sends travels in the same way in the other direction.
//
// Opening a stream needs no round trip: bytes may be written at once and travel together with the
// opening. If the destination cannot be reached, the stream is reset. A near gateway that does not
// want to accept a client's connection before the server has accepted its own opens the stream by
// openAsking(); the far gateway calls answer(), and the near one polls `answered`.
//
// Life of a handle: it is valid from open(), or from the event `opened`, until the driver calls
// reset(), or polls an event with `reset` or `done`; exactly one of these happens. `done` comes
// when the driver has called finish(), everything it wrote is known to have arrived, and it has
// read everything to the end. The driver may close its socket before that. On `done` the driver
// sends a FIN to the local connection if it has not done so: an end without bytes may be reported
// together with `done`. A driver may drop a stream at any time with reset(). With a dead handle
// every call does nothing and returns 0 or false.
//
// Calls: after any call that is not const, the driver polls datagrams (Tunnel::pollDatagram) and
// asks for Tunnel::nextDeadline(), as after every on... call. It polls events after every batch of
// calls and datagrams, until pollStream() returns false. It may also leave `opened` events for
// later: they come after all other events, the sessions take turns with them, and no other event of
// a stream comes before its `opened`. An event reports a change: a driver that does not read or
// write then is not told again until something else changes. No event is lost. Each stream is
// queued at most once.

#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "base/time.h"
#include "tunnel/stream/stream_io.h"

namespace braid {

/// The streams of all peers. Tunnel::streams() returns it.
class StreamApi {
 public:
  virtual ~StreamApi() = default;

  // ---- beginning

  /// Whether new connections to this destination can become streams now: a peer has the address,
  /// its session has a path, both sides support streams, and no limit is so near that open() would
  /// refuse connections that are already on their way. False: let new connections cross the tunnel
  /// as packets.
  virtual bool canOpen(const Address& destination) const = 0;
  /// Opens a stream. Returns an empty handle when there is no session with the peer behind the
  /// destination, or a limit is reached. While the session has no path the stream waits, as a lost
  /// SYN would, for at most the repair time.
  virtual StreamHandle open(const StreamEnds& ends, Time now) = 0;
  /// Whether the peer behind the destination can be asked by openAsking().
  virtual bool canAsk(const Address& destination) const = 0;
  /// Opens a stream as open() does, and asks the peer to say when the destination has accepted the
  /// connection: an event `answered` tells that. Returns an empty handle also when canAsk() is
  /// false.
  virtual StreamHandle openAsking(const StreamEnds& ends, Time now) = 0;
  /// The destination of a stream that the peer has opened has accepted the connection. To be called
  /// before anything is written or read.
  virtual void answer(StreamHandle stream) = 0;
  /// Source and destination of the stream; nullptr for a dead handle.
  virtual const StreamEnds* ends(StreamHandle stream) const = 0;

  // ---- what the driver sends

  /// Bytes that write() or commit() would accept now, limited by the peer's credit and by what the
  /// paths can send soon. 0 after finish(). If the result is less than `wanted`, an event
  /// `writable` follows once half of what a stream can accept at once is free, or all that the
  /// credit allows: enough to be worth a read from a socket.
  virtual size_t writable(StreamHandle stream, size_t wanted = 1) = 0;
  /// Sets `buffers` to the places for the next bytes to send, in order, at most writable() bytes in
  /// total, so that a driver can readv() straight from its socket. Valid until the next call of the
  /// core. Returns how many of `buffers` are set.
  virtual size_t room(StreamHandle stream, std::span<ByteSpan> buffers) = 0;
  /// Sends the first `bytes` bytes, which were filled into the buffers of the last room(); 0
  /// returns the buffers unused.
  virtual void commit(StreamHandle stream, size_t bytes, Time now) = 0;
  /// Copies and sends at most writable() of the bytes; returns how many.
  virtual size_t write(StreamHandle stream, ByteView bytes, Time now) = 0;
  /// The local connection has sent its last byte (FIN). Bytes from the peer still arrive. A second
  /// call changes nothing.
  virtual void finish(StreamHandle stream, Time now) = 0;
  /// Ends both directions at once and discards what was written and not yet delivered. The handle
  /// is dead afterwards.
  virtual void reset(StreamHandle stream, StreamCause cause, Time now) = 0;

  // ---- what the driver gets

  /// Bytes that can be read now.
  virtual size_t readable(StreamHandle stream) const = 0;
  /// Sets `views` to the next bytes in order, for a writev() straight to the socket. Valid until
  /// the next call of the core that is not const. Returns how many of `views` are set.
  virtual size_t peek(StreamHandle stream, std::span<ByteView> views) const = 0;
  /// Marks `bytes` bytes as read, at most readable(): the peer may send as many more.
  virtual void consume(StreamHandle stream, size_t bytes, Time now) = 0;
  /// The peer has finished and everything it sent is read: the local connection gets its FIN.
  virtual bool isAtEnd(StreamHandle stream) const = 0;

  // ---- what happened

  /// The next event; false when there is none.
  virtual bool pollStream(StreamEvent& out) = 0;

  /// Copies the next bytes to `out` and consumes them; returns how many.
  size_t read(StreamHandle stream, ByteSpan out, Time now) {
    size_t done = 0;
    while (done < out.size()) {
      ByteView piece;
      if (peek(stream, {&piece, 1}) == 0) break;
      size_t n = piece.size() < out.size() - done ? piece.size() : out.size() - done;
      for (size_t i = 0; i < n; ++i) out[done + i] = piece[i];
      consume(stream, n, now);
      done += n;
    }
    return done;
  }
};

}  // namespace braid
