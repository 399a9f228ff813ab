#pragma once

// What the ack shim remembers of TCP connections, and how it finds them (docs/ackshim.md). The shim
// makes up for losses between host and gateway, and for packets that the tunnel gave up, which a
// host would notice only by its timer, 200 ms later. AckShim owns one TrackedFlows, which owns all
// else here.
//
// Terms:
//   local host  the end of the connection on this gateway's side of the tunnel. The other end is
//               behind the peer: "the peer's ACK" is an ACK of that end.
//   out, in     directions of data: from the local host into the tunnel, and back.
//   flow key    the 5-tuple of the local host's packets, for packets of both directions.
//   half-open   a connection of which only one end was heard. An attacker who spoofs addresses can
//               invent any number of these.
//   proven      a connection whose ends have shown that they hear each other. Only proven flows
//               have a timer, cached packets and a LossState, and only these are helped.
//   hole        data of the local host that is missing before data that did arrive here.
//   gap         the same, or missing at the end of what the host sent (dropped by the tunnel).
//   tail        copies of the last segments of a direction that are not acknowledged (TailCache).
//   act         to send duplicate ACKs to the local host, or to send a segment of the flow again
//               (docs/ackshim.md: to speak). InterventionLog records each act.
//
// Life of a flow: HandshakeTracker adds it half-open at a SYN, or at data of an unknown connection,
// and proves it: by the third segment of the handshake, or in a joined flow (whose SYNs were not
// seen) by an ACK that only the other end can send. A half-open flow that is not proven stays until
// it is replaced (addHalfOpen()). From the proof on AckShim updates the flow with every segment. It
// is erased when both FINs are acknowledged, at a valid RST, when idle, when a new connection with
// its key is proven, or, if nothing of it is outstanding, to make room in a full table.
//
// Flows are named by index: below capacity() a proven flow, from there on a half-open one. An index
// is valid until the flow is proven, replaced or erased.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ackshim/direction.h"
#include "ackshim/options.h"
#include "ackshim/segment.h"
#include "ackshim/tail_cache.h"
#include "ackshim/tracks_timer.h"
#include "base/memory.h"
#include "base/timers.h"
#include "inet/flow_key.h"
#include "inet/tcp.h"

namespace braid {

/// Finds the index of a record by the hash of its key. An id is such an index; the records are kept
/// elsewhere. Open addressing with buckets of one cache line: most look-ups end in the first
/// bucket. An entry holds an id and some bits of the hash (the tag), so that a look-up rarely reads
/// a record that does not match. Each bucket counts the ids that found it full and went to a later
/// one, so that erased ids leave no tombstones.
class FlowIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  /// Memory per id in bytes, at most. When all ids are in use, a bucket holds 8 of them on
  /// average, and has 15 entries.
  static constexpr size_t kBytesPerId = 8;

  /// Ids are below `ids`, which is 1 to 2^30.
  explicit FlowIndex(size_t ids);

  /// An id with this hash for which same(id) is true; kNone when there is none. same() compares the
  /// key of the record, and is called for few other ids.
  template <typename F>
  uint32_t find(uint64_t hash, F&& same) const {
    size_t at = home(hash);
    for (size_t n = 0; n < buckets_.size(); ++n, at = next(at)) {
      const Bucket& bucket = buckets_[at];
      for (uint32_t entry : bucket.entries) {
        if ((entry ^ tag(hash)) >> idBits_ == 0 && entry != kNone && same(entry & idMask())) {
          return entry & idMask();
        }
      }
      if (bucket.passed == 0) break;
    }
    return kNone;
  }
  /// Inserts an id that is not in the index. Many ids with the same hash make it slow, so the hash
  /// must be keyed.
  void insert(uint64_t hash, uint32_t id);
  /// Removes an id that is in the index with this hash.
  void erase(uint64_t hash, uint32_t id);

 private:
  struct alignas(64) Bucket {
    Bucket() { entries.fill(kNone); }
    std::array<uint32_t, 15> entries;
    uint32_t passed = 0;  // ids that are in a later bucket because this one was full
  };

  // The high half of the hash selects the bucket, the low half gives the tag.
  size_t home(uint64_t hash) const { return (hash >> 32) * buckets_.size() >> 32; }
  size_t next(size_t at) const { return at + 1 == buckets_.size() ? 0 : at + 1; }
  uint32_t idMask() const { return (uint32_t{1} << idBits_) - 1; }
  uint32_t tag(uint64_t hash) const { return static_cast<uint32_t>(hash) & ~idMask(); }

  unsigned idBits_;  // number of low bits of an entry that hold the id; all ones is not an id
  HugeArray<Bucket> buckets_;
};

/// What every packet of a TCP connection needs, in three cache lines, with the key in the first.
///
/// HandshakeTracker creates the flow with what the handshake tells. The comments name who writes
/// each member of a proven flow; order and size are for the cache lines. Besides, ReceiverReplay
/// takes RTT samples for `in`, and both it and SenderWakeup abort the RTT measurement of their
/// direction (TcpDirection::timing) when a copy that they sent has spoilt it (Karn's rule).
struct alignas(64) ShimFlow {
  FlowKey key;
  // ReceiverReplay, which serves the host as a receiver:
  uint8_t replays : 4 = 0;  ///< times that inTail's first segment was sent again, at most 15
  uint8_t spuriousReplays : 4 = 0;  ///< replays that came too soon, less those forgiven since
  // AckShim, except timerAt (TrackedFlows), joined and fromLocal (constant), and acted
  // (ReceiverReplay and SenderWakeup):
  Timestamp32 lastUse;         ///< time of the last segment that fits the flow
  Timestamp32 timerAt;         ///< when something is due; a far one may fire earlier (TimerWheel)
  bool joined : 1 = false;     ///< its handshake was not seen: options are unknown
  bool fromLocal : 1 = false;  ///< the first segment was the local host's
  bool resetSuspected : 1 = false;  ///< a RST came that may be real: the shim does not act until a
                                    ///< new ACK shows otherwise
  bool acted : 1 = false;           ///< the shim has acted for this flow at any time
  // SenderWakeup, which serves the host as a sender:
  bool ackHasTimestamps : 1 = false;  ///< the peer's last ACK had TCP timestamps
  bool sack : 1 = false;              ///< SACK was negotiated, or seen in use
  bool hostAnswers : 1 = false;       ///< the local host sent data after it had received some
  bool mayBeCarried : 1 = false;      ///< set by host's data and new ACKs; cleared when the tunnel
                                      ///< says (FlowActivityQuery) that it has no data of the flow
  bool holeReported : 1 = false;      ///< the host was told of its first hole (at arrivals.edge)
  bool hasDropped : 1 = false;        ///< outTail holds segments that the tunnel dropped
  bool hasGap : 1 = false;            ///< some data before out.nxt has not arrived here: see
                                      ///< LossState::arrivals
  bool headResent : 1 = false;        ///< the host has resent the data at out.una; outTail holds it
  Boundaries boundaries;              ///< where the host's last segments begin
  // ReceiverReplay:
  TailCache::List inTail;  ///< segments sent to the host
  /// Segments with data that were sent to the host, to know whether it still sends quick ACKs
  /// (ReceiverReplay::kQuickAcks) and when to forgive a spurious replay: above kForgiving, where
  /// it goes back to kQuickAcks + 1, as the quick ACKs remain over.
  uint16_t receivedSegments = 0;
  // AckShim:
  TcpDirection out;  ///< data of the local host, and the peer's ACKs for it
  // SenderWakeup:
  TracksTimer tracks;              ///< when to send duplicate ACKs (T-RACKs algorithm)
  uint32_t ackFlowLabel : 20 = 0;  ///< IPv6 flow label of the peer's last ACK
  uint32_t headLength : 12 = 0;    ///< bytes of the segment at out.una; 0: unknown or above 4095
  // AckShim:
  TcpDirection in;  ///< data to the local host, and its ACKs for it
  // SenderWakeup:
  TcpTimestamps ackTimestamps;  ///< of the peer's last ACK
  TailCache::List outTail;      ///< the host's segments: those resent, those that the tunnel
                                ///< dropped, or, with options.cacheOutgoing, all

  /// Whether both ends have acknowledged each other's SYN. While half-open, `base` is one after the
  /// SYN, and `una` is the SYN until it is acknowledged.
  bool isProvenByHandshake() const {
    return out.known && in.known && out.una >= out.base && in.una >= in.base;
  }
};
static_assert(sizeof(ShimFlow) == 192 && offsetof(ShimFlow, out) == 64 &&
              offsetof(ShimFlow, in) == 128);

/// What is needed of a proven flow only after a loss.
struct LossState {
  Arrivals arrivals;  ///< which data of the host arrived here; valid while ShimFlow::hasGap is set
  InterventionLog::Newest outIntervention = 0;  ///< newest act for the host as a sender; 0: none
  InterventionLog::Newest inIntervention = 0;   ///< newest act for the host as a receiver; 0: none
};

/// Memory per proven flow in bytes: records, timer and index entry, without cached packets.
inline constexpr size_t kBytesPerFlow =
    sizeof(ShimFlow) + sizeof(LossState) + TimerWheel::kBytesPerTimer + FlowIndex::kBytesPerId;
static_assert(kBytesPerFlow <= 256);

/// A flow key with the table's hash of it, so that a packet's key is hashed once.
struct HashedKey {
  FlowKey key;
  uint64_t hash;
};

/// The records of flows, found by key. Proven and half-open flows have parts of their own, so that
/// a sender that invents addresses fills only the second one. All operations are O(1). Memory is
/// reserved at the start, and provided by the kernel when an entry is first used.
///
/// A packet of a flow that is in no CPU cache waits for two cache misses: one for the index, and
/// one for the record's three lines, which are fetched in parallel.
class FlowTable {
 public:
  static constexpr uint32_t kNone = FlowIndex::kNone;

  /// Sizes are clamped to 1 .. 2^29. `seed` keys the hash; it must be unpredictable outside of
  /// tests.
  FlowTable(size_t maxFlows, size_t maxHalfOpen, uint64_t seed);

  uint64_t hash(const FlowKey& key) const { return hash_(key); }
  /// The index of the proven (half-open) flow with this key; kNone when there is none.
  uint32_t findProven(const FlowKey& key, uint64_t hash) const;
  uint32_t findHalfOpen(const FlowKey& key, uint64_t hash) const;
  ShimFlow& operator[](uint32_t i) { return flows_[i]; }
  /// `flow` must be proven.
  LossState& lossState(const ShimFlow& flow) {
    return lossStates_[static_cast<size_t>(&flow - flows_.data())];
  }

  /// Adds a half-open flow. It replaces the half-open one with the same key, or else, when that
  /// part is full, the one added first.
  uint32_t addHalfOpen(const FlowKey& key, uint64_t hash);
  /// Moves a half-open flow to the proven ones, which must not have its key, and returns its new
  /// index. kNone, and nothing changes, when that part is full.
  uint32_t prove(uint32_t halfOpen, uint64_t hash);
  /// Removes a proven flow. Call TrackedFlows::erase(), which also frees what belongs to it.
  void erase(uint32_t i);
  /// A proven flow for which isEvictable(flow) is true; kNone when there is none among the next 16,
  /// which bounds the work. Successive calls walk around the table.
  template <typename F>
  uint32_t findEvictable(F&& isEvictable) {
    for (size_t n = 0; n < kTries && used_ > 0; ++n) {
      hand_ = (hand_ + 1) % used_;
      if (flows_[hand_].key.protocol != 0 && isEvictable(flows_[hand_])) return hand_;
    }
    return kNone;
  }

  /// Proven flows.
  size_t size() const { return size_; }
  /// Most proven flows.
  size_t capacity() const { return maxFlows_; }
  bool isFull() const { return size_ == maxFlows_; }

 private:
  static constexpr size_t kTries = 16;

  uint32_t idOf(uint32_t halfOpen) const { return halfOpen - static_cast<uint32_t>(maxFlows_); }
  void prefetch(uint32_t i) const;

  FlowKeyHash hash_;
  size_t maxFlows_;
  size_t maxHalfOpen_;
  // The proven flows, followed by the half-open ones. A key of protocol 0 marks an unused entry.
  HugeArray<ShimFlow> flows_;
  HugeArray<LossState> lossStates_;
  FlowIndex proven_;
  FlowIndex halfOpen_;         // its ids are indexes less maxFlows_
  uint32_t free_ = kNone;      // first erased entry; the lastUse of each names the next one
  uint32_t used_ = 0;          // proven entries that were ever used
  uint32_t usedHalfOpen_ = 0;  // half-open entries that were ever used
  uint32_t nextHalfOpen_ = 0;  // the entry to use next; once all are used, the oldest
  uint32_t hand_ = 0;          // where findEvictable() continues
  size_t size_ = 0;
};

/// The flow table with all that belongs to proven flows: timers, cached packets, interventions (a
/// log of fixed size, in which acts of erased flows may stay). It also keeps the present time of
/// the shim, which all time stamps in it refer to.
class TrackedFlows {
 public:
  static constexpr uint32_t kNone = FlowTable::kNone;

  /// Uses the sizes in `options`. `payload`: largest packet that is cached, in bytes. `seed`: see
  /// FlowTable.
  TrackedFlows(const AckShimOptions& options, size_t payload, uint64_t seed)
      : table_(options.maxFlows, options.maxHalfOpen, seed),
        wheel_(table_.capacity()),
        cache_(payload, options.cachePackets, options.cachePerFlow) {}

  /// The time is `now` from here on. AckShim calls it before anything else of an event. A time
  /// earlier than before has no effect.
  void advanceTo(Time now) {
    now_ = std::max(now_, now);
    stamp_ = Timestamp32::of(now_);
  }
  Time now() const { return now_; }
  /// now() in 32 bits.
  Timestamp32 stamp() const { return stamp_; }

  FlowTable& table() { return table_; }
  const FlowTable& table() const { return table_; }
  TailCache& cache() { return cache_; }
  const TailCache& cache() const { return cache_; }
  InterventionLog& interventions() { return interventions_; }
  ShimFlow& operator[](uint32_t i) { return table_[i]; }
  LossState& lossState(const ShimFlow& flow) { return table_.lossState(flow); }

  // Each proven flow has one timer. After prove(), arm() must be called, because idle flows are
  // found by their timer.

  /// Sets the timer of a proven flow to fire `ahead` from now, replacing its deadline.
  void arm(uint32_t i, Duration ahead) {
    table_[i].timerAt = stamp_ + ahead;
    wheel_.arm(i, now_ + ahead);
  }
  /// The same, but an earlier deadline stays.
  void armEarlier(uint32_t i, Duration ahead) {
    ShimFlow& flow = table_[i];
    ahead = std::min(ahead, AckShimOptions::kMaxIdle);  // stamps have 32 bits; arm() gets no more
    Timestamp32 at = stamp_ + ahead;
    if (flow.timerAt - at <= Duration(0)) return;
    flow.timerAt = at;
    wheel_.armEarlier(i, now_ + ahead);
  }
  /// Removes a proven flow with its cached packets and timer.
  void erase(uint32_t i) {
    cache_.clear(table_[i].inTail);
    cache_.clear(table_[i].outTail);
    wheel_.cancel(i);
    table_.erase(i);
  }

  /// When to call onTimer(); kNever without flows.
  Time nextDeadline() const { return wheel_.nextDeadline(); }
  /// Handles the timers that are due at now(): erases the flow if it was idle for `idle`, else
  /// calls next(flow), which does what is due, if anything is (a timer may fire early), and returns
  /// the time until something is due again. next() must not erase flows.
  template <typename F>
  void onTimer(Duration idle, F&& next) {
    wheel_.advance(now_, [&](uint32_t i) {
      Duration left = idle - (stamp_ - table_[i].lastUse);
      if (left <= Duration(0)) return erase(i);
      arm(i, std::min(left, next(table_[i])));
    });
  }

 private:
  FlowTable table_;
  TimerWheel wheel_;
  TailCache cache_;
  InterventionLog interventions_;
  Time now_{};
  Timestamp32 stamp_;
};

}  // namespace braid
