#pragma once

// The sender's queues: a FIFO for every inner flow, CoDel on each (RFC 8289), deficit round robin among them
// with sparse flows first (fq_codel, RFC 8290).

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/drop.h"
#include "base/packet.h"
#include "base/time.h"
#include "inet/flow_key.h"
#include "scheduler/path/path_scheduler.h"
#include "tunnel/lane/drop_observer.h"
#include "tunnel/lane/codel.h"
#include "tunnel/lane/lane_options.h"

namespace braid {

struct Datum;

struct FlowQueueOptions {
  CodelOptions codel = {};
  size_t queueBytes = 4 << 20;  ///< of all flows together, see FlowQueues::kMinCharge
  size_t maxFlows = 4096;       ///< at most 32768; a change holds for flow numbers not used before
  Duration flowIdle = 60s;
  bool ethernet = false;  ///< packets are Ethernet frames
};
FlowQueueOptions flowQueueOptions(const LaneOptions& options);
/// CoDel's target while the slowest path in use has this smoothed RTT. Flows do not wait for each other, so
/// it need not be RFC 8289's 5 ms (section 4.2), and must not be: the queue has to last while the peer holds
/// back a flow for a repair on that path, a round trip, and after a CUBIC sender's cut to 0.7 of its window,
/// half of one. 25 ms at least, half the interval at most. Ours.
Duration queueTarget(const LaneOptions& options, Duration slowest);

struct QueuedPacket {
  Packet packet;
  Time enqueued;
  bool ecnCapable = false;
  QueuedPacket* next = nullptr;
};

/// What the sender knows of a packet beyond its flow key.
struct PacketHint {
  uint8_t recoveryClass = 0;  ///< 0: none, else 1 + index; that of a flow's first packet stays
  bool fin = false;           ///< the sender says that nothing follows
  bool push = false;          ///< or that nothing follows at once, which bulk senders say often
};

/// An inner flow and the flow numbers it occupies. The object outlives the flow: another flow takes it over
/// when this one has been idle, but never while it has packets queued or unacknowledged.
struct Flow {
  FlowKey key;
  uint16_t slot = 0;  ///< flow number on the wire: index, or kDatagramFlow + index when not reliable
  bool reliable = false;
  uint64_t nextDsn =
      0;  ///< of `slot`, for the sender to count up; goes on when another flow takes the slot over
  uint64_t unacked = 0;         ///< packets sent and not known delivered; kept by the sender
  Datum* oldestSent = nullptr;  ///< of the unacked ones; kept by the sender
  Datum* newestSent = nullptr;
  uint64_t burstBytes = 0;  ///< queued since it last was quiet for FlowQueues::kBurstGap
  FlowPatience patience;    ///< of the path scheduler, in this burst
  uint8_t recoveryClass = 0;
  /// By its last packet: FIN, PSH in a short burst, or a lone datagram (a call, a query).
  bool ended = false;
  /// What it has queued since it was quiet is at most kSmallBurst: it may go ahead of bulk.
  bool isSmall() const { return burstBytes <= kSmallBurst; }
  static constexpr uint64_t kSmallBurst = 6000;  ///< bytes, four full packets. Ours
  Time lastUse;          ///< when a packet was last queued, or later while it may not be forgotten
  uint64_t packets = 0;  ///< handed out for sending
  uint64_t bytes = 0;
  uint64_t queuedBytes = 0;  ///< waiting
  uint64_t drops = 0;        ///< by CoDel and at the byte bound
  uint64_t marks = 0;

 private:
  friend class FlowQueues;
  enum class Place : uint8_t { kFree, kInactive, kNew, kOld };
  Place place_ = Place::kFree;
  bool held_ = false;  // in FlowQueues::held_, and not in the list of its place
  uint16_t index_ = 0;
  uint64_t otherDsn_ = 0;  // of the index's slot in the other number space
  bool claims_ = false;    // wants a turn without a packet
  int64_t deficit_ = 0;
  size_t charged_ = 0;  // queuedBytes with FlowQueues::kMinCharge
  Codel codel_;
  Packet hand_;  // the next to send, after CoDel
  QueuedPacket* head_ = nullptr;
  QueuedPacket* tail_ = nullptr;
  Flow* nextActive_ = nullptr;
  Flow* older_ = nullptr;
  Flow* newer_ = nullptr;
};

class FlowQueues {
 public:
  /// Bytes a flow may send per round: an Ethernet frame (RFC 8290 section 5.2.4).
  static constexpr int64_t kQuantum = 1514;
  /// Packets dropped at once at the byte bound, so that the search for the fattest flow is rare.
  static constexpr size_t kDropBatch = 64;

  /// A flow that queues nothing for so long begins a new burst. Ours: shorter than the frames of a call are
  /// apart, longer than the gaps of a bulk sender that waits for ACKs.
  static constexpr Duration kBurstGap = 10ms;
  /// A flow that queues nothing for so long is no longer bulk to the path scheduler. Ours: longer than the
  /// pause of a sender that has halved its window.
  static constexpr Duration kBulkGap = 100ms;
  /// Bytes of a burst up to which a flow is a short one: latency-sensitive in FUSO section VI-B.
  static constexpr uint64_t kShortBurst = 100'000;
  /// A smaller packet counts as so many bytes towards queueBytes and in the choice of the fattest flow,
  /// because it occupies a whole buffer. Ours.
  static constexpr size_t kMinCharge = 256;
  /// Flows that may be passed at once: bounds the work for a packet. Ours.
  static constexpr size_t kMaxHeld = 16;

  /// `seed` keys the hash of flows; unpredictable outside of tests. `observer` must outlive it; nullptr:
  /// none.
  FlowQueues(const FlowQueueOptions& options, uint64_t seed, DropObserver* observer = nullptr);
  ~FlowQueues();
  FlowQueues(const FlowQueues&) = delete;
  FlowQueues& operator=(const FlowQueues&) = delete;
  void setOptions(const FlowQueueOptions& options) { options_ = options; }
  void setTarget(Duration target) { options_.codel.target = target; }

  /// Queues a packet; nullopt when it was taken. kFlowTableFull when it is of a new flow and no flow can go.
  /// A flow stays reliable or not as its first packet said. At the byte bound other packets go instead
  /// (drops()).
  std::optional<Drop> enqueue(Packet packet, const FlowKey& key, bool reliable, bool ecnCapable, Time now,
                              PacketHint hint = {});
  /// The packet that is next to send, after CoDel; nullptr when there is none, or when it is the turn() of a
  /// flow that has none. It stays the next until pop() or pass().
  const Packet* peek(Time now);
  /// Its flow; nullptr as above.
  Flow* peekFlow(Time now);
  /// What peek() shows is to wait; the packet of another flow is shown. The flow keeps its place in the
  /// round, and is shown before all others again after rewind(). False when too many wait so: then nothing
  /// changes.
  bool pass(Time now);
  /// Shows again what was passed.
  void rewind() { shown_ = 0; }
  /// The packet that peek() shows, and its flow; an empty handle and nullptr when there is none.
  Packet pop(Time now, Flow*& flow);
  /// A flow that has just begun waits behind what peek() shows.
  bool newWaits() const { return new_.head && new_.head != readyFlow_; }
  /// Bytes that leave until the flow's queue is empty, at most: what takes turns with it goes meanwhile.
  size_t drain(const Flow& flow) const;

  /// Flows of a class from `count` on are of none from now on.
  void limitClasses(size_t count);
  /// The flow wants a turn among the others even when it has no packet: to protect those it has sent.
  void claim(Flow& flow);
  /// The flow whose turn it is without a packet; nullptr when there is none. Stays until endTurn().
  Flow* turn(Time now);
  /// It has sent so many bytes in its turn; `again`: it wants another one.
  void endTurn(size_t bytes, bool again);

  /// Waiting, the packet that peek() shows included.
  size_t bytes() const { return bytes_; }
  size_t packets() const { return packets_; }
  /// Flows that wait for a turn without a packet.
  size_t claims() const { return claims_; }
  /// Flows that were passed and still wait.
  size_t held() const { return held_.size(); }
  /// Packets of this flow wait, or were sent and are not known to be delivered.
  bool isCarrying(const FlowKey& key) const {
    auto found = byKey_.find(key);
    if (found == byKey_.end()) return false;
    const Flow& flow = *found->second;
    return flow.queuedBytes + flow.hand_.size() + flow.unacked > 0;
  }
  /// Flows known, idle ones included.
  size_t flows() const { return byKey_.size(); }
  /// kAqm and kQueueFull; what enqueue() refused is not counted here.
  const DropCounts& drops() const { return drops_; }

  /// Forgets flows that have been idle for flowIdle.
  void onTimer(Time now);
  Time nextDeadline() const { return oldest_ ? oldest_->lastUse + options_.flowIdle : kNever; }

  template <typename F>
  void forEachFlow(F&& visit) const {
    for (const Flow& flow : table_) {
      if (flow.place_ != Flow::Place::kFree) visit(flow);
    }
  }

 private:
  /// What Codel sees of a flow.
  struct Head;
  struct ActiveList {
    Flow* head = nullptr;
    Flow* tail = nullptr;
    void push(Flow* flow);
    /// Behind the one that is settled, when that is the first.
    void pushFront(Flow* flow, const Flow* settled);
    Flow* pop();
  };

  Flow* flowOf(const FlowKey& key, bool reliable, uint8_t recoveryClass, Time now);
  void activate(Flow& flow);
  ActiveList& listOf(const Flow& flow) { return flow.place_ == Flow::Place::kNew ? new_ : old_; }
  Flow* takeFree();
  Flow* evictOldest();
  bool isEvictable(const Flow& flow) const;
  void forget(Flow& flow);
  void touch(Flow& flow, Time now);
  void unlink(Flow& flow);
  bool settle(Time now);
  QueuedPacket* takeHead(Flow& flow);
  void drop(Flow& flow, QueuedPacket* packet, Drop cause);
  void release(QueuedPacket* packet);
  void dropFromFattest();
  bool markCe(Packet& packet) const;

  FlowQueueOptions options_;
  DropObserver* observer_;
  std::deque<Flow> table_;
  std::vector<Flow*> free_;
  std::unordered_map<FlowKey, Flow*, FlowKeyHash> byKey_;
  ActiveList new_;
  ActiveList old_;
  Flow* oldest_ = nullptr;  // of all known flows, by last use
  Flow* newest_ = nullptr;
  Flow* readyFlow_ = nullptr;  // settled: its packet is in its hand, or it is its turn without one
  std::vector<Flow*> held_;    // passed, in order
  size_t shown_ = 0;           // position in held_ that peek() shows; its size: readyFlow_
  size_t active_ = 0;          // flows in the round, held ones included
  size_t bytes_ = 0;
  size_t packets_ = 0;
  size_t claims_ = 0;
  size_t charged_ = 0;  // bytes_ with kMinCharge
  std::deque<QueuedPacket> entries_;
  std::vector<QueuedPacket*> freeEntries_;
  DropCounts drops_{};
};

}  // namespace braid
