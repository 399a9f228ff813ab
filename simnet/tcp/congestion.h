#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "base/time.h"
#include "simnet/tcp/options.h"

namespace braid::sim::tcp {

/// The facts about an ACK that congestion control uses.
struct AckEvent {
  Time now{};
  uint64_t acked = 0;  ///< bytes that the cumulative ACK newly covers
  bool echo = false;   ///< the ACK carries ECE
  Time sentAt{};       ///< when the newest acknowledged segment was sent
  Duration srtt{};
  bool used = true;  ///< the sender was limited by the window
};

/// A congestion control algorithm: how the window grows when nothing is lost, and its size after a
/// loss or a mark. All windows are in bytes. Window decides when it grows or shrinks, and does slow
/// start (RFC 5681, RFC 6675). Each algorithm has its own file.
class Congestion {
 public:
  virtual ~Congestion() = default;
  /// Called for every ACK of new data.
  virtual void observe(const AckEvent&) {}
  /// Congestion avoidance: returns the window after this ACK of new data. Also called when the
  /// window was not fully used.
  virtual double grow(double window, const AckEvent& ack) = 0;
  /// Returns ssthresh after a loss. Called once for each window of data. `flight`: bytes sent and
  /// not acknowledged.
  virtual double afterLoss(double window, double flight, Time now) = 0;
  /// The loss was found by the retransmission timer. Called after afterLoss().
  virtual void onTimeout(Time) {}
  /// Returns the window after an ECE. Called once for each window of data.
  virtual double afterMark(double window, Time now) = 0;
  /// True when a loss in a window of data that was already reduced for a mark does not reduce it
  /// again (RFC 3168 section 6.1.2).
  virtual bool markSuffices() const { return true; }
};

/// `mss`: payload bytes of a full segment.
std::unique_ptr<Congestion> makeCongestion(Control control, uint32_t mss);

}  // namespace braid::sim::tcp
