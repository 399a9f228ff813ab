#pragma once

// The stream lane: TCP connections that are terminated at the gateways, so that only their bytes
// cross the tunnel in between.
//
// The way of the bytes. The driver writes bytes to a stream. They wait in its SendBuffer, cut into
// units, until it is the stream's turn in the DrrScheduler. Then the DataTracker has them until
// they have arrived; a lost unit is cut again where a path needs that. At the other end the ranges
// enter the stream's Reassembler, and the driver reads them there. The driver learns from the
// StreamRegistry what happened to a stream.
//
//     driver -> write, finish -> SendBuffer -> DrrScheduler -> DataTracker ...
//                                                       ... onFrame -> Reassembler -> driver
//     driver <- StreamRegistry <- onCredit, onReset, onFrame <- Inbound
//     driver -> consume -> pollCredit; driver -> reset -> pollReset; both -> Outbound
//
// Life of a stream. It begins with open(), or with the peer's first frame that has its opening. It
// ends when both directions are done, or at once by a reset of either side. Then only its number is
// left (StreamIdFilter), and a frame for the peer.
//
// Bounds. The peer sends no more of a stream than its credit allows. The credit grows as the driver
// reads, faster for a driver that reads fast. The received bytes of all streams together are
// bounded; at the bound the stream with the most unread bytes is reset. The driver may write ahead
// what the paths carry in a few milliseconds. No stream waits for another. Either side opens
// streams within a rate limit (StreamRateLimits), because each one makes the other side's kernel
// connect.

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
#include "tunnel/stream/stream_io.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/parameters.h"

namespace braid {

/// Remembers which streams the other side has opened. It numbers its streams upward from the first.
/// Openings may overtake each other by less than kWindow streams.
class StreamIdFilter {
 public:
  static constexpr uint64_t kWindow = 16384;

  enum class Verdict : uint8_t {
    kNew,
    kSeen,  ///< it was opened before, and may have ended
    /// Possibly opened: kWindow or more later ones were, so this side does not remember it.
    kStale,
  };
  Verdict look(StreamId id) const {
    uint64_t n = id.value() / 2;
    if (n >= next_) return Verdict::kNew;
    if (next_ - n > kWindow) return Verdict::kStale;
    return seen_->test(n) ? Verdict::kSeen : Verdict::kNew;
  }
  /// Records the opening of a stream that is kNew.
  void mark(StreamId id) {
    uint64_t n = id.value() / 2;
    if (!seen_) seen_ = std::make_unique<BitRing<kWindow>>();
    if (n >= next_) {
      uint64_t passed = n + 1 - next_;
      if (passed >= kWindow) {
        seen_->clearAll();
      } else {
        seen_->clear(next_, passed);
      }
      next_ = n + 1;
    }
    seen_->set(n);
  }

 private:
  std::unique_ptr<BitRing<kWindow>> seen_;  ///< allocated with the first stream
  uint64_t next_ = 0;                       ///< after the largest that was opened, as StreamId / 2
};

/// Rate limits for opening streams with a peer. Opening one costs the peer a few bytes, and this
/// side a connection of its kernel. The token buckets belong to the peer and not to a session: a
/// new session does not refill them.
///
/// `perSecond`: StreamOptions::newPerSecond, at least 1.
struct StreamRateLimits {
  /// Streams that this side opens; connections beyond this limit stay packets.
  static constexpr RateLimit own(uint32_t perSecond) {
    return {2 * perSecond, Duration{2s} / perSecond};
  }
  /// Streams of the peer that this side accepts. All streams of a peer that keeps to own() are
  /// accepted, even when those that waited for a path for the repair time (3 s) come at once.
  static constexpr RateLimit ofPeer(uint32_t perSecond) {
    return {4 * perSecond, Duration{1s} / perSecond};
  }
  /// Streams of the peer beyond ofPeer() that are answered by a reset. Streams beyond this limit,
  /// too, are not even acknowledged, so the peer sends them again.
  static constexpr RateLimit refusals(uint32_t perSecond) {
    return {perSecond, Duration{1s} / perSecond};
  }

  TokenBucket opened, taken, refused;
};

/// What the stream lane of a session works with. All but the numbers must outlive it.
struct StreamContext {
  const StreamOptions& options;
  PacketPool& pool;
  DataTracker& dataTracker;
  const RecoveryTrace& trace;
  StreamRateLimits& rateLimits;
  StreamRegistry* registry = nullptr;  ///< where the driver meets streams; nullptr: no streams
  MemoryQuota* memory = nullptr;  ///< bytes held for the readers of all peers; nullptr: no bound
  uint32_t session = 0;
  bool isInitiator = false;
};

/// The streams of a session: they begin, receive and end here. StreamSendSide does the sending.
class SessionStreams {
 public:
  /// At most this many resets wait to be sent; while there are as many, no stream begins.
  static constexpr size_t kMostResets = 16384;
  /// New connections stay packets for this long after the peer had no room for a stream.
  static constexpr Duration kTurnedAway = 5s;

  /// `round`: shared with the session's packets; it must outlive this object.
  SessionStreams(const StreamContext& context, DrrScheduler& round);
  ~SessionStreams();
  SessionStreams(const SessionStreams&) = delete;
  SessionStreams& operator=(const SessionStreams&) = delete;

  // ---- called by the session

  /// Whether this side takes part in streams.
  bool isOn() const { return context_.options.on && registry_; }
  /// Writes what this side announces of its stream lane to `own`.
  void describe(Params& own) const;
  void setPeer(const Params& peer) { peer_ = peer; }
  /// `unit`: most bytes of a unit. `rate`: bytes per second that the paths carry together;
  /// infinity: not known. `rtt`: round-trip time of the slowest path.
  void setPaths(size_t unit, double rate, Duration rtt) {
    sending_.setPaths(unit, rate);
    rtt_ = rtt;
  }

  enum class Verdict : uint8_t {
    kTaken,
    kNoRoom,  ///< no memory is left for it: its datagram must count as lost
    kBad,     ///< it violates the protocol
  };
  /// Whether the frame can be taken. Opens its stream if it is new; may reset streams to make room.
  Verdict admit(const StreamFrame& frame, Time now);
  /// Takes a frame that was admitted at this time; `bytes` holds its bytes.
  void onFrame(const StreamFrame& frame, Packet bytes, Time now);
  void onCredit(const StreamCreditFrame& frame);
  void onReset(const StreamResetFrame& frame, Time now);
  /// Looks at the streams that something happened to. Call it after other calls of the session.
  void update(Time now);
  /// When update() is due if nothing happens until then.
  Time nextDeadline() const {
    return std::min(sending_.nextDeadline(), isResting_ ? restsUntil_ : kNever);
  }
  /// Ends all streams. `tellPeer`: the session continues, so the peer gets resets.
  void endAll(StreamCause cause, bool tellPeer);

  /// Takes the next frame for the peer; false when there is none.
  bool pollCredit(StreamCreditFrame& out);
  bool pollReset(StreamResetFrame& out);

  // ---- called by the driver

  bool canOpen() const;
  /// Whether new connections are to become streams: canOpen(), and it will stay true for
  /// connections that are already on their way. False for kTurnedAway after the peer had no room
  /// for a stream, and while the rate limit is nearly used up (StreamRateLimits).
  bool mayTakeOver() const;
  /// Opens a stream. Returns an empty handle when canOpen() is false, the rate limit is used up, or
  /// no buffer is free.
  StreamHandle open(const StreamEnds& ends, Time now);
  /// Takes what the driver writes.
  StreamSendSide& sending() { return sending_; }
  void consume(Stream& stream, size_t bytes, Time now);
  /// Resets the stream. After the call it is gone, and its handle is dead.
  void reset(Stream& stream, StreamCause cause, Time now);

  // ---- for the operator

  uint32_t session() const { return context_.session; }
  size_t size() const { return streams_.size(); }
  /// Bytes held for readers, as whole buffers.
  size_t heldBytes() const { return receiveMemory_.bytes(); }
  StreamCounts counts() const;
  /// At most `most` streams, in the order of their numbers.
  std::vector<StreamStatus> list(size_t most, Time now) const;

 private:
  Stream* find(StreamId id) const;
  /// Streams at once, of both sides, from which on the peer opens no more. Fewer than this side can
  /// have, because the peer learns late what this side opens and ends.
  size_t announced() const;
  /// Streams at once, of both sides, from which on this side opens no more.
  size_t most() const;
  bool isOwn(StreamId id) const { return (id.value() % 2 == 0) == context_.isInitiator; }
  Stream& add(StreamId id, const StreamOpening& opening, bool own, Time now);
  Verdict admitNew(const StreamFrame& frame, Time now);
  bool makeRoom(size_t bytes, Time now);
  void giveWay();
  void grant(Stream& stream, Time now);
  size_t firstCredit() const;
  void settle(Stream& stream, Time now);
  void refuse(StreamId id, StreamCause cause);
  void rest(Time until);
  void reset(Stream& stream, StreamCause cause, bool tellDriver, Time now);
  void end(Stream& stream, std::optional<StreamCause> cause, Time now);
  static StreamTrace lineOf(const Stream& stream, Time now);
  void traceEnd(const Stream& stream, std::optional<StreamCause> cause, Time now) const;
  void remove(Stream& stream);

  StreamContext context_;
  StreamRegistry* const registry_;  ///< nullptr when there are no streams
  ChunkPool store_;
  std::map<StreamId, std::unique_ptr<Stream>> streams_;
  StreamIdFilter ids_;  ///< streams that the peer has opened
  Params peer_;
  /// First credit of streams that the peer opens, as announced to it.
  const size_t upload_;
  uint64_t nextId_;
  Time updated_{};  ///< time of the last update()
  ReceiveMemory receiveMemory_;
  StreamSendSide sending_;
  Duration rtt_;                ///< of the slowest path
  bool wasTurnedAway_ = false;  ///< the peer had no room for a stream, since update()
  bool isResting_ = false;      ///< new connections stay packets, until `restsUntil_`
  Time restsUntil_{};
  IntrusiveList<Stream, &Stream::byCredit_> owing_;
  Ring<StreamResetFrame> resets_;
  StreamCounts counts_;
};

}  // namespace braid
