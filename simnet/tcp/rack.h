#pragma once

#include <algorithm>
#include <optional>

#include "simnet/tcp/scoreboard.h"

namespace braid::sim::tcp {

/// Loss detection by time (RFC 8985 section 6): a segment is lost when a segment sent later has
/// arrived and the reordering window has passed as well.
///
/// Differences from the RFC: a timestamp is used to tell whether a retransmission has arrived only
/// when the cumulative ACK covers the segment, because other ACKs echo an older timestamp (RFC 7323
/// section 4.3); Linux does not use it at all. The timer is set for the first segment that may be
/// lost, not for the last one (step 5), so each loss is found at its own time.
class Rack {
 public:
  /// While no reordering was seen, this many SACKed segments make the reordering window 0
  /// (DupThresh).
  static constexpr uint64_t kDupThresh = 3;

  /// Takes the handshake's round trip as a sample of RACK.min_RTT. The data segments alone may give
  /// too large a minimum, because the first window's segments queue behind each other.
  void onHandshake(Duration rtt) { minRtt_ = std::min(minRtt_, rtt); }
  /// A segment is newly known to have arrived (steps 1 to 3). Call it in the order of the bytes for
  /// each ACK. `echoed`: the sending time that the timestamp of a cumulative ACK shows.
  void onDelivered(const SentSegment& s, Time now, std::optional<Time> echoed);
  /// The ACK carries a D-SACK (step 4). Data is acknowledged up to `una` and sent up to `next`.
  void onDsack(uint64_t una, uint64_t next);
  /// A recovery (fast or after a timeout) has ended.
  void onRecoveryEnd();
  /// Marks lost segments (step 5). Returns when to call it again; kNever: not before the next ACK.
  /// `recovering`: in a recovery, fast or after a timeout.
  Time findLost(Scoreboard& board, bool recovering, Duration srtt, Time now) const;
  /// Marks lost segments when the retransmission timer fires (section 6.3): the first one, and
  /// those sent at least an RTT and a reordering window ago.
  void onTimeout(Scoreboard& board, Duration srtt, Time now) const;

  bool sawReordering() const { return reordering_; }
  /// The reordering window: RACK.reo_wnd.
  Duration window(const Scoreboard& board, bool recovering, Duration srtt) const;

 private:
  /// Number of recoveries for which a wider reordering window is kept.
  static constexpr int kPersist = 16;

  Time sentAt_ = Time::min();  // RACK.xmit_ts
  uint64_t end_ = 0;           // RACK.end_seq
  Duration rtt_{};
  Duration minRtt_ = Duration::max();
  uint64_t fack_ = 0;
  bool reordering_ = false;
  int multiple_ = 1;  // RACK.reo_wnd_mult
  int persist_ = 0;
  std::optional<uint64_t> dsackRound_;
};

}  // namespace braid::sim::tcp
