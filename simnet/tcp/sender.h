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

/// A data segment to be sent now.
struct DataSegment {
  Range bytes;
  bool again = false;  ///< it is a retransmission
  bool cwr = false;    ///< it carries CWR: the window was reduced for a mark
};

/// Puts a sender's segments into packets and sends them.
class SegmentOutlet {
 public:
  virtual ~SegmentOutlet() = default;
  virtual void transmit(const DataSegment& segment) = 0;
};

/// The contents of a received segment that matter to the sender.
struct Ack {
  uint64_t upTo = 0;       ///< cumulative ACK
  uint64_t window = 0;     ///< receive window: bytes that the peer accepts beyond `upTo`
  bool echo = false;       ///< ECE
  bool corrected = false;  ///< the peer restored a loss from redundancy
  bool pure = true;        ///< the segment carries no data
  std::optional<Time>
      echoed;  ///< the echoed timestamp: when the acknowledged segment was sent, whole microseconds
  std::optional<Range> dsack;
  /// All bytes below this that are not acknowledged are missing
  std::optional<uint64_t> missingUpTo;
  uint8_t sackCount = 0;
  std::array<Range, 4> sacks{};  ///< ascending, without the D-SACK

  void addSack(Range block) {
    size_t at = sackCount++;
    for (; at > 0 && sacks[at - 1].begin > block.begin; --at) sacks[at] = sacks[at - 1];
    sacks[at] = block;
  }
};

struct SenderStats {
  uint64_t sent = 0;           ///< data segments, retransmissions included
  uint64_t retransmitted = 0;  ///< retransmissions, including probes, without copies by redundancy
  uint64_t fastRecoveries = 0;
  uint64_t timeouts = 0;  ///< retransmission timeouts, without those of the SYN
  uint64_t reneged = 0;   ///< timeouts while the first segment in flight was SACKed (reneging)
  uint64_t probes = 0;    ///< tail loss probes
  uint64_t marks = 0;     ///< window reductions for ECE
  uint64_t dsacks = 0;
  uint64_t idleRestarts = 0;
};

/// The result of the handshake: negotiated options, the peer's window, and what the sender
/// measured.
struct Agreement {
  uint32_t mss = 0;  ///< payload bytes of a full segment
  bool sack = false;
  bool timestamps = false;
  bool ecn = false;
  uint64_t peerWindow = 0;
  uint32_t synTimeouts = 0;
  std::optional<Duration> rtt;
};

/// The sending direction of a TCP connection. It processes ACKs and sends what the congestion
/// window and the peer's receive window allow, retransmissions first.
class Sender {
 public:
  Sender(Timeline& timeline, SegmentOutlet& outlet, const Options& options);

  /// The handshake has ended.
  void open(const Agreement& agreement);
  /// Adds `bytes` bytes to send.
  void write(uint64_t bytes);
  void onAck(const Ack& ack);
  /// The path MTU is smaller (ICMP): full segments have `mss` payload bytes from now on.
  void reduceMss(uint32_t mss);
  /// Stops sending.
  void stop();

  const SenderStats& stats() const { return stats_; }
  /// Stream offsets up to which data is acknowledged, sent and written.
  uint64_t acked() const { return una_; }
  uint64_t sentUpTo() const { return next_; }
  uint64_t written() const { return end_; }
  /// Bytes sent and not acknowledged; pipe() counts those presumably in the network (RFC 6675).
  uint64_t flight() const { return board_.flight(); }
  uint64_t pipe() const;
  /// Payload bytes of a full segment.
  uint32_t mss() const { return mss_; }
  const Rto& rto() const { return timers_.rto; }
  /// The congestion window in bytes. It and ssthresh() are 0 before the connection is open.
  double cwnd() const { return window_ ? window_->size() : 0; }
  double ssthresh() const { return window_ ? window_->threshold() : 0; }
  bool recovering() const { return window_ && window_->recovering(); }
  Window::Phase phase() const { return window_ ? window_->phase() : Window::Phase::kOpen; }
  /// Only once the connection is open.
  const Congestion& congestion() const { return window_->congestion(); }
  const LossDetector& detector() const { return *detector_; }

 private:
  /// The progress that an ACK brought.
  struct Progress {
    uint64_t acked = 0;      // bytes, by the cumulative ACK
    uint64_t delivered = 0;  // bytes newly known to have arrived, including SACKed ones
    uint64_t segments = 0;   // segments that the cumulative ACK newly covers
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
  bool partialAck_ = false;  // without SACK: a partial ACK arrived in this fast recovery
  bool cwr_ = false;         // the next new segment carries CWR
  bool repairNow_ = false;   // retransmit one segment regardless of the window
  Time lastSent_ = Time::min();
};

}  // namespace braid::sim::tcp
