#pragma once

#include <cstddef>
#include <optional>

#include "base/drop.h"
#include "base/memory.h"
#include "base/memory_quota.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/queue/codel.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/queue/drr.h"
#include "tunnel/queue/flow_table.h"
#include "tunnel/queue/options.h"

namespace braid {

struct PacketQueuesOptions {
  CodelOptions codel = {};
  size_t queueBytes = 10 << 20;  ///< of all flows together, as whole buffers (Packet::footprint)
  bool ethernet = false;         ///< packets are Ethernet frames
};
PacketQueuesOptions packetLaneOptions(const QueueOptions& options);
/// CoDel's target while `slowest` is the smoothed RTT of the slowest path in use. Flows do not wait
/// for each other, so the target need not be the 5 ms of RFC 8289 (section 4.2). It must not be
/// that small either: the queue has to last while the peer holds back a flow for a repair on that
/// path (one RTT), and after a CUBIC sender's cut to 0.7 of its window (half an RTT). At least 25
/// ms, at most half the interval.
Duration queueTarget(const QueueOptions& options, Duration slowest);
/// CoDel's interval for the same path and `target`: at least the round trip of a connection that
/// has just filled the queue in its slow start. The packets of this connection wait for the target.
/// They wait for up to one RTT of the path more, because the window doubles once more before the
/// sender hears of the first drop. With a shorter interval CoDel drops two or three packets where
/// one is enough, and a NewReno sender over 220 ms is left with an eighth of its window (RFC 8289
/// section 4.3: a worst-case round trip).
Duration queueInterval(const QueueOptions& options, Duration slowest, Duration target);

/// The lane of inner packets at the sender: a FIFO with CoDel (RFC 8289) for every flow; with the
/// DRR scheduler this is fq_codel (RFC 8290). All flows together stay within a bound of bytes. The
/// lanes of all peers stay within a quota of buffers; when it is used up, the lane with the most
/// packets drops some. The other end is PacketReceiver.
///
/// A packet arrives by enqueue() and waits in its flow's FIFO. When the flow has its turn, the
/// packet becomes the ready one (FlowQueue::hand_), and handOut() takes it from there.
/// CoDel and the bounds drop packets at the head of a FIFO, never a ready packet.
class PacketQueues final : public Lane, private QuotaUser {
 public:
  /// Packets dropped at once at the byte bound, at most.
  static constexpr size_t kDropBatch = 64;

  /// All arguments must outlive the object. `events`: gets the TCP packets that are dropped;
  /// nullptr: nobody does. `quota`: that of queued packets; nullptr for none.
  PacketQueues(const PacketQueuesOptions& options, InnerFlowTable& flows, DrrScheduler& drr,
               PacketEvents* events = nullptr, MemoryQuota* quota = nullptr)
      : QuotaUser(quota, Reclaimable::kYes),
        options_(options),
        flows_(flows),
        drr_(drr),
        events_(events) {}
  void setOptions(const PacketQueuesOptions& options) { options_ = options; }
  /// For all queues, from the next packet on.
  void setCodel(Duration target, Duration interval) {
    options_.codel.target = target;
    options_.codel.interval = interval;
  }

  /// Queues a packet of at least one byte. Returns nullopt when it was queued, and kFlowTableFull
  /// when it is of a new flow and no flow can be evicted. The first packet of a flow decides
  /// whether the flow is reliable. At the bounds packets at the head of the longest queue are
  /// dropped instead (drops()).
  std::optional<Drop> enqueue(Packet packet, const FlowKey& key, bool reliable, bool ecnCapable,
                              Time now, PacketHint hint = {});
  /// Counts kAqm and kQueueFull; what enqueue() refused is not counted here.
  const DropCounts& drops() const { return drops_; }

  // Lane
  const Packet* prepare(Flow& flow, Time now) override;
  Packet handOut(Flow& flow) override;

 private:
  // QuotaUser
  void reclaim() override { dropFromFattest(); }

  /// A flow's queue as Codel sees it.
  struct Head;

  QueuedPacket* pop(Flow& flow);
  void drop(Flow& flow, QueuedPacket* packet, Drop cause);
  void release(QueuedPacket* packet);
  bool dropFromFattest();
  bool markCe(Packet& packet) const;

  PacketQueuesOptions options_;
  InnerFlowTable& flows_;
  DrrScheduler& drr_;
  PacketEvents* events_;
  ObjectPool<QueuedPacket> entries_;
  FattestQueues fat_;
  size_t packets_ = 0;    // ready ones included
  size_t footprint_ = 0;  // bytes of memory of all of them
  DropCounts drops_{};
};

}  // namespace braid
