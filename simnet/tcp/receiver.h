#pragma once

#include <cstdint>

#include "simnet/tcp/alarm.h"
#include "simnet/tcp/options.h"
#include "simnet/tcp/reassembly.h"

namespace braid::sim::tcp {

/// Who sends a segment that only acknowledges.
class AckOutlet {
 public:
  virtual ~AckOutlet() = default;
  virtual void acknowledge() = 0;
};

/// The receiving half of a TCP connection: what has arrived, and when that is acknowledged (RFC 5681
/// section 4.2) and CE echoed (RFC 3168 section 6.1.3, or RFC 8257 section 3.2).
class Receiver {
 public:
  Receiver(Timeline& timeline, AckOutlet& outlet, const Options& options)
      : outlet_(outlet),
        options_(options),
        alarm_(timeline, [this] { outlet_.acknowledge(); }),
        timeline_(timeline) {}

  /// A data segment has arrived; it may be acknowledged before this returns.
  void onSegment(Range bytes, bool ce, bool cwr);
  /// A segment is sent that carries what is to be acknowledged.
  void onAcknowledged() {
    waiting_ = 0;
    alarm_.set(kNever);
  }
  /// Whatever waits to be acknowledged is so now.
  void acknowledgeNow() {
    if (waiting_ > 0) outlet_.acknowledge();
  }
  void stop() { alarm_.set(kNever); }

  /// The next ACK says ECE.
  bool echo() const { return echo_; }
  Reassembly& bytes() { return bytes_; }
  const Reassembly& bytes() const { return bytes_; }

 private:
  void onEcn(bool ce, bool cwr);

  AckOutlet& outlet_;
  Options options_;
  Reassembly bytes_;
  Alarm alarm_;
  Timeline& timeline_;
  uint32_t waiting_ = 0;  // segments that are not acknowledged
  bool echo_ = false;     // with DCTCP: DCTCP.CE
};

}  // namespace braid::sim::tcp
