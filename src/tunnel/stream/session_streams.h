#pragma once

// The streams of one session. A stream is a TCP connection that both gateways terminate: only its
// bytes cross the tunnel in between, and each host sees a short round trip. (The other connections
// cross it as packets.) Session owns one SessionStreams. It has three kinds of callers:
//
//     the driver   holds the TCP sockets (TcpProxy in the daemon). It calls StreamApi
//                  (Tunnel::streams()) with a StreamHandle. TunnelStreams implements that: it looks
//                  the stream up and calls here. Its events are kept in StreamRegistry. To
//                  intercept a connection is to terminate it there instead of forwarding its
//                  packets
//     Inbound      hands over STREAM, STREAM_CREDIT and RESET frames of the peer
//     Outbound     polls the credit and reset frames for the peer
//
// The bytes of a stream, in each direction:
//
//     driver -> StreamSendSide::write -> SendBuffer, in units that fit a datagram
//            -> DrrScheduler, the stream's turn among all flows and streams
//            -> DataTracker, until the peer has them; a lost unit is sent again
//            ~~ the peer: Inbound -> admit(), onFrame() -> Reassembler, in order
//            -> driver reads there (StreamApi::peek), and says so by consume()
//
// Life of a stream. One side opens it: open() here, and at the other side the first STREAM frame
// with an opening (the two addresses), which may carry bytes already. Every frame has the opening
// until the peer is known to have the stream, so any of them may come first. Each direction ends
// with a FIN. A stream is removed when both directions are done: all that was written is
// acknowledged, and all that came is read. A reset by either side removes it at once; what has not
// arrived is lost. Then only its id is remembered (StreamIdFilter).
//
// Flow control is QUIC's: STREAM_CREDIT says up to which offset the peer may send. The window
// behind it doubles while the driver reads half of it within two RTTs of the slowest path, like the
// receive buffer of TCP.
//
// Bounds (StreamOptions):
//
//     most           streams of both sides at once. Beyond it this side resets those that the peer
//                    opens. It opens none beyond it or the peer's bound (Params::streams)
//     newPerSecond   new streams of the peer (StreamRateLimits): this side resets those beyond
//                    it, and itself opens at most half as many
//     heldBytes      received and not yet read, all streams together (ReceiveMemory); allHeldBytes
//                    the same of all peers. At either bound a frame out of order is not taken
//                    (kNoRoom), and for one in order this session's stream with the most unread
//                    bytes is reset, so no stream waits for the reader of another. At allHeldBytes
//                    sessions that hold more than twice as much reset theirs first
//     mostCredit     window of one stream
//     queuedBytes    written and not yet sent, of one stream. The bound in force is lower if the
//                    paths carry less in 8 ms (setPaths())

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/containers.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/queue/options.h"
#include "tunnel/queue/trace.h"
#include "tunnel/stream/registry.h"
#include "tunnel/stream/send_side.h"
#include "tunnel/stream/stream.h"
#include "tunnel/stream/stream_admission.h"
#include "tunnel/stream/stream_io.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/parameters.h"

namespace braid {

/// What the streams of a session work with. All but the last two must outlive them.
struct StreamContext {
  const StreamOptions& options;
  PacketPool& pool;
  DataTracker& dataTracker;
  const RecoveryTrace& trace;
  StreamRateLimits& rateLimits;        ///< of the peer
  StreamRegistry* registry = nullptr;  ///< of all sessions; nullptr: there are no streams
  MemoryQuota* memory = nullptr;       ///< counts allHeldBytes; nullptr: no bound
  uint32_t session = 0;                ///< session id
  bool isInitiator = false;            ///< it opens even stream ids, the responder odd ones
};

class SessionStreams {
 public:
  /// At most this many resets wait to be sent. While there are as many, no stream begins.
  static constexpr size_t kMostResets = 16384;
  /// mayIntercept() is false for this long after the peer had no room for a stream.
  static constexpr Duration kPauseAfterRefusal = 5s;

  /// `drr`: shared with the session's packets; it must outlive this object.
  SessionStreams(const StreamContext& context, DrrScheduler& drr);
  /// Ends all streams as endAll(kGone, false) does.
  ~SessionStreams();
  SessionStreams(const SessionStreams&) = delete;
  SessionStreams& operator=(const SessionStreams&) = delete;

  // ---- called by the session and its parts

  /// Whether this side opens and accepts streams.
  bool isOn() const { return context_.options.on && registry_; }
  /// Writes to `own`, the parameters that are sent to the peer, how many streams and bytes this
  /// side accepts. Nothing is written when isOn() is false.
  void writeParams(Params& own) const;
  /// The peer's parameters have come. Until then no stream can be opened.
  void setPeerParams(const Params& peer) { peer_ = peer; }
  /// `unit`: size in bytes that fits the smallest datagram of the paths in use. `rate`: bytes per
  /// second that the paths carry together; infinity: not known. `rtt`: round-trip time of the
  /// slowest path, above 0.
  void setPaths(size_t unit, double rate, Duration rtt) {
    sendSide_.setPaths(unit, rate);
    rtt_ = rtt;
  }

  enum class Verdict : uint8_t {
    kTaken,  ///< it may be taken, or is of no use any more; its datagram is acknowledged
    /// Memory is short for it, or it cannot even be refused (too many resets). Its datagram must
    /// count as lost; other frames of it that were taken stay, and come again as duplicates.
    kNoRoom,
    kBad,  ///< it violates the protocol: beyond the credit, or beyond the end of the stream
  };
  /// Whether the frame can be taken. Inbound asks for each frame of a datagram in turn, and takes
  /// it before it asks for the next. Opens the frame's stream if it is new. May reset streams to
  /// make room, even that of the frame.
  Verdict admit(const StreamFrame& frame, Time now);
  /// Takes a frame after admit() has returned kTaken for it at the same `now`. `bytes` holds the
  /// frame's bytes. Does nothing when the stream has ended.
  void onFrame(const StreamFrame& frame, Packet bytes, Time now);
  /// A credit that is not larger than the one before, or for a stream that has ended, is ignored.
  void onCredit(const StreamCreditFrame& frame);
  /// The peer resets a stream, perhaps before its opening has arrived.
  void onReset(const StreamResetFrame& frame, Time now);
  /// Ends the streams that are done, and tells the driver to write again to those for which no
  /// buffer was free. Session calls it after each call in which something may have happened, and at
  /// nextDeadline().
  void update(Time now);
  /// When update() is due if nothing happens until then; kNever: it is not.
  Time nextDeadline() const {
    return std::min(sendSide_.nextDeadline(), isPaused_ ? pausedUntil_ : kNever);
  }
  /// Resets all streams, and tells the driver. `tellPeer`: sends resets, too; false when the
  /// session ends.
  void endAll(StreamCause cause, bool tellPeer);

  /// Takes the next frame for the peer; false when there is none. A credit frame holds the stream's
  /// newest credit. The caller sees to it that the frame arrives (ControlFrames).
  bool pollCredit(StreamCreditFrame& out);
  bool pollReset(StreamResetFrame& out);

  // ---- called for the driver (StreamApi). `stream` is one of this session's

  /// Whether open() may succeed, apart from rate limit and buffers: both sides take part, and there
  /// is room for a stream and its reset.
  bool canOpen() const;
  /// Whether new connections are to be intercepted to become streams: canOpen() is true, and there
  /// is also room for connections that the driver still intercepts until it acts on a false. False
  /// for kPauseAfterRefusal after the peer had no room for a stream, and while the rate limit is
  /// nearly used up.
  bool mayIntercept() const;
  /// Whether the peer says when a destination has accepted a connection.
  bool canAsk() const { return peer_.answersOpenings(); }
  /// Opens a stream; bytes may be written at once. Returns an empty handle, and nothing has begun,
  /// when canOpen() is false, the rate limit is used up, or no buffer is free. `asks`: the peer is
  /// to say when the destination has accepted the connection; canAsk() must be true.
  StreamHandle open(const StreamEnds& ends, Time now, bool asks = false);
  /// The destination of a stream that the peer has opened has accepted the connection. Tells the
  /// peer if it has asked.
  void answer(Stream& stream);
  /// Takes what the driver writes.
  StreamSendSide& sendSide() { return sendSide_; }
  /// The driver has read `bytes` bytes, at most Reassembler::readable(). May end the stream, and
  /// raises the peer's credit once half of the window is used.
  void consume(Stream& stream, size_t bytes, Time now);
  /// The driver gives the stream up: sends a reset. After the call the stream is gone and its
  /// handle is dead; the driver gets no event.
  void reset(Stream& stream, StreamCause cause, Time now);

  // ---- for the operator

  uint32_t session() const { return context_.session; }
  /// Streams at present.
  size_t size() const { return streams_.size(); }
  /// Bytes held for readers, as whole buffers.
  size_t heldBytes() const { return receiveMemory_.bytes(); }
  /// Since the session began.
  StreamCounts counts() const;
  /// At most `most` streams, in the order of their ids.
  std::vector<StreamStatus> list(size_t most, Time now) const;

 private:
  Stream* find(StreamId id) const;
  /// Streams of both sides at once that this side announces to the peer as its bound. Fewer than
  /// options.most, because the peer learns late what this side opens and ends.
  size_t announcedMost() const;
  /// This side opens none while there are as many: options.most, or what the peer has announced if
  /// that is less.
  size_t most() const;
  bool isOwn(StreamId id) const { return (id.value() % 2 == 0) == context_.isInitiator; }
  Stream& add(StreamId id, const StreamOpening& opening, bool own, Time now);
  Verdict admitNew(const StreamFrame& frame, Time now);
  bool makeRoom(size_t bytes, Time now);
  void freeMemory();
  void raiseCredit(Stream& stream, Time now);
  void announceCredit(Stream& stream);
  void noteAnswer(Stream& stream);
  size_t firstCredit() const;
  void endIfDone(Stream& stream, Time now);
  void queueReset(StreamId id, StreamCause cause);
  void pauseIntercepting(Time until);
  void reset(Stream& stream, StreamCause cause, bool tellDriver, Time now);
  /// `cause`: of a reset; nullopt: both directions are done.
  void end(Stream& stream, std::optional<StreamCause> cause, Time now);
  static StreamTrace traceOf(const Stream& stream, Time now);
  void traceEnd(const Stream& stream, std::optional<StreamCause> cause, Time now) const;
  void remove(Stream& stream);

  StreamContext context_;
  StreamRegistry* const registry_;  ///< nullptr: there are no streams
  ChunkPool store_;
  std::map<StreamId, std::unique_ptr<Stream>> streams_;
  StreamIdFilter ids_;  ///< streams that the peer has opened
  Params peer_;         ///< of the peer; before they came: no streams
  /// First credit of streams that the peer opens, as announced to it: bytes.
  const size_t peersFirstCredit_;
  uint64_t nextId_;  ///< of the next stream that this side opens
  Time updated_{};   ///< time of the last update()
  ReceiveMemory receiveMemory_;
  StreamSendSide sendSide_;
  Duration rtt_;             ///< of the slowest path
  bool wasRefused_ = false;  ///< the peer had no room for a stream, since the last update()
  bool isPaused_ = false;    ///< mayIntercept() is false, until pausedUntil_
  Time pausedUntil_{};
  IntrusiveList<Stream, &Stream::byCredit_> creditsToSend_;
  Ring<StreamResetFrame> resets_;
  StreamCounts counts_;
};

}  // namespace braid
