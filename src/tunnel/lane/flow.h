#pragma once

#include <cstdint>

#include "inet/flow_key.h"
#include "scheduler/path/path_scheduler.h"
#include "tunnel/lane/datagram_order.h"
#include "tunnel/lane/delivery.h"
#include "tunnel/lane/fair_round.h"
#include "tunnel/lane/flow_burst.h"
#include "tunnel/lane/flow_hosts.h"
#include "tunnel/lane/flow_queue.h"
#include "tunnel/lane/sent_data.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/numbers.h"

namespace braid {

class Lane;

/// What the ready unit of a stream is, beyond its bytes.
struct UnitRange {
  uint64_t offset = 0;  ///< of its first byte in the stream
  uint8_t frame = 0;    ///< type of its frame
};

/// An inner flow at its sender. A record of several parts, each of which has one owner that alone writes it;
/// everybody else reads, asks or tells.
///
/// The object outlives the flow: another flow takes it over when this one has been idle, but never while the flow
/// has a seat in the round or data on its way.
class Flow : public RoundSeat {
 public:
  explicit Flow(uint16_t index) : RoundSeat(*this), index_(index) {}
  /// One direction of a stream: it is in no table.
  Flow(Lane& lane, const FlowKey& key)
      : RoundSeat(*this), lane_(&lane), key_(key), index_(0), delivery_(Delivery::kStream) {}

  // ---- who it is (owner: InnerFlows)

  /// What its data is.
  Lane& lane() const { return *lane_; }
  const FlowKey& key() const { return key_; }
  /// Flow number on the wire: the index, for datagrams kOrderedDatagramFlow or kDatagramFlow + the index.
  FlowNumber slot() const { return slot_; }
  Delivery delivery() const { return delivery_; }
  /// What is lost is sent again until it arrives (TCP), and arrives in order.
  bool reliable() const { return delivery_ == Delivery::kReliable; }
  /// 0: none, else 1 + index.
  uint8_t recoveryClass() const { return recoveryClass_; }
  /// When a packet was last queued, or later while the flow may not be forgotten.
  Time lastUse() const { return lastUse_; }
  /// It has no seat in the round and no data on its way: it may be forgotten.
  bool isIdle() const { return !isSeated() && sent.unacked() == 0; }
  /// Data of it waits, or was sent and is not known to be delivered.
  bool isCarried() const { return waiting() + sent.unacked() > 0; }

  // ---- what it has

  FlowQueue queue;        ///< packets that wait (owner: the packet lane)
  DatagramOrder order;    ///< whether it wants order, unless it is reliable (owner: the packet lane)
  FlowBurst burst;        ///< what it has queued since it was quiet (owner: the lane)
  UnitRange unit;         ///< of a stream: what is handed out next (owner: the stream lane)
  SentData sent;          ///< what is on its way (owner: DataLedger)
  FlowPatience patience;  ///< what the path scheduler remembers of it (owner: the path scheduler)

 private:
  friend class InnerFlows;
  friend class FlowHosts;
  friend class FatQueues;

  /// Another flow takes the object over.
  void begin(Lane& lane, const FlowKey& key, Delivery delivery, uint8_t recoveryClass) {
    lane_ = &lane;
    key_ = key;
    deliver(delivery);
    recoveryClass_ = recoveryClass;
    queue.restart();
    order = {};
    burst = {};
    patience.restart();
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
  bool known_ = false;  // in the table; else free
  uint8_t recoveryClass_ = 0;
  Time lastUse_;
  ListLink<Flow> byUse_;
  HostSeat atSource_, atDestination_;  // of FlowHosts
  ListLink<Flow> byFat_;               // of FatQueues
  uint8_t fatClass_ = 0;               // of FatQueues
};

}  // namespace braid
