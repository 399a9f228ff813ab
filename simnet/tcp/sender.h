#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "simnet/tcp/alarm.h"
#include "simnet/tcp/congestion.h"
#include "simnet/tcp/options.h"
#include "simnet/tcp/prr.h"
#include "simnet/tcp/rack.h"
#include "simnet/tcp/rto.h"
#include "simnet/tcp/sack_counting.h"
#include "simnet/tcp/scoreboard.h"
#include "simnet/tcp/tail_probe.h"
#include "simnet/tcp/window_usage.h"

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

/// The sending half of a TCP connection: window, loss detection, repair, timers.
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
  uint64_t acked() const { return una_; }
  uint64_t sentUpTo() const { return next_; }
  uint64_t written() const { return end_; }
  /// Bytes sent and not acknowledged, and those thought to be on their way.
  uint64_t flight() const { return board_.flight(); }
  uint64_t pipe() const;
  double cwnd() const { return cwnd_; }
  /// Bytes; infinity at first.
  double ssthresh() const { return ssthresh_; }
  uint32_t mss() const { return mss_; }
  bool recovering() const { return state_ != State::kOpen; }
  const Rto& rto() const { return rto_; }
  const Rack& rack() const { return rack_; }
  const Congestion& congestion() const { return *congestion_; }

 private:
  enum class State : uint8_t { kOpen, kFastRecovery, kTimeoutRecovery };
  struct Progress {
    uint64_t acked = 0;      // bytes, by the cumulative ACK
    uint64_t delivered = 0;  // bytes that newly arrived, SACKed ones included
    uint64_t segments = 0;   // that the cumulative ACK covers
    Time newestSentAt = Time::min();
  };

  Progress take(const Ack& ack);
  void sampleRtt(const Ack& ack, Time sentAt, bool ambiguous, bool progress);
  void countDuplicates(const Ack& ack, const Progress& progress, bool windowMoved);
  bool findLosses();
  void loseUpTo(uint64_t end);
  uint32_t dupThreshold() const;
  void endRecovery();
  void beginFastRecovery();
  void cutForLoss();
  bool cutForMark();
  void grow(const Ack& ack, const Progress& progress);
  double least() const { return static_cast<double>(options_.minimumWindow) * mss_; }
  Time now() const { return timeline_.now(); }

  void sendWhatMay();
  bool fits(uint64_t bytes) const;
  void sendNew();
  void sendRepair(uint32_t id);
  uint32_t nextDoubtful();
  bool hasNew() const;
  uint32_t nextSize() const;
  void restartAfterIdle();

  void restartRto() { rtoAt_ = now() + rto_.value(); }
  void scheduleProbe();
  void setAlarm();
  void onAlarm();
  void probe();
  void onTimeout();

  Timeline& timeline_;
  SegmentOutlet& outlet_;
  Options options_;
  Agreement agreed_;
  std::unique_ptr<Congestion> congestion_;
  Scoreboard board_;
  Rto rto_;
  Rack rack_;
  SackCounting counting_;
  TailProbe probe_;
  Prr prr_;
  WindowUsage usage_;
  Alarm alarm_;
  SenderStats stats_;

  bool open_ = false;
  State state_ = State::kOpen;
  uint32_t mss_ = 0;
  double cwnd_ = 0, ssthresh_ = std::numeric_limits<double>::infinity();
  uint64_t una_ = 0, next_ = 0, end_ = 0;  // acknowledged, sent, written
  uint64_t peerEnd_ = 0;                   // the right edge of the peer's window
  uint64_t recoverAt_ = 0;                 // an ACK of this ends the recovery
  uint64_t markedUpTo_ = 0;                // an ACK beyond it may reduce the window for a mark
  uint64_t lateAt_ = UINT64_MAX;           // una_ at the last timeout
  uint32_t dupAcks_ = 0;                   // without SACK; in a recovery less those that partial ACKs explain
  bool partialAck_ = false;                // without SACK: one came in this recovery
  bool cwr_ = false;                       // the next new segment says CWR
  bool repairNow_ = false;                 // whatever the window is
  Time lastSent_ = Time::min();
  Time rtoAt_ = kNever, probeAt_ = kNever, reorderAt_ = kNever;
};

}  // namespace braid::sim::tcp
