#pragma once

// The lane of streams: TCP connections that end at the gateways, and whose bytes cross the tunnel in between.
//
// What flows through. The driver writes bytes to a stream; they lie in its StreamSource, cut into units, until the
// FairRound comes to it. From there the DataLedger has them, until they have arrived; what is lost is cut anew where the
// path asks for it. At the other end ranges go to the stream's StreamAssembly, and from there to the driver. What happened
// to a stream the driver learns at the StreamDesk.
//
//     driver -> write, finish -> StreamSource -> FairRound -> DataLedger ...   ... onFrame -> StreamAssembly -> driver
//            <- StreamDesk <---------- onCredit, onReset, onFrame <-- Inbound
//            -> consume ------> pollCredit, reset -> pollReset --> Outbound
//
// Life of a stream. It begins with open(), or with the first frame of the peer that has its opening. It ends when both
// directions are done, or at once by a reset of either side; then nothing is left of it but the number (StreamIds) and a
// word to the peer.
//
// Bounds. The peer sends no more of a stream than its credit says, which grows as the driver reads, faster for who reads
// fast. All that is held together has a bound; there the stream that holds most is reset. What the driver may write ahead
// is what the paths carry in a few milliseconds. No stream waits for another. Either side opens streams within a ration
// (StreamRations), for each makes the other's kernel connect.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/packet.h"
#include "base/ring.h"
#include "tunnel/lane/data_ledger.h"
#include "tunnel/lane/stream.h"
#include "tunnel/lane/stream_desk.h"
#include "tunnel/lane/stream_holdings.h"
#include "tunnel/lane/stream_ids.h"
#include "tunnel/lane/stream_options.h"
#include "tunnel/lane/stream_rations.h"
#include "tunnel/lane/stream_sending.h"
#include "tunnel/lane/stream_status.h"
#include "tunnel/lane/trace.h"
#include "tunnel/wire/params.h"

namespace braid {

/// What a stream lane works with. All but the numbers must outlive it.
struct StreamContext {
  const StreamOptions& options;
  PacketPool& pool;
  DataLedger& ledger;
  FairRound& round;
  const RecoveryTrace& trace;
  StreamRations& rations;
  uint32_t session = 0;
  bool isInitiator = false;
};

/// The streams of a session: what they are, what comes of them, and their ends. What leaves is StreamSending's.
class StreamLane {
 public:
  /// Resets that wait to be sent: with so many, no stream begins. Ours.
  static constexpr size_t kMostResets = 16384;
  /// So long new connections stay packets after the peer had no room for one. Ours.
  static constexpr Duration kTurnedAway = 5s;

  explicit StreamLane(const StreamContext& context);
  ~StreamLane();
  StreamLane(const StreamLane&) = delete;
  StreamLane& operator=(const StreamLane&) = delete;

  // ---- what the session tells

  /// This side takes part in streams.
  bool isOn() const { return context_.options.on && desk_; }
  /// What this side says of itself.
  void describe(Params& own) const;
  void setPeer(const Params& peer) { peer_ = peer; }
  /// How large a unit may be, what the paths carry together (bytes per second; infinity: not known) and the round trip
  /// of the slowest.
  void setPaths(size_t unit, double rate, Duration rtt) {
    sending_.setPaths(unit, rate);
    rtt_ = rtt;
  }

  enum class Verdict : uint8_t {
    kTaken,
    kNoRoom,  ///< there is no memory for it: its datagram must count as lost
    kBad,     ///< it says what it must not
  };
  /// Whether the frame can be taken, for which others may have to go.
  Verdict admit(const StreamFrame& frame, Time now);
  /// A frame that was admitted at this moment; `bytes` are its.
  void onFrame(const StreamFrame& frame, Packet bytes, Time now);
  void onCredit(const StreamCreditFrame& frame);
  void onReset(const StreamResetFrame& frame, Time now);
  /// Looks at the streams that something happened to. After other calls of the session.
  void update(Time now);
  /// When update() is due, whatever happens until then.
  Time nextDeadline() const { return std::min(sending_.nextDeadline(), isResting_ ? restsUntil_ : kNever); }
  /// All streams end; `tellPeer`: the session goes on.
  void endAll(StreamCause cause, bool tellPeer);

  /// The next word for the peer; false: there is none.
  bool pollCredit(StreamCreditFrame& out);
  bool pollReset(StreamResetFrame& out);

  // ---- what the driver does

  bool canOpen() const;
  /// Whether new connections are to become streams: canOpen(), and it will for those that are on their way, too. Not for
  /// kTurnedAway after the peer had no room for one, and not while the ration is nearly used up (StreamRations).
  bool mayTakeOver() const;
  /// An empty handle when canOpen() says no, the ration is used up, or there is no buffer.
  StreamHandle open(const StreamEnds& ends, Time now);
  /// What it writes.
  StreamSending& sending() { return sending_; }
  void consume(Stream& stream, size_t bytes, Time now);
  /// The stream is gone after the call, and its handle dead.
  void reset(Stream& stream, StreamCause cause, Time now);

  // ---- for the operator

  uint32_t session() const { return context_.session; }
  size_t size() const { return streams_.size(); }
  /// Bytes held for readers, whole buffers.
  size_t heldBytes() const { return holdings_.bytes(); }
  StreamCounts counts() const;
  /// Up to so many streams, those opened first.
  std::vector<StreamStatus> list(size_t most, Time now) const;

 private:
  Stream* find(StreamId id) const;
  /// Streams at once, of both sides, from which on the peer opens no more: fewer than this side can have, for the peer
  /// hears late of what this side opens and ends.
  size_t announced() const;
  /// And from which on this side opens no more.
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
  StreamDesk* const desk_;  ///< nullptr: there are no streams
  StreamStore store_;
  std::map<StreamId, std::unique_ptr<Stream>> streams_;
  StreamIds ids_;  ///< that the peer has begun
  Params peer_;
  const size_t upload_;  ///< credit of streams that the peer opens, as it was told
  uint64_t nextId_;
  Time updated_{};  ///< by the last update()
  StreamHoldings holdings_;
  StreamSending sending_;
  Duration rtt_;                ///< of the slowest path
  bool wasTurnedAway_ = false;  ///< the peer had no room for a stream, since update()
  bool isResting_ = false;      ///< new connections stay packets, until `restsUntil_`
  Time restsUntil_{};
  IntrusiveList<Stream, &Stream::byCredit_> owing_;
  Ring<StreamResetFrame> resets_;
  StreamCounts counts_;
};

}  // namespace braid
