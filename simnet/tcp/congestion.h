#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "base/time.h"
#include "simnet/tcp/options.h"

namespace braid::sim::tcp {

/// What an ACK tells the congestion control.
struct AckEvent {
  Time now{};
  uint64_t acked = 0;  ///< bytes, by the cumulative ACK
  bool echo = false;   ///< it carries ECE
  Time sentAt{};       ///< when the newest acknowledged segment was sent
  Duration srtt{};
  bool used = true;  ///< the window was what held the sender back
};

/// How the window grows when nothing is lost, and what is left of it after a loss or a mark. All windows are
/// in bytes. When it grows or shrinks, and slow start, is the sender's affair (RFC 5681, RFC 6675). One
/// algorithm a file.
class Congestion {
 public:
  virtual ~Congestion() = default;
  /// Every ACK of new data.
  virtual void observe(const AckEvent&) {}
  /// Congestion avoidance: the window after this ACK of new data. Called for a window that was not used, too.
  virtual double grow(double window, const AckEvent& ack) = 0;
  /// ssthresh for a loss, once for each window of data; `flight`: bytes sent and not acknowledged.
  virtual double afterLoss(double window, double flight, Time now) = 0;
  /// The loss was found by the timer; afterLoss() was called before.
  virtual void onTimeout(Time) {}
  /// The window after an ECE, once for each window of data.
  virtual double afterMark(double window, Time now) = 0;
  /// A loss in a window that gave way to a mark is answered by that (RFC 3168 section 6.1.2).
  virtual bool markSuffices() const { return true; }
};

/// `mss`: payload bytes of a full segment.
std::unique_ptr<Congestion> makeCongestion(Control control, uint32_t mss);

}  // namespace braid::sim::tcp
