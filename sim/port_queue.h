#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/random.h"
#include "base/time.h"
#include "simnet/fabric/discipline.h"
#include "simnet/fabric/red.h"
#include "simnet/inner_packets.h"

namespace braid::sim {

/// The packets that wait at a port, without the one in transmission. The limit is counted in
/// packets, as in ns-2 and T-RACKs (section V-A). The thresholds are not from that paper.
class PortQueue {
 public:
  static constexpr size_t kThreshold = 20;  ///< K at 1 Gbit/s (DCTCP, section 3.4)

  /// `limit`: packets; `packetTime`: transmission time of one; `threshold`: K of kDctcp.
  PortQueue(Discipline discipline, size_t limit, Duration packetTime, uint64_t seed,
            size_t threshold = kThreshold)
      : discipline_(discipline),
        limit_(limit),
        threshold_(threshold),
        red_(packetTime),
        random_(seed) {}

  /// Queues the packet, or drops it or another one.
  void push(Bytes packet, Time now);
  std::optional<Bytes> pop(Time now);

  size_t size() const { return waiting_.size(); }
  uint64_t in() const { return in_; }
  uint64_t dropped() const { return dropped_; }
  uint64_t marked() const { return marked_; }

 private:
  bool markOrDrop(Bytes& packet);

  Discipline discipline_;
  size_t limit_;
  size_t threshold_;
  Red red_;
  Random random_;
  std::deque<Bytes> waiting_;
  Time emptySince_{};
  uint64_t in_ = 0, dropped_ = 0, marked_ = 0;
};

}  // namespace braid::sim
