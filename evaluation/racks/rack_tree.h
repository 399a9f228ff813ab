#pragma once

// The small tree of T-RACKs section V-A, and the queue at its bottleneck.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "simnet/fabric/discipline.h"
#include "simnet/fabric/red.h"
#include "simnet/inner_packets.h"
#include "simnet/link/link.h"
#include "simnet/shim_host.h"
#include "simnet/timeline.h"

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

class RackTree;

/// A link that gives each arriving packet to `sink`.
class Hop {
 public:
  using Sink = std::function<void(Bytes)>;
  Hop(Timeline& timeline, const LinkOptions& options, uint64_t seed, Sink sink)
      : timeline_(timeline), link_(options, seed, timeline.now()), sink_(std::move(sink)) {}
  void push(Bytes packet);

 private:
  void wake();
  void take();
  Timeline& timeline_;
  Link<Bytes> link_;
  Sink sink_;
  bool awake_ = false;
};

/// The options of RackTree, the small tree of T-RACKs section V-A.
struct RackTreeOptions {
  size_t senders = 20;
  double rate = 1e9;                         ///< bits per second, of every link
  Duration rtt = 100us;                      ///< without queues and transmission
  size_t queue = 100;                        ///< packets that wait at the bottleneck
  size_t threshold = PortQueue::kThreshold;  ///< K of Discipline::kDctcp, packets
  Duration jitter{};  ///< extra delay of every packet on the hosts' links, uniform in [0, jitter]
  Discipline discipline = Discipline::kDropTail;
  bool senderShim = false;    ///< on each sender's hypervisor
  bool receiverShim = false;  ///< on the receiver's
  AckShimOptions shim{};
};

/// A host and its link to the switch and back.
struct RackHost {
  RackHost(RackTree& tree, std::string name, Address address, const LinkOptions& link,
           uint64_t seed);
  Hop down;  ///< from the switch
  Hop up;
  ShimHost host;
};

/// Senders, a switch, and one receiver behind one port of the switch. The way back of ACKs has no
/// queue that could drop them.
class RackTree final : public Simulation {
 public:
  RackTree(const RackTreeOptions& options, uint64_t seed);

  ShimHost& sender(size_t i) { return senders_.at(i)->host; }
  ShimHost& receiver() { return receiver_->host; }
  const PortQueue& bottleneck() const { return queue_; }
  /// Number of packets that the bottleneck's link carried.
  uint64_t carried() const { return carried_; }
  /// Sum of all shims' counters on the senders.
  ShimCounters senderShims() const;

  /// Hash of every packet that reached the receiver and its time.
  uint64_t hash() const { return hash_; }

 private:
  friend struct RackHost;
  void route(Bytes packet);
  void transmit();

  RackTreeOptions options_;
  PortQueue queue_;
  bool busy_ = false;
  Hop wire_;  // the link behind the bottleneck
  std::vector<std::unique_ptr<RackHost>> senders_;
  std::map<Address, RackHost*> byAddress_;
  std::unique_ptr<RackHost> receiver_;
  uint64_t carried_ = 0, hash_ = 0;
};

}  // namespace braid::sim
