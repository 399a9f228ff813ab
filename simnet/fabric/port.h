#pragma once

#include <cstddef>
#include <cstdint>

#include "base/containers.h"
#include "base/random.h"
#include "base/time.h"
#include "simnet/fabric/discipline.h"
#include "simnet/fabric/parcel.h"
#include "simnet/fabric/red.h"
#include "simnet/link/loss_model.h"

namespace braid::sim {

/// One direction of a cable, and the queue in front of it. A limit or threshold of 0 means none.
struct PortOptions {
  double rate = 10e9;  ///< bits per second
  Duration delay{};    ///< propagation delay of the cable
  Discipline discipline = Discipline::kDropTail;
  size_t packets = 0;  ///< most packets that wait, not counting the one in transmission
  size_t bytes = 0;    ///< the same in bytes
  /// kDctcp: a packet that finds more packets waiting is marked. kRedEcn: the lower threshold.
  size_t thresholdPackets = 0;
  size_t thresholdBytes = 0;  ///< kDctcp: the same in bytes
  /// The cable's losses. Only LinkOptions::loss and LinkOptions::bursts are used.
  LinkOptions losses{};
};

/// Counters of a port's packets.
struct PortCounters {
  uint64_t in = 0;       ///< packets that arrived
  uint64_t dropped = 0;  ///< dropped by the queue
  uint64_t lost = 0;     ///< lost by the cable
  uint64_t marked = 0;
  uint64_t sentBytes = 0;  ///< bytes of the packets that entered the cable
  size_t mostWaiting = 0;  ///< length of the longest queue, packets
};

/// The output port of a switch or host. All times of a packet are computed when it arrives, so a
/// packet costs one event.
class Port {
 public:
  Port(const PortOptions& options, uint64_t seed);

  /// A packet arrives. It is queued, queued and marked, or dropped.
  void push(Parcel&& parcel, Time now);
  /// The time at which pop() has a packet; kNever when nothing is inside.
  Time nextDelivery() const { return line_.empty() ? kNever : line_.front().deliver; }
  /// Takes the packet that reaches the far end of the cable at nextDelivery(). False when the cable
  /// lost it.
  bool pop(Parcel& out);

  /// Changes the cable's losses from now on.
  void setLosses(const LinkOptions& losses);
  const PortOptions& options() const { return options_; }
  /// The counters. Those that count when a transmission begins are as of the last call with a time.
  const PortCounters& counters() const { return counters_; }
  const PortCounters& counters(Time now) {
    advance(now);
    return counters_;
  }
  /// Number of packets that wait at `now`.
  size_t waiting(Time now) {
    advance(now);
    return line_.size() - begun_;
  }

 private:
  struct Entry {
    Time start{};  // of the transmission
    Time deliver{};
    bool lost = false;
    Parcel parcel{};
  };
  void advance(Time now);
  bool admits(Parcel& parcel, Time now);
  bool makesRoom();
  void append(Parcel&& parcel, Time now);
  void settle(Entry& entry, Time from);
  void mark(Parcel& parcel) { counters_.marked += markCe(parcel); }

  PortOptions options_;
  double nanosecondsPerByte_;
  Random random_;
  LossModel loss_;
  Red red_;
  Ring<Entry> line_;  // [0, begun_) are in transmission or in the cable, the rest waits
  size_t begun_ = 0;
  size_t waitingBytes_ = 0;
  Time busyUntil_{};
  Time emptySince_{};
  PortCounters counters_;
};

}  // namespace braid::sim
