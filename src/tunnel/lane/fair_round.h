#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/intrusive_list.h"
#include "base/packet.h"
#include "base/time.h"

namespace braid {

class Flow;

/// A flow's seat in the fair round: where it sits, its credit, and how much of it waits. FairRound alone writes it.
class RoundSeat {
 public:
  explicit RoundSeat(Flow& flow) : flow_(flow) {}
  RoundSeat(const RoundSeat&) = delete;
  RoundSeat& operator=(const RoundSeat&) = delete;

  /// The round will come to it.
  bool isSeated() const { return place_ != Place::kNone; }
  /// It has not used up its first quantum: it goes before those that have.
  bool isSparse() const { return place_ == Place::kNew; }
  /// Bytes that wait, those of the unit that is ready included.
  size_t waiting() const { return waiting_; }

 private:
  friend class FairRound;
  friend class Round;
  enum class Place : uint8_t { kNone, kNew, kOld };

  Flow& flow_;
  ListLink<RoundSeat> link_;
  size_t waiting_ = 0;            // see waiting()
  int64_t deficit_ = 0;           // bytes that it may still send before the others have their turn
  const Packet* unit_ = nullptr;  // that is ready, at its lane
  Place place_ = Place::kNone;
  bool claims_ = false;  // wants a turn even without new data
};

/// What the round offers: the next unit of a flow, or a turn to a flow that claimed one and has nothing new.
struct Offer {
  Flow* flow = nullptr;          ///< nullptr: nothing is left
  const Packet* unit = nullptr;  ///< nullptr: a turn without new data
  bool isClaim() const { return flow && !unit; }
  explicit operator bool() const { return flow != nullptr; }
};

/// Whose turn it is to send: deficit round robin among the flows that have something to send, sparse ones first
/// (fq_codel, RFC 8290 section 4.2), but with a bound: another flow has a turn after every `kMaxAhead` bytes of
/// sparse ones. A tunnel sees thousands of short connections a second, each of them sparse. One round for all lanes:
/// what a flow's data is only its lane knows. Who looks for what to send next walks it with a Round.
///
/// A flow takes its seat when something of it waits, or when it claims a turn to protect what it has sent, and
/// loses the seat when the round comes to it and finds neither. The round settles on one flow at a time, whose
/// unit its lane then has ready, and stays with it until the unit is taken or passed. A flow that was passed is
/// held: its unit stays ready, and it is offered before all others in every later round until it is taken.
///
/// Invariants: a seated flow is in exactly one of the lists of new and old flows and of those held; the settled
/// flow is the first of its list.
class FairRound {
 public:
  /// Bytes a flow may send per round: an Ethernet frame (RFC 8290 section 5.2.4).
  static constexpr int64_t kQuantum = 1514;
  /// Bytes of sparse flows that go ahead of all others in a row. Ours.
  static constexpr int64_t kMaxAhead = 8 * kQuantum;
  /// Flows that may be held at once: bounds the work for a packet. Ours.
  static constexpr size_t kMaxHeld = 16;

  FairRound() { held_.reserve(kMaxHeld); }
  FairRound(const FairRound&) = delete;
  FairRound& operator=(const FairRound&) = delete;

  /// So many bytes more of the flow wait. New data goes before its turn without any.
  void onData(RoundSeat& seat, size_t bytes);
  /// The flow's lane has thrown away so many bytes that waited.
  void onDropped(RoundSeat& seat, size_t bytes) {
    seat.waiting_ -= bytes;
    bytes_ -= bytes;
  }
  /// The flow is no more: gives up its seat and all of it that waits. Not while somebody walks the round.
  void leave(RoundSeat& seat);
  /// The flow wants a turn among the others even when it has no new data: to protect what it has sent.
  void claim(RoundSeat& seat);

  /// Bytes that wait, of all flows.
  size_t bytes() const { return bytes_; }
  /// Bytes that leave until nothing of the flow waits, at most: what takes turns with it goes meanwhile.
  size_t drain(const RoundSeat& seat) const;
  /// Data waits, or a flow for a turn without new data.
  bool hasWork() const { return bytes_ + claims_ > 0; }
  /// Flows that wait for a turn without new data.
  size_t claims() const { return claims_; }
  /// Flows that were passed and still wait.
  size_t held() const { return held_.size(); }
  /// Flows that have a seat.
  size_t seated() const { return seated_; }
  /// A flow that has just begun waits, other than the one that is offered.
  bool newWaits(const RoundSeat& offered) const {
    return !new_.empty() && (new_.front() != &offered || new_.back() != &offered);
  }

 private:
  friend class Round;
  using List = IntrusiveList<RoundSeat, &RoundSeat::link_>;

  /// The list whose first flow is next: the old one, too, when sparse flows have gone ahead as far as they may.
  List& next() { return new_.empty() || (ahead_ >= kMaxAhead && !old_.empty()) ? old_ : new_; }
  List& listOf(const RoundSeat& seat) { return seat.place_ == RoundSeat::Place::kNew ? new_ : old_; }
  void sit(RoundSeat& seat);
  bool settle(Time now);
  void charge(RoundSeat& seat, size_t bytes);

  List new_;
  List old_;
  RoundSeat* settled_ = nullptr;  // the first of its list, and its turn
  std::vector<RoundSeat*> held_;  // in no list, in the order in which they were passed
  int64_t ahead_ = 0;             // bytes of sparse flows since another one had its turn
  size_t bytes_ = 0;
  size_t seated_ = 0;  // those held included
  size_t claims_ = 0;
};

/// One walk over what may be sent now, in the order of service: the flows that were passed before, then the one
/// whose turn it is. offer() says what is next, and says the same until that is taken, passed or ended. One walk at
/// a time: a new one ends those before it.
class Round {
 public:
  explicit Round(FairRound& fair) : fair_(&fair) {}

  Offer offer(Time now);
  /// The unit that offer() has shown goes, and costs its flow as many bytes of credit. Its lane hands it out.
  /// An empty handle, and no change, when it has shown none.
  Packet take();
  /// The unit that is offered is to wait. Its flow keeps its place among the others. False when too many flows wait
  /// so or no unit is offered: then nothing changes.
  bool pass(Time now);
  /// The turn without new data that is offered is over: the flow has sent so many bytes in it. `again`: it wants
  /// another one. Without such a turn nothing changes.
  void endClaim(size_t bytes, bool again);
  /// The turn without new data that is offered waits: flows that have just begun come before it, then again its flow.
  /// False when there are none: then nothing changes.
  bool deferClaim();

 private:
  FairRound* fair_;
  size_t shown_ = 0;  // position in the held flows of the one that is offered; their number: the settled one
};

}  // namespace braid
