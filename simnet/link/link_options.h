#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace braid {

/// Two-state burst loss (Gilbert 1960, Elliott 1963). The state moves once per packet that enters
/// the wire. Share of time in bad = goodToBad / (goodToBad + badToGood); mean stay in bad = 1 /
/// badToGood packets. Off when goodToBad and lossGood are 0.
struct GilbertElliott {
  double goodToBad = 0;  ///< probability per packet, [0, 1]
  double badToGood = 1;  ///< probability per packet, [0, 1]
  double lossGood = 0;   ///< loss probability in the good state, [0, 1]
  double lossBad = 1;    ///< loss probability in the bad state, [0, 1]
  bool operator==(const GilbertElliott&) const = default;
};

/// One step of a rate trace. A rate of 0 sends nothing during the step.
struct RateStep {
  Duration duration{};       ///< above 0
  double bitsPerSecond = 0;  ///< 0 or above
  bool operator==(const RateStep&) const = default;
};

/// What a faulty network does to the ECN field of ECN-capable packets.
enum class EcnFault : uint8_t {
  kNone,
  kBleach,  ///< clears the field, so marks do not arrive
  kMangle,  ///< sets CE
  kDrop,    ///< drops the packet
};

/// A policer, with which providers enforce a rate: a token bucket that drops packets for which it
/// has too few tokens, without a queue. The bucket begins full. Off when bitsPerSecond is 0.
struct Policer {
  double bitsPerSecond = 0;      ///< rate at which tokens arrive, in bits of IP packets
  size_t burstBytes = 64 << 10;  ///< capacity of the bucket; a larger packet never passes
  bool operator==(const Policer&) const = default;
};

/// One direction of a link. A packet passes, in this order: ecnFault (drop), down, mtu, the
/// policer, the drop-tail queue (ECN marking at its entry), serialisation at the rate, and the wire
/// with its losses, corruption, duplication, delay and jitter. A packet that is lost on the wire
/// has used queue and rate like any other.
struct LinkOptions {
  double rateBitsPerSecond = 0;  ///< 0 = unlimited: no queue builds
  /// Replaces rateBitsPerSecond when not empty. The trace loops, beginning at the moment it was
  /// set. At least one step must have a rate above 0.
  std::vector<RateStep> trace{};
  Duration delay{};  ///< propagation, after serialisation
  Duration
      jitter{};  ///< extra delay, uniform in [0, jitter]; a packet never overtakes because of it
  /// Drop-tail limit on the waiting bytes, not counting the packet in transmission. 0 =
  /// defaultQueueBytes().
  size_t queueBytes = 0;
  /// A packet that finds more bytes than this waiting is marked CE if it is ECN-capable. 0 = off.
  size_t ecnThresholdBytes = 0;
  EcnFault ecnFault = EcnFault::kNone;
  double loss = 0;          ///< independent loss probability, [0, 1]
  GilbertElliott bursts{};  ///< on top of loss
  /// Numbers of the packets to lose, in any order. 1 is the first packet pushed since the link was
  /// made, this list was changed, or Link::restartDropCount() was called, whichever was last.
  std::vector<uint64_t> dropPackets{};
  size_t mtu = 0;        ///< larger packets vanish (an MTU black hole); 0 = off
  Policer policer{};     ///< a changed policer begins with a full bucket
  double duplicate = 0;  ///< probability that a packet arrives twice, back to back
  double corrupt = 0;    ///< probability that one random bit is flipped
  double reorder = 0;  ///< probability that a packet is held back by reorderDelay while others pass
  Duration reorderDelay{};  ///< see reorder
  /// While true, no packet enters. Going down also loses the packets that wait or are in
  /// transmission; those on the wire still arrive.
  bool down = false;
  bool operator==(const LinkOptions&) const = default;
};

/// The queue limit when the options set none: 100 ms at the rate (with a trace, the highest rate),
/// at least 64 KiB, the usual buffer of a consumer router. Unlimited rates need no queue.
size_t defaultQueueBytes(const LinkOptions& options);

/// A number of packets and of their bytes.
struct LinkCount {
  uint64_t packets = 0;
  uint64_t bytes = 0;
  void add(size_t size) {
    ++packets;
    bytes += size;
  }
  bool operator==(const LinkCount&) const = default;
};

/// Counters of a link. Every pushed packet is delivered, dropped for exactly one cause, or still
/// inside; in packets: in = delivered - duplicated + dropped() + inside.
struct LinkStats {
  LinkCount in;
  LinkCount delivered;  ///< duplicates included
  LinkCount dropQueue;
  LinkCount dropLoss;
  LinkCount dropBurst;
  LinkCount dropExact;
  LinkCount dropDown;
  LinkCount dropMtu;
  LinkCount dropPolicer;
  LinkCount dropEcn;  ///< EcnFault::kDrop
  uint64_t marked = 0;
  uint64_t bleached = 0;
  uint64_t duplicated = 0;
  uint64_t corrupted = 0;
  uint64_t reordered = 0;
  uint64_t inside = 0;       ///< packets accepted and not yet delivered
  size_t queueBytes = 0;     ///< bytes waiting now
  size_t queueBytesMax = 0;  ///< largest number of bytes that ever waited
  /// Longest wait before transmission; counted when a packet's transmission begins.
  Duration queueDelayMax{};
  uint64_t dropped() const {
    return dropQueue.packets + dropLoss.packets + dropBurst.packets + dropExact.packets +
           dropDown.packets + dropMtu.packets + dropPolicer.packets + dropEcn.packets;
  }
};

}  // namespace braid
