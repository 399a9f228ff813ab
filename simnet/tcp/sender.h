#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "simnet/tcp/loss_detector.h"
#include "simnet/tcp/scoreboard.h"
#include "simnet/tcp/sender_timers.h"
#include "simnet/tcp/tail_probe.h"
#include "simnet/tcp/window.h"

namespace braid::sim::tcp {

/// A data segment that is to be sent now.
struct DataSegment {
  Range bytes;
  bool again = false;  ///< not for the first time
  bool cwr = false;    ///< the window gave way to a mark
};

/// Who puts a sender's segments into packets.
class SegmentOutlet {
 public:
  virtual ~SegmentOutlet() = default;
  virtual void transmit(const DataSegment& segment) = 0;
};

/// What a sender takes from a segment of the peer.
struct Ack {
  uint64_t upTo = 0;           ///< cumulative ACK
  uint64_t window = 0;         ///< bytes beyond it that the peer takes
  bool echo = false;           ///< ECE
  bool corrected = false;      ///< redundancy gave the peer what was lost
  bool pure = true;            ///< it carries no data
  std::optional<Time> echoed;  ///< when what it acknowledges was sent, by the timestamp; whole microseconds
  std::optional<Range> dsack;
  std::optional<uint64_t> missingUpTo;  ///< all that is not acknowledged below this is missing
  uint8_t sackCount = 0;
  std::array<Range, 4> sacks{};  ///< ascending, without the D-SACK

  void addSack(Range block) {
    size_t at = sackCount++;
    for (; at > 0 && sacks[at - 1].begin > block.begin; --at) sacks[at] = sacks[at - 1];
    sacks[at] = block;
  }
};

struct SenderStats {
  uint64_t sent = 0;           ///< data segments, all transmissions
  uint64_t retransmitted = 0;  ///< of these not for the first time, probes included, copies by redundancy not
  uint64_t fastRecoveries = 0;
  uint64_t timeouts = 0;  ///< without those of the SYN
  uint64_t reneged = 0;   ///< of these, while the first segment in flight was SACKed (reneging)
  uint64_t probes = 0;    ///< TLP
  uint64_t marks = 0;     ///< windows that gave way to ECE
  uint64_t dsacks = 0;
  uint64_t idleRestarts = 0;
};

/// What both sides agreed on in the handshake, and what the sender learnt from it.
struct Agreement {
  uint32_t mss = 0;  ///< payload bytes of a full segment
  bool sack = false;
  bool timestamps = false;
  bool ecn = false;
  uint64_t peerWindow = 0;
  uint32_t synTimeouts = 0;
  std::optional<Duration> rtt;
};

/// The sending half of a TCP connection: it takes in ACKs and sends what window and peer allow, repairs first.
class Sender {
 public:
  Sender(Timeline& timeline, SegmentOutlet& outlet, const Options& options);

  /// The handshake is over.
  void open(const Agreement& agreement);
  /// So many bytes more are to be sent.
  void write(uint64_t bytes);
  void onAck(const Ack& ack);
  /// The path carries less (ICMP): full segments have so many bytes from now on.
  void reduceMss(uint32_t mss);
  /// Nothing is sent any more.
  void stop();

  const SenderStats& stats() const { return stats_; }
  /// Offsets: acknowledged, sent, and written up to here.
  uint64_t acked() const { return una_; }
  uint64_t sentUpTo() const { return next_; }
  uint64_t written() const { return end_; }
  /// Bytes sent and not acknowledged, and those thought to be on their way.
  uint64_t flight() const { return board_.flight(); }
  uint64_t pipe() const;
  /// Payload bytes of a full segment.
  uint32_t mss() const { return mss_; }
  const Rto& rto() const { return timers_.rto; }
  /// The window in bytes; 0 before the connection is open, as is ssthresh.
  double cwnd() const { return window_ ? window_->size() : 0; }
  double ssthresh() const { return window_ ? window_->threshold() : 0; }
  bool recovering() const { return window_ && window_->recovering(); }
  Window::Phase phase() const { return window_ ? window_->phase() : Window::Phase::kOpen; }
  /// These exist once the connection is open.
  const Congestion& congestion() const { return window_->congestion(); }
  const LossDetector& detector() const { return *detector_; }

 private:
  /// What an ACK brought.
  struct Progress {
    uint64_t acked = 0;      // bytes, by the cumulative ACK
    uint64_t delivered = 0;  // bytes that newly arrived, SACKed ones included
    uint64_t segments = 0;   // that the cumulative ACK covers
    Time newestSentAt = Time::min();
  };

  Progress take(const Ack& ack);
  void sampleRtt(const Ack& ack, Time sentAt, bool ambiguous, bool progress);
  void adapt(const Ack& ack, const Progress& progress, bool windowMoved);
  bool repairsByProbe(const Ack& ack, const Progress& progress);
  LossDetector::Situation situation() const;
  bool findLosses();
  void beginFastRecovery();
  AckEvent eventOf(const Ack& ack, const Progress& progress) const;
  Window::Flight inFlight() const { return {una_, next_, board_.flight()}; }
  Time now() const { return timeline_.now(); }

  void sendWhatMay();
  bool fits(uint64_t bytes) const;
  void sendNew();
  void sendRepair(uint32_t id);
  uint32_t nextRepair();
  bool hasNew() const;
  uint32_t nextSize() const;
  void scheduleProbe();
  void onTimer(SenderTimers::Kind kind);
  void probe();
  void onTimeout();

  Timeline& timeline_;
  SegmentOutlet& outlet_;
  Options options_;
  Agreement agreed_;
  SenderTimers timers_;
  Scoreboard board_;
  TailProbe probe_;
  std::optional<LossDetector> detector_;
  std::optional<Window> window_;
  SenderStats stats_;

  bool open_ = false;
  uint32_t mss_ = 0;
  uint64_t una_ = 0, next_ = 0, end_ = 0;  // acknowledged, sent, written
  uint64_t peerEnd_ = 0;                   // the right edge of the peer's window
  bool partialAck_ = false;                // without SACK: one came in this fast recovery
  bool cwr_ = false;                       // the next new segment says CWR
  bool repairNow_ = false;                 // whatever the window is
  Time lastSent_ = Time::min();
};

}  // namespace braid::sim::tcp
