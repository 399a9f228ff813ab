#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/containers.h"
#include "base/packet.h"
#include "base/time.h"

namespace braid {

class Flow;

/// The source of a flow's data at the sender: keeps what waits, and prepares the next unit. A unit
/// is sent as a whole: an inner packet, or a range of a stream's bytes.
///
/// All lanes share the DRR scheduler (DrrScheduler), which decides which flow sends next and asks
/// the flow's lane for the unit. A lane tells the scheduler of all data that begins to wait and of
/// all that it drops.
class Lane {
 public:
  virtual ~Lane() = default;
  /// The flow has its turn. Prepares its next unit, of at least one byte, and returns it; nullptr
  /// when the flow has nothing to send. The unit keeps its place in memory, and remains the next
  /// one, until handOut().
  virtual const Packet* prepare(Flow& flow, Time now) = 0;
  /// Hands out the unit that prepare() has returned.
  virtual Packet handOut(Flow& flow) = 0;
  /// The unit that prepare() has returned fits no path. A lane with divisible units shortens it to
  /// at most `size` bytes and keeps the rest. False when it cannot.
  virtual bool cut(Flow&, size_t /*size*/) { return false; }
  /// All that the flow has sent is delivered or given up. Called for flows of Delivery::kStream
  /// only.
  virtual void onSettled(Flow&) {}
};

class Flow;

/// A flow's entry in the DRR scheduler: its list, its credit, and how many bytes wait. Only
/// DrrScheduler writes it.
class DrrEntry {
 public:
  explicit DrrEntry(Flow& flow) : flow_(flow) {}
  DrrEntry(const DrrEntry&) = delete;
  DrrEntry& operator=(const DrrEntry&) = delete;

  /// Whether the flow is in the scheduler, so that its turn will come.
  bool isScheduled() const { return place_ != Place::kNone; }
  /// Whether the flow has not used up its first quantum: it is served before flows that have.
  bool isSparse() const { return place_ == Place::kNew; }
  /// Bytes that wait, including those of the ready unit.
  size_t waiting() const { return waiting_; }

 private:
  friend class DrrScheduler;
  friend class DrrCursor;
  enum class Place : uint8_t { kNone, kNew, kOld };

  Flow& flow_;
  ListLink<DrrEntry> link_;
  size_t waiting_ = 0;  // see waiting()
  // Bytes that it may still send before the others have their turn.
  int64_t deficit_ = 0;
  const Packet* unit_ = nullptr;  // the ready unit, which its lane holds
  Place place_ = Place::kNone;
  bool claims_ = false;  // wants a turn even without new data
};

/// What the scheduler offers: the next unit of a flow, or a turn for a flow that claimed one and
/// has no new data.
struct Candidate {
  Flow* flow = nullptr;          ///< nullptr: nothing is left
  const Packet* unit = nullptr;  ///< nullptr: a turn without new data
  bool isClaim() const { return flow && !unit; }
  explicit operator bool() const { return flow != nullptr; }
};

/// Decides which flow sends next: deficit round robin (DRR) among the flows that have something to
/// send, sparse flows first (fq_codel, RFC 8290 section 4.2). Unlike in fq_codel, sparse flows are
/// bounded: another flow has a turn after every `kMaxAhead` bytes of sparse ones. A tunnel sees
/// thousands of short connections a second, each of them sparse. One scheduler serves all lanes;
/// only a flow's lane knows what its data is. A DrrCursor goes through what the scheduler has to
/// send.
///
/// A flow enters the scheduler when data of it waits, or when it claims a turn to protect what it
/// has sent. It leaves when its turn comes and it has neither data nor a claim. The scheduler
/// settles on one flow at a time: the flow's lane prepares the unit, and the scheduler stays with
/// the flow until the unit is taken or passed. A flow that was passed is held: its unit stays
/// ready, and every later cursor offers it before all others until it is taken.
///
/// Invariants: a flow in the scheduler is either held, or in exactly one of the lists of new and
/// old flows. The settled flow is the first of its list.
class DrrScheduler {
 public:
  /// Bytes that a flow may send per round: an Ethernet frame (RFC 8290 section 5.2.4).
  static constexpr int64_t kQuantum = 1514;
  /// Bytes that sparse flows may send in a row before another flow has its turn.
  static constexpr int64_t kMaxAhead = 8 * kQuantum;
  /// At most this many flows are held at once; bounds the work for a packet.
  static constexpr size_t kMaxHeld = 16;

  DrrScheduler() { held_.reserve(kMaxHeld); }
  DrrScheduler(const DrrScheduler&) = delete;
  DrrScheduler& operator=(const DrrScheduler&) = delete;

  /// `bytes` more bytes of the flow wait. New data is offered before the flow's turn without data.
  void onData(DrrEntry& entry, size_t bytes);
  /// The flow's lane has dropped `bytes` waiting bytes.
  void onDropped(DrrEntry& entry, size_t bytes) {
    entry.waiting_ -= bytes;
    bytes_ -= bytes;
  }
  /// The flow ends: removes it and all its waiting bytes. Must not be called while a DrrCursor is
  /// in use.
  void leave(DrrEntry& entry);
  /// The flow wants a turn even when it has no new data: to protect what it has sent.
  void claim(DrrEntry& entry);

  /// Waiting bytes of all flows.
  size_t bytes() const { return bytes_; }
  /// Bytes that are sent until nothing of the flow waits, at most. They include what the flows that
  /// take turns with it send meanwhile.
  size_t drain(const DrrEntry& entry) const;
  /// Whether data waits, or a flow has claimed a turn without new data.
  bool hasWork() const { return bytes_ + claims_ > 0; }
  /// Flows that have claimed a turn without new data.
  size_t claims() const { return claims_; }
  /// Flows that were passed and not taken yet.
  size_t held() const { return held_.size(); }
  /// Flows in the scheduler.
  size_t scheduled() const { return scheduled_; }
  /// Whether a new flow waits, other than the one that is offered.
  bool newWaits(const DrrEntry& offered) const {
    return !new_.empty() && (new_.front() != &offered || new_.back() != &offered);
  }

 private:
  friend class DrrCursor;
  using List = IntrusiveList<DrrEntry, &DrrEntry::link_>;

  /// The list whose first flow is next: the new flows, unless there are none or they have sent
  /// kMaxAhead bytes in a row while old ones wait.
  List& next() { return new_.empty() || (ahead_ >= kMaxAhead && !old_.empty()) ? old_ : new_; }
  List& listOf(const DrrEntry& entry) {
    return entry.place_ == DrrEntry::Place::kNew ? new_ : old_;
  }
  void enter(DrrEntry& entry);
  bool settle(Time now);
  void charge(DrrEntry& entry, size_t bytes);

  List new_;
  List old_;
  DrrEntry* settled_ = nullptr;  // the first of its list; it has its turn
  std::vector<DrrEntry*> held_;  // in no list; in the order in which they were passed
  int64_t ahead_ = 0;            // bytes of sparse flows since another flow had its turn
  size_t bytes_ = 0;
  size_t scheduled_ = 0;  // held ones included
  size_t claims_ = 0;
};

/// Goes through what may be sent now, in the order of service: first the flows that were passed
/// before, then the flow that has its turn. offer() returns the next unit, and the same one again
/// until it is taken, passed or ended. Only one cursor at a time: a new one invalidates those
/// before it.
class DrrCursor {
 public:
  explicit DrrCursor(DrrScheduler& fair) : fair_(&fair) {}

  Candidate offer(Time now);
  /// Takes the offered unit from its lane to be sent; its size is subtracted from the flow's
  /// credit. Returns an empty handle and changes nothing when no unit is offered.
  Packet take();
  /// Lets the offered unit wait. Its flow keeps its place among the others. Returns false and
  /// changes nothing when kMaxHeld flows wait in this way or no unit is offered.
  bool pass(Time now);
  /// Ends the offered turn without new data, in which the flow has sent `bytes` bytes. `again`: the
  /// flow wants another one. Does nothing when no such turn is offered.
  void endClaim(size_t bytes, bool again);
  /// Postpones the offered turn without new data: new flows are offered first, then the flow again.
  /// Returns false and changes nothing when there are no new flows.
  bool deferClaim();

 private:
  DrrScheduler* fair_;
  // Index of the offered flow among the held ones; their number stands for the settled flow.
  size_t shown_ = 0;
};

}  // namespace braid
