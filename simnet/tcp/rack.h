#pragma once

#include <algorithm>
#include <optional>

#include "simnet/tcp/scoreboard.h"

namespace braid::sim::tcp {

/// Loss detection by time (RFC 8985 section 6): a segment is lost when one that was sent after it, a reordering
/// window later, has arrived.
///
/// Departures: a timestamp tells whether a repair has arrived only where the cumulative ACK covers it, for that
/// of other ACKs is older (RFC 7323 section 4.3); Linux does not look at it at all. The timer is for the first segment that may get lost and not for the last one (step 5), so each
/// is found at its own time.
class Rack {
 public:
  /// Without reordering so many SACKed segments end the wait (DupThresh).
  static constexpr uint64_t kDupThresh = 3;

  /// The handshake's round trip: RACK.min_RTT is the connection's, and the segments of a first flight queue behind each other.
  void onHandshake(Duration rtt) { minRtt_ = std::min(minRtt_, rtt); }
  /// A segment has newly arrived; `echoed`: the time that the timestamp of a cumulative ACK shows. In order of the bytes of
  /// one ACK (steps 1 to 3).
  void onDelivered(const SentSegment& s, Time now, std::optional<Time> echoed);
  /// The ACK carries a D-SACK; data up to `una` is acknowledged and up to `next` sent (step 4).
  void onDsack(uint64_t una, uint64_t next);
  /// A recovery, fast or by timeout, has ended.
  void onRecoveryEnd();
  /// Marks what is lost (step 5). When to look again; kNever: not before the next ACK. `recovering`: fast or
  /// after a timeout.
  Time findLost(Scoreboard& board, bool recovering, Duration srtt, Time now) const;
  /// Marks what is lost when the retransmission timer goes off (section 6.3): the first segment, and what was
  /// sent long ago.
  void onTimeout(Scoreboard& board, Duration srtt, Time now) const;

  bool sawReordering() const { return reordering_; }
  /// The reordering window: RACK.reo_wnd.
  Duration window(const Scoreboard& board, bool recovering, Duration srtt) const;

 private:
  /// Recoveries for which a wider window lasts.
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
