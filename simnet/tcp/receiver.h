#pragma once

#include <cstdint>

#include "simnet/tcp/alarm.h"
#include "simnet/tcp/options.h"
#include "simnet/tcp/reassembly.h"

namespace braid::sim::tcp {

/// Sends a pure ACK for the receiver.
class AckOutlet {
 public:
  virtual ~AckOutlet() = default;
  virtual void acknowledge() = 0;
};

struct ReceiverStats {
  uint64_t gaps = 0;        ///< segments that arrived behind a gap
  uint64_t repeats = 0;     ///< segments whose bytes had all arrived before
  Time progressAt{};        ///< when the last byte in order arrived; at first the creation
  Duration longestStall{};  ///< longest time between two such moments
};

/// The receiving direction of a TCP connection: records what has arrived, and decides when it is
/// acknowledged (RFC 5681 section 4.2) and when CE is echoed (RFC 3168 section 6.1.3, or RFC 8257
/// section 3.2).
class Receiver {
 public:
  Receiver(Timeline& timeline, AckOutlet& outlet, const Options& options)
      : outlet_(outlet),
        options_(options),
        alarm_(timeline, [this] { outlet_.acknowledge(); }),
        timeline_(timeline) {
    restartStall();
  }

  /// A data segment has arrived. Its ACK may be sent before this returns.
  void onSegment(Range bytes, bool ce, bool cwr);
  /// A segment with the current acknowledgement was sent.
  void onAcknowledged() {
    waiting_ = 0;
    alarm_.set(kNever);
  }
  /// Sends a delayed ACK, if one is waiting, at once.
  void acknowledgeNow() {
    if (waiting_ > 0) outlet_.acknowledge();
  }
  void stop() { alarm_.set(kNever); }
  /// Measures the longest stall from now on.
  void restartStall() { stats_.longestStall = {}, stats_.progressAt = timeline_.now(); }

  /// True when the next ACK must carry ECE.
  bool echo() const { return echo_; }
  Reassembly& bytes() { return bytes_; }
  const Reassembly& bytes() const { return bytes_; }
  const ReceiverStats& stats() const { return stats_; }

 private:
  void onEcn(bool ce, bool cwr);
  void onProgress();

  AckOutlet& outlet_;
  Options options_;
  Reassembly bytes_;
  ReceiverStats stats_;
  Alarm alarm_;
  Timeline& timeline_;
  uint32_t waiting_ = 0;  // segments not acknowledged yet
  bool echo_ = false;     // with DCTCP: DCTCP.CE
};

}  // namespace braid::sim::tcp
