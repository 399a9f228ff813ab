#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ackshim/ack_shim.h"
#include "sim/port_queue.h"
#include "simnet/link/link.h"
#include "simnet/station.h"
#include "simnet/timeline.h"

namespace braid::sim {

class RackTree;

/// A link that hands over what arrives.
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

/// The small tree of T-RACKs section V-A.
struct RackTreeOptions {
  size_t senders = 20;
  double rate = 1e9;                         ///< bits per second, of every link
  Duration rtt = 100us;                      ///< without queues and transmission
  size_t queue = 100;                        ///< packets that wait at the bottleneck
  size_t threshold = PortQueue::kThreshold;  ///< K of Discipline::kDctcp, packets
  Duration jitter{};                         ///< of all packets on the hosts' links, uniform
  Discipline discipline = Discipline::kDropTail;
  bool senderShim = false;    ///< on each sender's hypervisor
  bool receiverShim = false;  ///< on the receiver's
  AckShimOptions shim{};
};

/// A host with its hypervisor, where the shim may stand, and its link to the switch.
class RackHost final : public Station {
 public:
  RackHost(RackTree& tree, std::string name, Address address, const LinkOptions& link, uint64_t seed);

  const std::string& name() const override { return name_; }
  Address host(bool) const override { return address_; }
  void send(ByteView packet) override;
  void listen(uint8_t protocol, uint16_t port, Handler handler) override;

  void addShim(AckShimOptions options, uint64_t seed);
  const AckShim* shim() const { return shim_.get(); }
  /// The link from the switch.
  Hop down;
  /// A packet from the network.
  void arrive(ByteView packet);

 private:
  void pollShim();
  void armShim();
  void deliver(ByteView packet);

  Timeline& timeline_;
  std::string name_;
  Address address_;
  Hop up_;
  std::map<std::pair<uint8_t, uint16_t>, Handler> handlers_;
  std::unique_ptr<PacketPool> pool_;
  std::unique_ptr<AckShim> shim_;
  Time shimAt_ = kNever;  // its timer is called then
};

/// Senders, a switch, one receiver behind one port. ACKs go back without a queue that could drop them.
class RackTree final : public Timeline {
 public:
  RackTree(const RackTreeOptions& options, uint64_t seed);

  RackHost& sender(size_t i) { return *senders_.at(i); }
  RackHost& receiver() { return *receiver_; }
  const PortQueue& bottleneck() const { return queue_; }
  /// Packets that the bottleneck's link carried.
  uint64_t carried() const { return carried_; }
  /// Sum of all shims' counters on the senders.
  ShimCounters senderShims() const;

  /// Runs for so long.
  void run(Duration d);
  /// Covers every packet that reached the receiver, with its time.
  uint64_t hash() const { return hash_; }

 private:
  friend class RackHost;
  void route(Bytes packet);
  void transmit();

  RackTreeOptions options_;
  PortQueue queue_;
  bool busy_ = false;
  Hop wire_;  // behind the bottleneck
  std::vector<std::unique_ptr<RackHost>> senders_;
  std::map<Address, RackHost*> byAddress_;
  std::unique_ptr<RackHost> receiver_;
  uint64_t carried_ = 0, hash_ = 0;
};

}  // namespace braid::sim
