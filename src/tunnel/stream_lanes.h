#pragma once

// The core's face to whoever holds the TCP connections at the ends of streams (TPROXY sockets in the daemon, modelled
// hosts in virtual time).
//
// A stream is a TCP connection that is taken apart at the gateways: each gateway ends one half of it, and between them
// its bytes cross the tunnel. This face has no sockets, no threads and no clock: the driver says what happened at
// its connection, with the time, and polls for what is to be done there.
//
//     near gateway                                             far gateway
//     a client connects    -> open(ends)                       pollStream: opened -> connect to ends().destination
//     the client sent      -> room, commit | write             pollStream: readable -> peek, send to server, consume
//     the client's FIN     -> finish                           readable, isAtEnd -> shutdown(SHUT_WR)
//     the client's RST     -> reset(kReset)                    pollStream: reset -> RST (SO_LINGER of 0)
//     pollStream: reset    -> RST to the client                connect() failed -> reset(kRefused, kUnreachable, ...)
//
// and the other way round for what the server sends.
//
// Nothing is answered when a stream is opened: bytes may be written at once and travel with the opening; that the
// destination cannot be reached comes as a reset.
//
// Life of a handle: from open() or the event `opened` on, until exactly one of these: the driver calls reset(), it polls
// an event with `reset`, or one with `done`. `done` comes when the driver has finished and everything it wrote is known
// to have arrived, and it has read all to the end; the driver may close its socket before. With `done` the local
// connection gets its FIN, if it has not got it: an end without bytes may come together with it. A driver may drop a
// stream at any time with reset(). With a dead handle every call does nothing and says 0 or false.
//
// Calls: after any call but the const ones the driver polls datagrams (Tunnel::pollDatagram) and asks for
// Tunnel::nextDeadline(), as after every on... call. Events are polled after every batch of calls and datagrams, until
// pollStream() gives false, or openings are left for later: they come behind all other events, those of the sessions in
// turn, and nothing is told of a stream before its opening. An event tells of a change; who does not read or write on it
// is not told again until something else changes. No event is lost, and each stream waits at most once to be polled.

#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "base/time.h"
#include "tunnel/lane/stream_io.h"

namespace braid {

/// Streams of all peers. Tunnel::streams() gives it.
class StreamLanes {
 public:
  virtual ~StreamLanes() = default;

  // ---- beginning

  /// Whether new connections to this destination are for streams now: a peer has the address, its session has a path,
  /// both sides can do streams and no bound is near, so that open() takes those that are on their way, too. False:
  /// new connections belong into the packet lane.
  virtual bool canOpen(const Address& destination) const = 0;
  /// Opens a stream. No handle when there is no session with such a peer, or a bound is reached. While the session has
  /// no path the stream waits, as a lost SYN would: for the repair time at most.
  virtual StreamHandle open(const StreamEnds& ends, Time now) = 0;
  /// What the stream connects; nullptr for a dead handle.
  virtual const StreamEnds* ends(StreamHandle stream) const = 0;

  // ---- what the driver sends

  /// Bytes that write() or commit() would take now: bounded by the peer's credit and by what the paths can send
  /// soon. 0 after finish(). Asking and finding less than `wanted` bytes makes an event `writable` come when half of
  /// what a stream can take at once is free, or all that the credit allows: so that it is worth a read from a socket.
  virtual size_t writable(StreamHandle stream, size_t wanted = 1) = 0;
  /// Buffers to fill with what is to be sent next, in this order, for a readv() straight from the socket: at most
  /// writable() bytes together. Good until the next call of the core. Returns how many of `buffers` are set.
  virtual size_t room(StreamHandle stream, std::span<ByteSpan> buffers) = 0;
  /// So many bytes, at most those of the room() before, were filled in and are sent. 0 gives the buffers back.
  virtual void commit(StreamHandle stream, size_t bytes, Time now) = 0;
  /// Copies and sends as many of the bytes as writable() allows; returns how many.
  virtual size_t write(StreamHandle stream, ByteView bytes, Time now) = 0;
  /// The local connection has sent its last byte (FIN). What comes from the peer goes on coming. Twice is as once.
  virtual void finish(StreamHandle stream, Time now) = 0;
  /// Ends both directions at once; what was written and not yet delivered is thrown away. The handle is dead.
  virtual void reset(StreamHandle stream, StreamCause cause, Time now) = 0;

  // ---- what the driver gets

  /// Bytes that can be read now.
  virtual size_t readable(StreamHandle stream) const = 0;
  /// Shows the next bytes in order, in up to views.size() pieces, for a writev() straight to the socket. Good until the
  /// next call of the core that is not const. Returns how many of `views` are set.
  virtual size_t peek(StreamHandle stream, std::span<ByteView> views) const = 0;
  /// So many bytes, at most readable(), are read: the peer may send as many more.
  virtual void consume(StreamHandle stream, size_t bytes, Time now) = 0;
  /// The peer has finished, and all that it sent is read: the local connection gets its FIN.
  virtual bool isAtEnd(StreamHandle stream) const = 0;

  // ---- what happened

  /// The next event; false: there is none.
  virtual bool pollStream(StreamEvent& out) = 0;

  /// Copies the next bytes and consumes them; returns how many.
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
