#pragma once

#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/lane/codel.h"
#include "tunnel/lane/flow_status.h"

namespace braid {

/// A packet that waits in a flow's queue.
struct QueuedPacket {
  Packet packet;
  Time enqueued;
  bool ecnCapable = false;  ///< may be marked instead of dropped
  ListLink<QueuedPacket> link;
};

/// The packets of one flow that wait to be sent: a FIFO, with CoDel's state, and the packet in the hand, which
/// CoDel has let through and which goes next. The packet lane alone writes it.
class FlowQueue {
 public:
  /// Nothing waits; a packet may be in the hand.
  bool empty() const { return waiting_.empty(); }
  /// Bytes that wait, without the packet in the hand.
  uint64_t bytes() const { return bytes_; }
  /// Bytes of memory that these packets take: a small one occupies a whole buffer.
  size_t footprint() const { return footprint_; }
  const FlowCounts& counts() const { return counts_; }

 private:
  friend class PacketLane;
  friend class Flow;

  void push(QueuedPacket& entry) {
    bytes_ += entry.packet.size();
    footprint_ += entry.packet.footprint();
    waiting_.pushBack(entry);
  }
  /// The first packet; nullptr when none waits.
  QueuedPacket* pop() {
    if (waiting_.empty()) return nullptr;
    QueuedPacket* entry = waiting_.popFront();
    bytes_ -= entry->packet.size();
    footprint_ -= entry->packet.footprint();
    return entry;
  }
  /// Another flow takes the queue over; it is empty.
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

}  // namespace braid
