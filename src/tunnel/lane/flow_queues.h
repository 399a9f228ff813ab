#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/drop.h"
#include "base/packet.h"
#include "base/stock.h"
#include "base/time.h"
#include "tunnel/lane/codel.h"
#include "tunnel/lane/drop_observer.h"
#include "tunnel/lane/fair_round.h"
#include "tunnel/lane/inner_flows.h"
#include "tunnel/lane/lane.h"
#include "tunnel/lane/lane_options.h"

namespace braid {

struct FlowQueueOptions {
  CodelOptions codel = {};
  size_t queueBytes = 4 << 20;  ///< of all flows together, see FlowQueue::kMinCharge
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

/// The sender's queues: a FIFO for every inner flow with CoDel on it (RFC 8289), served by a fair round
/// (fq_codel, RFC 8290), all flows together within a bound of bytes.
///
/// A packet comes with enqueue(), waits in its flow's queue, moves into the flow's hand when the round settles on
/// the flow, and leaves with pop(). CoDel and the byte bound drop at the head of a queue; what is in a hand is
/// safe. Who looks for what to send next calls rewind(), then peek() and pass() or pop().
class FlowQueues final : public Lane {
 public:
  /// Packets dropped at once at the byte bound, so that the search for the fattest flow is rare.
  static constexpr size_t kDropBatch = 64;
  /// A flow that queues nothing for so long is no longer bulk to the path scheduler. Ours: longer than the
  /// pause of a sender that has halved its window.
  static constexpr Duration kBulkGap = 100ms;

  /// `seed` keys the hash of flows; unpredictable outside of tests. `observer` must outlive it; nullptr:
  /// none.
  FlowQueues(const FlowQueueOptions& options, uint64_t seed, DropObserver* observer = nullptr);
  ~FlowQueues() override;
  void setOptions(const FlowQueueOptions& options);
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
  bool pass(Time now) { return walk_.pass(now); }
  /// Shows again what was passed.
  void rewind() { walk_ = Round(round_); }
  /// The packet that peek() shows, and its flow; an empty handle and nullptr when there is none.
  Packet pop(Time now, Flow*& flow);
  /// A flow that has just begun waits behind what peek() shows.
  bool newWaits() const { return round_.newWaits(); }
  /// Bytes that leave until the flow's queue is empty, at most: what takes turns with it goes meanwhile.
  size_t drain(const Flow& flow) const;

  /// Flows of a class from `count` on are of none from now on.
  void limitClasses(size_t count) { flows_.limitClasses(count); }
  /// The flow wants a turn among the others even when it has no packet: to protect those it has sent.
  void claim(Flow& flow) { round_.claim(flow); }
  /// The flow whose turn it is without a packet; nullptr when there is none. Stays until endTurn().
  Flow* turn(Time now);
  /// It has sent so many bytes in its turn; `again`: it wants another one.
  void endTurn(size_t bytes, bool again) { walk_.endClaim(bytes, again); }

  /// Waiting, the packet that peek() shows included.
  size_t bytes() const { return bytes_; }
  size_t packets() const { return packets_; }
  /// Flows that wait for a turn without a packet.
  size_t claims() const { return round_.claims(); }
  /// Flows that were passed and still wait.
  size_t held() const { return round_.held(); }
  /// Packets of this flow wait, or were sent and are not known to be delivered.
  bool isCarrying(const FlowKey& key) const {
    const Flow* flow = flows_.find(key);
    return flow && flow->queue.waiting() + flow->sent.unacked() > 0;
  }
  /// Flows known, idle ones included.
  size_t flows() const { return flows_.size(); }
  /// kAqm and kQueueFull; what enqueue() refused is not counted here.
  const DropCounts& drops() const { return drops_; }

  /// Forgets flows that have been idle for flowIdle.
  void onTimer(Time now) { flows_.onTimer(now); }
  Time nextDeadline() const { return flows_.nextDeadline(); }

  template <typename F>
  void forEachFlow(F&& visit) const {
    flows_.forEach(visit);
  }

  // Lane
  bool prepare(Flow& flow, Time now) override;

 private:
  /// What Codel sees of a flow.
  struct Head;

  void drop(Flow& flow, QueuedPacket* packet, Drop cause);
  void release(QueuedPacket* packet);
  void dropFromFattest();
  bool markCe(Packet& packet) const;

  FlowQueueOptions options_;
  DropObserver* observer_;
  InnerFlows flows_;
  FairRound round_;
  Round walk_{round_};
  Stock<QueuedPacket> entries_;
  size_t bytes_ = 0;
  size_t packets_ = 0;
  size_t charged_ = 0;  // bytes_ with FlowQueue::kMinCharge
  DropCounts drops_{};
};

}  // namespace braid
