#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "base/ring.h"
#include "base/time.h"
#include "simnet/fabric/discipline.h"
#include "simnet/fabric/parcel.h"
#include "simnet/fabric/red.h"
#include "simnet/link/loss_model.h"

namespace braid::sim {

/// One direction of a cable, and the queue in front of it. A limit or threshold of 0 is none.
struct PortOptions {
  double rate = 10e9;  ///< bits per second
  Duration delay{};    ///< of the cable
  Discipline discipline = Discipline::kDropTail;
  size_t packets = 0;  ///< most that wait, without the one in transmission
  size_t bytes = 0;    ///< the same in bytes
  size_t thresholdPackets =
      0;                      ///< kDctcp: a packet that finds more waiting is marked; kRedEcn: the lower one
  size_t thresholdBytes = 0;  ///< kDctcp: the same in bytes
  /// What the cable loses: LinkOptions::loss and bursts, nothing else of it.
  LinkOptions losses{};
};

/// What became of the packets of a port.
struct PortCounters {
  uint64_t in = 0;       ///< packets that came
  uint64_t dropped = 0;  ///< by the queue
  uint64_t lost = 0;     ///< by the cable
  uint64_t marked = 0;
  uint64_t sentBytes = 0;  ///< that entered the cable
  size_t mostWaiting = 0;  ///< packets, the longest queue
};

/// The port of a switch or host. All times of a packet are settled when it comes, so that it costs one event.
class Port {
 public:
  Port(const PortOptions& options, uint64_t seed);

  /// A packet comes, and waits, is marked, or is dropped.
  void push(Parcel&& parcel, Time now);
  /// When pop() has something; kNever when nothing is inside.
  Time nextDelivery() const { return line_.empty() ? kNever : line_.front().deliver; }
  /// The packet at the far end of the cable, once its time has come; false when the cable lost it.
  bool pop(Parcel& out);

  /// The cable loses so much from now on.
  void setLosses(const LinkOptions& losses);
  const PortOptions& options() const { return options_; }
  /// What is counted when a transmission begins is as of the last call with a time.
  const PortCounters& counters() const { return counters_; }
  const PortCounters& counters(Time now) {
    advance(now);
    return counters_;
  }
  /// Packets that wait at this moment.
  size_t waiting(Time now) {
    advance(now);
    return line_.size() - begun_;
  }

 private:
  struct Entry {
    Time start{};  // of its transmission
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
