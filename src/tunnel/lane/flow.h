#pragma once

#include <cstdint>

#include "inet/flow_key.h"
#include "scheduler/path/path_scheduler.h"
#include "tunnel/lane/fair_round.h"
#include "tunnel/lane/flow_burst.h"
#include "tunnel/lane/flow_hosts.h"
#include "tunnel/lane/flow_queue.h"
#include "tunnel/lane/sent_data.h"
#include "tunnel/wire/numbers.h"

namespace braid {

class Lane;

/// An inner flow at its sender. A record of several parts, each of which has one owner that alone writes it;
/// everybody else reads, asks or tells.
///
/// The object outlives the flow: another flow takes it over when this one has been idle, but never while the flow
/// has a seat in the round or data on its way.
class Flow final : public RoundSeat {
 public:
  explicit Flow(uint16_t index) : RoundSeat(*this), index_(index) {}

  // ---- who it is (owner: InnerFlows)

  /// What its data is.
  Lane& lane() const { return *lane_; }
  const FlowKey& key() const { return key_; }
  /// Flow number on the wire: the index, or kDatagramFlow + the index when it is not reliable.
  FlowNumber slot() const { return slot_; }
  /// What is lost is sent again (TCP), and arrives in order.
  bool reliable() const { return reliable_; }
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
  FlowBurst burst;        ///< what it has queued since it was quiet (owner: the lane)
  SentData sent;          ///< what is on its way (owner: DataLedger)
  FlowPatience patience;  ///< what the path scheduler remembers of it (owner: the path scheduler)

 private:
  friend class InnerFlows;
  friend class FlowHosts;
  friend class FatQueues;

  /// Another flow takes the object over.
  void begin(Lane& lane, const FlowKey& key, FlowNumber slot, bool reliable, uint8_t recoveryClass) {
    lane_ = &lane;
    key_ = key;
    slot_ = slot;
    reliable_ = reliable;
    recoveryClass_ = recoveryClass;
    queue.restart();
    burst = {};
    patience.restart();
  }

  Lane* lane_ = nullptr;
  FlowKey key_;
  const uint16_t index_;
  FlowNumber slot_{};
  bool reliable_ = false;
  bool known_ = false;  // in the table; else free
  uint8_t recoveryClass_ = 0;
  Time lastUse_;
  ListLink<Flow> byUse_;
  HostSeat atSource_, atDestination_;  // of FlowHosts
  ListLink<Flow> byFat_;               // of FatQueues
  uint8_t fatClass_ = 0;               // of FatQueues
};

}  // namespace braid
