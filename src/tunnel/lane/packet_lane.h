#pragma once

#include <cstddef>
#include <optional>

#include "base/budget.h"
#include "base/drop.h"
#include "base/packet.h"
#include "base/stock.h"
#include "base/time.h"
#include "tunnel/lane/codel.h"
#include "tunnel/lane/drop_observer.h"
#include "tunnel/lane/fair_round.h"
#include "tunnel/lane/fat_queues.h"
#include "tunnel/lane/inner_flows.h"
#include "tunnel/lane/lane.h"
#include "tunnel/lane/lane_options.h"

namespace braid {

struct PacketLaneOptions {
  CodelOptions codel = {};
  size_t queueBytes = 10 << 20;  ///< of all flows together, whole buffers (Packet::footprint)
  bool ethernet = false;         ///< packets are Ethernet frames
};
PacketLaneOptions packetLaneOptions(const LaneOptions& options);
/// CoDel's target while the slowest path in use has this smoothed RTT. Flows do not wait for each other, so
/// it need not be RFC 8289's 5 ms (section 4.2), and must not be: the queue has to last while the peer holds
/// back a flow for a repair on that path, a round trip, and after a CUBIC sender's cut to 0.7 of its window,
/// half of one. 25 ms at least, half the interval at most. Ours.
Duration queueTarget(const LaneOptions& options, Duration slowest);
/// CoDel's interval then: at least the round trip of a connection whose slow start has just filled the queue. Its
/// packets wait for the target and, as its window doubles once more before the sender hears of the first drop, for up to
/// a round trip of the path. With less, CoDel drops two or three packets where one was to say it, and a NewReno sender
/// over 220 ms is left with an eighth of its window (RFC 8289 section 4.3: a worst-case round trip).
Duration queueInterval(const LaneOptions& options, Duration slowest);

/// The lane of inner packets, at the sender: a FIFO for every flow with CoDel on it (RFC 8289; with the round that is
/// fq_codel, RFC 8290), all flows together within a bound of bytes, and all lanes within a budget of buffers: there the
/// lane with most packets gives way. The other end is PacketReceiver.
///
/// A packet comes with enqueue(), waits in its flow's queue, moves into the queue's hand when the round settles on
/// the flow, and leaves from there. CoDel and the bounds drop at the head of a queue; what is in a hand is safe.
class PacketLane final : public Lane, private Keeper {
 public:
  /// Packets dropped at once at the byte bound.
  static constexpr size_t kDropBatch = 64;
  /// A flow that queues nothing for so long is no longer bulk to the path scheduler. Ours: longer than the
  /// pause of a sender that has halved its window.
  static constexpr Duration kBulkGap = 100ms;

  /// All must outlive it. `observer`: nullptr for none. `budget`: of packets that are queued, nullptr for none.
  PacketLane(const PacketLaneOptions& options, InnerFlows& flows, FairRound& round,
             DropObserver* observer = nullptr, Budget* budget = nullptr)
      : Keeper(budget), options_(options), flows_(flows), round_(round), observer_(observer) {}
  void setOptions(const PacketLaneOptions& options) { options_ = options; }
  /// From the next packet on, of all queues.
  void setCodel(Duration target, Duration interval) {
    options_.codel.target = target;
    options_.codel.interval = interval;
  }

  /// Queues a packet of at least one byte; nullopt when it was taken. kFlowTableFull when it is of a new flow and no
  /// flow can go. A flow stays reliable or not as its first packet said. At the bounds other packets go instead
  /// (drops()).
  std::optional<Drop> enqueue(Packet packet, const FlowKey& key, bool reliable, bool ecnCapable, Time now,
                              PacketHint hint = {});
  /// kAqm and kQueueFull; what enqueue() refused is not counted here.
  const DropCounts& drops() const { return drops_; }

  // Lane
  const Packet* prepare(Flow& flow, Time now) override;
  Packet handOut(Flow& flow) override;

 private:
  // Keeper
  void giveBack() override { dropFromFattest(); }

  /// What Codel sees of a flow.
  struct Head;

  QueuedPacket* pop(Flow& flow);
  void drop(Flow& flow, QueuedPacket* packet, Drop cause);
  void release(QueuedPacket* packet);
  bool dropFromFattest();
  bool markCe(Packet& packet) const;

  PacketLaneOptions options_;
  InnerFlows& flows_;
  FairRound& round_;
  DropObserver* observer_;
  Stock<QueuedPacket> entries_;
  FatQueues fat_;
  size_t packets_ = 0;    // those in hands included
  size_t footprint_ = 0;  // of all of them
  DropCounts drops_{};
};

}  // namespace braid
