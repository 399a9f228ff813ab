#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/random.h"
#include "base/time.h"
#include "simnet/inner_packets.h"

namespace braid::sim {

/// How a switch's port drops and marks. The limit is T-RACKs' (section V-A), counted in packets as ns-2
/// does; the thresholds are not in that paper.
enum class Discipline : uint8_t {
  kDropTail,
  kDropRand,  ///< a full queue drops one at random, the arriving packet among them
  kRedEcn,    ///< RED (Floyd and Jacobson 1993, "gentle"): marks, or drops what is not ECN-capable
  kDctcp,     ///< marks above a queue of K (RFC 8257 section 3.1), drops when full
};
/// "droptail", "droprand", "red-ecn", "dctcp"; throws std::runtime_error for others.
Discipline disciplineOf(const std::string& name);

/// The packets that wait at a port, without the one in transmission.
class PortQueue {
 public:
  static constexpr size_t kThreshold = 20;  ///< K at 1 Gbit/s (DCTCP, section 3.4)
  static constexpr double kRedMin = 20;     ///< packets of average queue; ours: as K
  static constexpr double kRedMax = 60;     ///< three times that (ns-2's rule)
  static constexpr double kRedWeight = 0.002;
  static constexpr double kRedMost = 0.1;  ///< probability at kRedMax

  /// `limit` packets; one takes `packetTime` to send. `threshold`: K of kDctcp.
  PortQueue(Discipline discipline, size_t limit, Duration packetTime, uint64_t seed,
            size_t threshold = kThreshold)
      : discipline_(discipline),
        limit_(limit),
        threshold_(threshold),
        packetTime_(packetTime),
        random_(seed) {}

  /// The packet waits, or one is dropped.
  void push(Bytes packet, Time now);
  std::optional<Bytes> pop(Time now);

  size_t size() const { return waiting_.size(); }
  uint64_t in() const { return in_; }
  uint64_t dropped() const { return dropped_; }
  uint64_t marked() const { return marked_; }

 private:
  bool redHits(Time now);
  bool markOrDrop(Bytes& packet);

  Discipline discipline_;
  size_t limit_;
  size_t threshold_;
  Duration packetTime_;
  Random random_;
  std::deque<Bytes> waiting_;
  double average_ = 0;
  int sinceHit_ = 0;  // packets since the last that RED hit
  Time emptySince_{};
  uint64_t in_ = 0, dropped_ = 0, marked_ = 0;
};

}  // namespace braid::sim
