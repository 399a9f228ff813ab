#pragma once

// Which flow of a session sends next: deficit round robin with sparse flows first, as in fq_codel
// (RFC 8290 section 4). One DrrScheduler for each session serves its packets and its streams.
//
// Terms:
//   lane       supplier of flows' data: PacketQueues for inner packets, StreamSendSide for streams.
//              Each flow knows its own (Flow::lane() in flow.h).
//   unit       what is sent as a whole: an inner packet or a range of a stream's bytes. All counts
//              of bytes here are those of units, without headers of the tunnel.
//   ready unit the unit of a flow that its lane has prepared and that was not taken yet.
//   sparse     a flow that has not used up its first quantum since it was last without work. Such
//              flows are in the list of new flows, all others in the list of old ones.
//   current    the flow that has its turn: the first of its list.
//   bare turn  a turn of a flow without new data, which it has requested to protect what it sent.
//   skipped    the state of a flow after its ready unit had to wait for a better path. It is in
//              neither list; its unit is offered before all others, until it is taken.
//
// A flow enters when its lane reports data (onData) or when it requests a turn (requestTurn). To
// send, DataSender makes a DrrCursor and repeats peek() and one of take(), skip(), endTurn() and
// deferTurn(). A flow leaves when its turn comes and it has neither data nor a request; a new flow
// first becomes the last old one, as in RFC 8290.
//
// Invariant: a flow in the scheduler is in exactly one of the new list, the old list and the
// skipped flows.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/containers.h"
#include "base/packet.h"
#include "base/time.h"

namespace braid {

class Flow;

/// Supplier of flows' data. It keeps what waits, and reports to the scheduler all bytes that begin
/// to wait (onData) and all that it drops (onDropped). The scheduler calls prepare() and handOut().
class Lane {
 public:
  virtual ~Lane() = default;
  /// Prepares the next unit of the flow, of at least one byte; nullptr when the flow has nothing to
  /// send. The ready unit stays where it is in memory, and is not dropped, until handOut(), or
  /// until the lane itself ends the flow and has called DrrScheduler::remove().
  virtual const Packet* prepare(Flow& flow, Time now) = 0;
  /// Hands out the ready unit; there must be one.
  virtual Packet handOut(Flow& flow) = 0;
  /// Called by DataSender when the ready unit fits no path. Shortens the unit in its place to at
  /// most `size` bytes and keeps the rest, so a Candidate stays valid and the waiting bytes are the
  /// same. False when it could not be cut.
  virtual bool cut(Flow&, size_t /*size*/) { return false; }
  /// All units that the flow has sent are delivered or given up. Called by DataTracker for flows of
  /// Delivery::kStream only.
  virtual void onAllDone(Flow&) {}
};

/// A flow's entry in the scheduler, as base class of Flow. Only DrrScheduler and DrrCursor write
/// it.
class DrrEntry {
 public:
  explicit DrrEntry(Flow& flow) : flow_(flow) {}
  DrrEntry(const DrrEntry&) = delete;
  DrrEntry& operator=(const DrrEntry&) = delete;

  /// Whether the flow is in the scheduler, so that its turn will come.
  bool isScheduled() const { return list_ != ListId::kNone; }
  bool isSparse() const { return list_ == ListId::kNew; }
  /// Bytes that wait, including those of the ready unit.
  size_t waitingBytes() const { return waiting_; }

 private:
  friend class DrrScheduler;
  friend class DrrCursor;
  enum class ListId : uint8_t { kNone, kNew, kOld };

  Flow& flow_;
  ListLink<DrrEntry> link_;
  size_t waiting_ = 0;
  int64_t deficit_ = 0;           // bytes that it may still send in this round
  const Packet* unit_ = nullptr;  // the ready unit, which the lane holds
  ListId list_ = ListId::kNone;   // its list; of a skipped flow, the list that it returns to
  bool wantsTurn_ = false;        // it has requested a turn
};

/// What may be sent next: a flow's ready unit, or a bare turn of a flow.
struct Candidate {
  Flow* flow = nullptr;          ///< nullptr: nothing is left
  const Packet* unit = nullptr;  ///< nullptr: a bare turn
  bool isBareTurn() const { return flow && !unit; }
  explicit operator bool() const { return flow != nullptr; }
};

/// See the top of this file. Entries must leave the scheduler before they are destroyed.
class DrrScheduler {
 public:
  /// Bytes that a flow may send per round: an Ethernet frame (RFC 8290 section 5.2.4).
  static constexpr int64_t kQuantum = 1514;
  /// Bytes that sparse flows may send in a row while an old flow waits. fq_codel has no such bound;
  /// here thousands of short connections a second, all of them sparse, may share a tunnel.
  static constexpr int64_t kMaxSparseRun = 8 * kQuantum;
  /// Flows that may be skipped at once; bounds the work for a packet.
  static constexpr size_t kMaxSkipped = 16;

  DrrScheduler() { skipped_.reserve(kMaxSkipped); }
  DrrScheduler(const DrrScheduler&) = delete;
  DrrScheduler& operator=(const DrrScheduler&) = delete;

  /// The lane of the flow has `bytes` > 0 more bytes that wait. They are offered before a bare turn
  /// that the flow has requested; the request stays until they are sent.
  void onData(DrrEntry& entry, size_t bytes);
  /// The lane has dropped `bytes` waiting bytes, none of them of the ready unit.
  void onDropped(DrrEntry& entry, size_t bytes) {
    entry.waiting_ -= bytes;
    bytes_ -= bytes;
  }
  /// The flow is to have a turn even if it has no new data then. Called by DataSender when the
  /// recovery policy wants to protect what the flow has sent. A second request before the turn has
  /// no effect.
  void requestTurn(DrrEntry& entry);
  /// The flow ends: forgets its bytes, its request and its ready unit, which the lane frees
  /// afterwards. No DrrCursor may be in use.
  void remove(DrrEntry& entry);

  /// Waiting bytes of all flows.
  size_t bytes() const { return bytes_; }
  /// An estimate of the bytes that all flows send until this one has sent what waits now: of a
  /// sparse flow its own bytes; else its own bytes times flows(), at most bytes().
  size_t bytesUntilDrained(const DrrEntry& entry) const;
  /// Whether data waits or a turn is requested.
  bool hasWork() const { return bytes_ + turnRequests_ > 0; }
  /// Flows whose request is not fulfilled: they have not had a bare turn since.
  size_t turnRequests() const { return turnRequests_; }
  /// Flows that are skipped now.
  size_t skipped() const { return skipped_.size(); }
  /// Flows in the scheduler.
  size_t flows() const { return flows_; }
  /// Whether a sparse flow other than this one waits in the list of new flows.
  bool hasOtherNew(const DrrEntry& than) const {
    return !new_.empty() && (new_.front() != &than || new_.back() != &than);
  }

 private:
  friend class DrrCursor;
  using List = IntrusiveList<DrrEntry, &DrrEntry::link_>;

  /// The list whose first flow is next: that of new flows, unless it is empty or old flows wait and
  /// sparse ones have sent kMaxSparseRun in a row.
  List& next() {
    return new_.empty() || (sparseRun_ >= kMaxSparseRun && !old_.empty()) ? old_ : new_;
  }
  List& listOf(const DrrEntry& entry) {
    return entry.list_ == DrrEntry::ListId::kNew ? new_ : old_;
  }
  void enter(DrrEntry& entry);
  bool selectCurrent(Time now);
  void charge(DrrEntry& entry, size_t bytes);

  List new_;
  List old_;
  DrrEntry* current_ = nullptr;     // nullptr: to be selected
  std::vector<DrrEntry*> skipped_;  // in the order in which they were skipped
  int64_t sparseRun_ = 0;  // bytes of sparse flows since an old flow sent, was skipped or deferred
  size_t bytes_ = 0;
  size_t flows_ = 0;
  size_t turnRequests_ = 0;
};

/// Walks through what may be sent, in order: the flows that were skipped before this cursor began,
/// then one current flow after the other. It does not offer again what it has skipped itself. A
/// cursor lives for one poll of DataSender; a new one invalidates those before it.
///
/// peek() gives the candidate. The other calls act on the candidate of the last peek(), after which
/// the next peek() gives another one; when they do not apply to it, they change nothing.
class DrrCursor {
 public:
  explicit DrrCursor(DrrScheduler& drr) : drr_(&drr) {}

  /// The candidate; the same one again until another call disposes of it.
  Candidate peek(Time now);
  /// For a unit: takes it out of its lane to be sent, and charges its size to the flow. An empty
  /// handle when the candidate is a bare turn, or there is none.
  Packet take();
  /// For a unit: its flow is skipped, or stays so, and the next candidate follows. When its unit is
  /// taken, the flow returns to the head of its list, but behind a current flow. False for a bare
  /// turn, and for the current flow when kMaxSkipped flows are skipped already; the poll then ends,
  /// as peek() would give the same unit again. `now`: as for peek().
  bool skip(Time now);
  /// For a bare turn: it is over, and the flow has sent `bytes` bytes in it, which are charged.
  /// `again`: the flow requests another one. The flow stays first while it has deficit and work.
  void endTurn(size_t bytes, bool again);
  /// For a bare turn: other new flows are served before it. Its flow becomes (or stays) the first
  /// of the old ones, with its request and the rest of its turn. A new run of sparse flows begins,
  /// so the flow comes back when no new flow is left or after kMaxSparseRun. False, and nothing
  /// changes, when there are no other new flows; so a loop of peek() and deferTurn() ends.
  bool deferTurn();

 private:
  DrrScheduler* drr_;
  // Index of the candidate among the skipped flows; their number means the current flow.
  size_t index_ = 0;
};

}  // namespace braid
