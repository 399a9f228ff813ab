#pragma once

#include <optional>

#include "simnet/tcp/options.h"
#include "simnet/tcp/rack.h"
#include "simnet/tcp/sack_counting.h"

namespace braid::sim::tcp {

/// Finds losses by ACKs in the way that the options choose: RACK, counting SACKs, or duplicate ACKs alone
/// (RFC 5681, RFC 6582).
class LossDetector {
 public:
  /// What the sender does meanwhile.
  struct Situation {
    bool fastRecovery = false;
    bool timeoutRecovery = false;
    bool moreData = false;  ///< new data may be sent
    Duration srtt{};
    Time now;
  };
  /// What an ACK without SACK says.
  struct Plain {
    bool duplicate = false;  ///< nothing new, while something is outstanding
    bool progress = false;   ///< new data is acknowledged
    bool stale = false;      ///< it may be of what a recovery sent again (RFC 6582 section 3.2, step 2)
    uint64_t segments = 0;   ///< acknowledged
  };

  /// `sack`: it was agreed on.
  LossDetector(const Options& options, bool sack)
      : sack_(sack),
        byTime_(sack && options.rack),
        early_(options.earlyRetransmit),
        counting_(options.fack) {}

  /// See Rack.
  void onHandshake(Duration rtt) { rack_.onHandshake(rtt); }
  /// A segment has newly arrived: see Rack.
  void onDelivered(const SentSegment& s, Time now, std::optional<Time> echoed) {
    if (byTime_) rack_.onDelivered(s, now, echoed);
  }
  void onDsack(uint64_t una, uint64_t next) { rack_.onDsack(una, next); }
  /// Each ACK of a connection without SACK. True when the first segment is to be sent again at once.
  bool onPlainAck(Scoreboard& board, const Plain& ack, const Situation& s);
  /// Everything below `end` was sent before something that has arrived, and had arrived before if at all.
  static void loseUpTo(Scoreboard& board, uint64_t end);
  /// Marks what is lost. When to look again without an ACK, or kNever.
  Time find(Scoreboard& board, const Situation& s);
  /// Marks what is lost when the retransmission timer goes off: the first segment at least.
  void onTimeout(Scoreboard& board, const Situation& s);
  /// A segment that may go when nothing else does, in a fast recovery (RFC 6675 section 4, NextSeg() rule 3);
  /// Scoreboard::kNone without one.
  uint32_t nextDoubtful(const Scoreboard& board) {
    return sack_ && !byTime_ ? counting_.nextDoubtful(board) : Scoreboard::kNone;
  }
  /// A fast recovery has begun; a recovery has ended.
  void onFastRecovery() { counting_.onRecovery(); }
  void onRecoveryEnd();

  /// Without SACK: segments that duplicate ACKs say have arrived.
  uint32_t unnamedArrivals() const { return duplicates_; }
  const Rack& rack() const { return rack_; }

 private:
  uint32_t threshold(const Scoreboard& board, const Situation& s) const {
    return SackCounting::threshold(early_, board.size(), s.moreData);
  }

  bool sack_, byTime_, early_;
  Rack rack_;
  SackCounting counting_;
  uint32_t duplicates_ = 0;  // in a recovery less those that partial ACKs explain
};

}  // namespace braid::sim::tcp
