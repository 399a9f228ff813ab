#pragma once

#include <optional>

#include "simnet/tcp/options.h"
#include "simnet/tcp/rack.h"
#include "simnet/tcp/sack_counting.h"

namespace braid::sim::tcp {

/// Finds losses from ACKs by the method that the options select: RACK, counting SACKs, or only
/// duplicate ACKs (RFC 5681, RFC 6582).
class LossDetector {
 public:
  /// The sender's state.
  struct Situation {
    bool fastRecovery = false;
    bool timeoutRecovery = false;
    bool moreData = false;  ///< new data is available and may be sent
    Duration srtt{};
    Time now;
  };
  /// The facts about an ACK of a connection without SACK.
  struct Plain {
    bool duplicate = false;  ///< acknowledges nothing new while data is outstanding
    bool progress = false;   ///< new data is acknowledged
    /// The ACK may be caused by a recovery's retransmissions (RFC 6582 section 3.2, step 2)
    bool stale = false;
    uint64_t segments = 0;  ///< number of segments acknowledged
  };

  /// `sack`: SACK was negotiated.
  LossDetector(const Options& options, bool sack)
      : sack_(sack),
        byTime_(sack && options.rack),
        early_(options.earlyRetransmit),
        counting_(options.fack) {}

  /// See Rack::onHandshake().
  void onHandshake(Duration rtt) { rack_.onHandshake(rtt); }
  /// A segment is newly known to have arrived; see Rack::onDelivered().
  void onDelivered(const SentSegment& s, Time now, std::optional<Time> echoed) {
    if (byTime_) rack_.onDelivered(s, now, echoed);
  }
  void onDsack(uint64_t una, uint64_t next) { rack_.onDsack(una, next); }
  /// Called for each ACK of a connection without SACK. True when the first outstanding segment must
  /// be resent at once.
  bool onPlainAck(Scoreboard& board, const Plain& ack, const Situation& s);
  /// Marks all segments below `end` as lost, except those already retransmitted: something sent
  /// after them has arrived, and they would have arrived before it.
  static void loseUpTo(Scoreboard& board, uint64_t end);
  /// Marks lost segments. Returns when to call it again if no ACK arrives, or kNever.
  Time find(Scoreboard& board, const Situation& s);
  /// Marks lost segments when the retransmission timer fires: at least the first one.
  void onTimeout(Scoreboard& board, const Situation& s);
  /// In a fast recovery, a segment that may be resent when there is nothing else to send (RFC 6675
  /// section 4, NextSeg() rule 3); Scoreboard::kNone if there is none.
  uint32_t nextDoubtful(const Scoreboard& board) {
    return sack_ && !byTime_ ? counting_.nextDoubtful(board) : Scoreboard::kNone;
  }
  /// Call when a fast recovery begins, and onRecoveryEnd() when any recovery ends.
  void onFastRecovery() { counting_.onRecovery(); }
  void onRecoveryEnd();

  /// Without SACK: number of segments that have arrived according to duplicate ACKs.
  uint32_t unnamedArrivals() const { return duplicates_; }
  const Rack& rack() const { return rack_; }

 private:
  uint32_t threshold(const Scoreboard& board, const Situation& s) const {
    return SackCounting::threshold(early_, board.size(), s.moreData);
  }

  bool sack_, byTime_, early_;
  Rack rack_;
  SackCounting counting_;
  uint32_t duplicates_ = 0;  // duplicate ACKs; in a recovery minus those that partial ACKs explain
};

}  // namespace braid::sim::tcp
