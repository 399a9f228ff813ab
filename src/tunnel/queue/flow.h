#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "base/containers.h"
#include "base/packet.h"
#include "base/time.h"
#include "inet/flow_key.h"
#include "scheduler/path/path_scheduler.h"
#include "tunnel/queue/codel.h"
#include "tunnel/queue/counts.h"
#include "tunnel/queue/data_unit.h"
#include "tunnel/queue/drr.h"
#include "tunnel/queue/flow_kind.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/header.h"

namespace braid {

class Flow;
class FlowHost;

/// Links a flow to one of its two hosts. Only HostTable writes it.
struct HostEntry {
  Flow* flow = nullptr;
  FlowHost* host = nullptr;
  ListLink<HostEntry> link;
};

/// A host: an address that is the source or the destination of flows in a table.
class FlowHost {
 public:
  explicit FlowHost(const FlowKey& key) : key_(key) {}

  /// Number of flows.
  size_t flows() const { return count_; }
  /// Returns the flow that was neither looked at nor touched for the longest time, and moves it to
  /// the end of the order.
  Flow& lookAtNext() {
    HostEntry& entry = *entries_.popFront();
    entries_.pushBack(entry);
    return *entry.flow;
  }

 private:
  friend class HostTable;

  FlowKey key_;  ///< its key in HostTable::hosts_
  size_t count_ = 0;
  IntrusiveList<HostEntry, &HostEntry::link> entries_;
  ListLink<FlowHost> byCount_;
};

/// The flows of a table by host, so that one host with thousands of flows counts as one host. A
/// flow counts for its source and for its destination, because the hosts that a gateway serves are
/// the sources at one end of the tunnel and the destinations at the other. A host is one address:
/// addresses of an IPv6 /64 are not merged, because it may hold all hosts of a site. Every call
/// takes the same time, however many hosts and flows there are.
class HostTable {
 public:
  /// `seed` keys the hash of hosts. It must be unpredictable outside of tests.
  explicit HostTable(uint64_t seed) : hosts_(0, FlowKeyHash(~seed, seed)) {}

  /// Adds a flow that is not in the table, with its key. The flow must keep its place in memory
  /// until remove().
  void add(Flow& flow, const FlowKey& key);
  void remove(Flow& flow);

  /// Moves a flow of the table to the end of the order of its two hosts.
  static void touch(Flow& flow);
  /// The one of a flow's two hosts that has more flows; nullptr when neither has any.
  FlowHost* heavier(const FlowKey& flow);
  /// The host with the most flows; nullptr when there is none. Among equals, the host that has had
  /// this number of flows for the longest time.
  FlowHost* heaviest() { return byCount_.empty() ? nullptr : byCount_[most_].front(); }

 private:
  void enter(HostEntry& entry, const FlowKey& host);
  void leave(HostEntry& entry);
  void move(FlowHost& host, size_t count);

  using List = IntrusiveList<FlowHost, &FlowHost::byCount_>;

  std::unordered_map<FlowKey, FlowHost, FlowKeyHash> hosts_;  // hosts that have flows
  std::deque<List> byCount_;  // by number of flows; the first list is empty
  size_t most_ = 0;           // the largest number of flows that a host has
};

/// A packet that waits in a flow's queue.
struct QueuedPacket {
  Packet packet;
  Time enqueued;
  bool ecnCapable = false;  ///< may be marked instead of dropped
  ListLink<QueuedPacket> link;
};

/// The packets of one flow that wait to be sent: a FIFO with CoDel's state, and the ready packet
/// (`hand_`), which CoDel has let through and which is sent next. Only the packet lane writes it.
class FlowQueue {
 public:
  /// Whether the FIFO is empty; there may still be a ready packet.
  bool empty() const { return waiting_.empty(); }
  /// Bytes in the FIFO, without the ready packet.
  uint64_t bytes() const { return bytes_; }
  /// Bytes of memory of the FIFO's packets: a small packet takes a whole buffer.
  size_t footprint() const { return footprint_; }
  const FlowCounts& counts() const { return counts_; }

 private:
  friend class PacketQueues;
  friend class Flow;

  void push(QueuedPacket& entry) {
    bytes_ += entry.packet.size();
    footprint_ += entry.packet.footprint();
    waiting_.pushBack(entry);
  }
  /// Takes the first packet out; nullptr when none waits.
  QueuedPacket* pop() {
    if (waiting_.empty()) return nullptr;
    QueuedPacket* entry = waiting_.popFront();
    bytes_ -= entry->packet.size();
    footprint_ -= entry->packet.footprint();
    return entry;
  }
  /// Another flow takes over the queue, which is empty.
  void restart() {
    codel_ = {};
    counts_ = {};
  }

  IntrusiveList<QueuedPacket, &QueuedPacket::link> waiting_;
  Packet hand_;
  uint64_t bytes_ = 0;
  size_t footprint_ = 0;
  Codel codel_;
  FlowCounts counts_;
};

class Lane;

/// Where the ready unit of a stream lies, and its frame.
struct UnitRange {
  uint64_t offset = 0;  ///< of its first byte in the stream
  uint8_t frame = 0;    ///< type of its frame
};

/// An inner flow at its sender. The record has several parts. Each part has one owner, which alone
/// writes it; other code reads the part, or asks or tells its owner.
///
/// The object outlives the flow: another flow takes it over when this one has been idle, but never
/// while the flow is in the DRR scheduler or has sent data that is not done.
class Flow : public DrrEntry {
 public:
  explicit Flow(uint16_t index) : DrrEntry(*this), index_(index) {}
  /// One direction of a stream; it is in no flow table.
  Flow(Lane& lane, const FlowKey& key)
      : DrrEntry(*this), lane_(&lane), key_(key), index_(0), delivery_(Delivery::kStream) {}

  // ---- identity (owner: InnerFlowTable)

  /// The lane that supplies its data.
  Lane& lane() const { return *lane_; }
  const FlowKey& key() const { return key_; }
  /// Flow number on the wire: the index for a reliable flow, kOrderedDatagramFlow + index for
  /// ordered datagrams, kDatagramFlow + index for timely ones.
  FlowNumber slot() const { return slot_; }
  Delivery delivery() const { return delivery_; }
  /// Lost packets are sent again (TCP), and packets are delivered in order.
  bool reliable() const { return delivery_ == Delivery::kReliable; }
  /// 0: none, else 1 + index of the recovery class.
  uint8_t recoveryClass() const { return recoveryClass_; }
  /// When a packet was last queued; later if the flow could not be forgotten when its idle time was
  /// over.
  Time lastUse() const { return lastUse_; }
  /// Whether the flow may be forgotten: it is not in the DRR scheduler and all its sent data is
  /// done.
  bool isIdle() const { return !isScheduled() && sent.unacked() == 0; }
  /// Whether data of the flow waits, or was sent and is not known to be delivered.
  bool isCarried() const { return waitingBytes() + sent.unacked() > 0; }

  // ---- parts

  FlowQueue queue;        ///< packets that wait (owner: the packet lane)
  DatagramOrder order;    ///< whether a datagram flow wants order (owner: the packet lane)
  FlowBurst burst;        ///< what it has queued since it was quiet (owner: its lane)
  UnitRange unit;         ///< of a stream: the ready unit (owner: the stream lane)
  SentData sent;          ///< sent data that is not done (owner: DataTracker)
  FlowPatience patience;  ///< what the path scheduler remembers of it (owner: DataSender)

 private:
  friend class InnerFlowTable;
  friend class HostTable;
  friend class FattestQueues;

  /// Another flow takes over the object.
  void begin(Lane& lane, const FlowKey& key, Delivery delivery, uint8_t recoveryClass) {
    lane_ = &lane;
    key_ = key;
    deliver(delivery);
    recoveryClass_ = recoveryClass;
    queue.restart();
    order = {};
    burst = {};
    patience = {};
  }

  void deliver(Delivery delivery) {
    constexpr FlowNumber kFirst[]{FlowNumber{}, kOrderedDatagramFlow, kDatagramFlow};
    delivery_ = delivery;
    slot_ = kFirst[static_cast<size_t>(delivery)] + index_;
  }

  Lane* lane_ = nullptr;
  FlowKey key_;
  const uint16_t index_;
  FlowNumber slot_{};
  Delivery delivery_ = Delivery::kTimely;
  bool known_ = false;  // in the table; false: free
  uint8_t recoveryClass_ = 0;
  Time lastUse_;
  ListLink<Flow> byUse_;
  HostEntry atSource_, atDestination_;  // owner: HostTable
  ListLink<Flow> byFat_;                // owner: FattestQueues
  uint8_t fatClass_ = 0;                // owner: FattestQueues
};

}  // namespace braid
