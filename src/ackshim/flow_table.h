#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ackshim/direction.h"
#include "ackshim/options.h"
#include "ackshim/segment.h"
#include "ackshim/tracks_timer.h"
#include "base/memory.h"
#include "base/packet.h"
#include "base/timers.h"
#include "inet/flow_key.h"
#include "inet/tcp.h"

namespace braid {

/// A hash index of small ids: open addressing with buckets of one cache line. Most look-ups end in
/// the first bucket. An entry holds an id and some bits of the hash, so that a look-up rarely reads
/// a record that does not match. Each bucket counts the ids that found it full and were put into a
/// later bucket, so that erased ids leave no tombstones.
class FlowIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  /// Memory per id, at most. With all ids in use, 8 of the 15 places of a bucket are taken on
  /// average.
  static constexpr size_t kBytesPerId = 8;

  /// Ids are below `ids`, which is at most 2^30.
  explicit FlowIndex(size_t ids);

  /// The first id with this hash for which same(id) is true; kNone when there is none.
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
  /// Inserts an id that is not in the index. Two ids should have the same hash by chance only.
  void insert(uint64_t hash, uint32_t id);
  /// Removes an id that is in the index with this hash.
  void erase(uint64_t hash, uint32_t id);

 private:
  struct alignas(64) Bucket {
    Bucket() { entries.fill(kNone); }
    std::array<uint32_t, 15> entries;
    uint32_t passed = 0;
  };

  // The high half of the hash selects the bucket, the low half gives the tag.
  size_t home(uint64_t hash) const { return (hash >> 32) * buckets_.size() >> 32; }
  size_t next(size_t at) const { return at + 1 == buckets_.size() ? 0 : at + 1; }
  uint32_t idMask() const { return (uint32_t{1} << idBits_) - 1; }
  uint32_t tag(uint64_t hash) const { return static_cast<uint32_t>(hash) & ~idMask(); }

  unsigned idBits_;  // number of low bits of an entry that hold the id; all ones is not an id
  HugeArray<Bucket> buckets_;
};

/// Keeps the last segments of small flows until they are acknowledged. One bounded store for all
/// flows, with a short list for each direction of a flow that needs one.
class TailCache {
 public:
  struct List {
    uint16_t head = kNone;
    uint16_t tail = kNone;
    uint8_t count = 0;
    bool empty() const { return head == kNone; }
  };
  struct Entry {
    Packet packet;
    SeqRange range;
    Timestamp32 givenAt;  ///< when it was last sent towards its receiver
    uint8_t given = 0;    ///< how often it was sent towards its receiver
   private:
    friend class TailCache;
    uint16_t next = kNone;
  };

  /// `payload`: size of the largest packet kept, in bytes. `packets`: in the whole store, at most
  /// 65534. `perList`: per list, at most 255.
  TailCache(size_t payload, size_t packets, size_t perList);

  /// Appends a copy to the list. When the list is full, its oldest entry is evicted. When the store
  /// is full, the packet is not kept (false).
  bool append(List& list, ByteView packet, SeqRange range, Timestamp32 now);
  /// The sender sent data of this range again. False when none of it is kept.
  bool onAgain(List& list, SeqRange range, Timestamp32 now);
  /// Whether all entries of the list end before the range.
  bool isBehind(const List& list, SeqRange range) const {
    return list.empty() || entries_[list.tail].range.end <= range.begin;
  }
  /// The oldest entry; nullptr for an empty list.
  Entry* front(List& list) { return list.empty() ? nullptr : &entries_[list.head]; }
  void popFront(List& list);
  /// Removes the entries that are acknowledged by `una`.
  void popBelow(List& list, Seq una);
  void clear(List& list);

  size_t size() const { return pool_.inUse(); }

 private:
  static constexpr uint16_t kNone = UINT16_MAX;

  PacketPool pool_;
  size_t perList_;
  std::vector<Entry> entries_;
  uint16_t free_ = kNone;
};

/// The record of a TCP connection between a local host and one behind the tunnel: what every packet
/// needs, in three cache lines, with the 5-tuple in the first.
///
/// Ownership of the members: AckShim updates both directions for each packet, and writes lastUse
/// and doubtful. TrackedFlows writes timerAt. HandshakeTracker creates a flow with what its
/// handshake tells. From then on ReceiverReplay owns replays, spurious, received and inTail, and
/// SenderWakeup all others. Two things are shared: `tried`, which both set and neither clears; and
/// the RTT measurement of a direction, which ReceiverReplay (in) and SenderWakeup (out) abort when
/// a copy that they sent has spoilt the sample.
struct alignas(64) ShimFlow {
  FlowKey key;               ///< of the local host's packets
  uint8_t replays : 4 = 0;   ///< replays of the same segment to the local host
  uint8_t spurious : 4 = 0;  ///< replays that came too soon and are not yet forgiven
  Timestamp32 lastUse;
  Timestamp32 timerAt;          ///< its timer fires at this time or earlier
  bool joined : 1 = false;      ///< no handshake was seen
  bool fromLocal : 1 = false;   ///< the first segment was the local host's
  bool ackStamped : 1 = false;  ///< the peer's last ACK had timestamps
  bool sack : 1 = false;        ///< SACK was negotiated, or seen in use
  bool hostTalks : 1 = false;   ///< the local host sent data after it received some
  bool doubtful : 1 = false;    ///< a RST came that may be real: silent until a new ACK
  bool carried : 1 = false;   ///< the tunnel may still carry its data: no look has shown otherwise
  bool toldHole : 1 = false;  ///< the sender was told of the hole at arrivals.edge
  bool dropped : 1 = false;   ///< outTail holds segments that the tunnel dropped
  bool gap : 1 = false;       ///< some data before out.nxt has not arrived: see LossState::arrivals
  bool tried : 1 = false;     ///< the shim acted on this flow: see the intervention log
  bool again : 1 = false;     ///< the local host resent the data at out.una; outTail holds it
  Boundaries boundaries;      ///< segment boundaries of the local host's data
  TailCache::List inTail;     ///< segments sent to the local host
  /// Segments that the local host received. ReceiverReplay sets it back at times (kForgiving).
  uint16_t received = 0;
  TcpDirection out;                ///< direction of the local host's data
  TracksTimer tracks;              ///< T-RACKs state for the local host as a sender
  uint32_t ackFlowLabel : 20 = 0;  ///< of the peer's last ACK
  uint32_t headLength : 12 = 0;    ///< size of the segment at out.una; 0: unknown or above 4095
  TcpDirection in;                 ///< direction of the data to the local host
  TcpTimestamps ackTimestamps;     ///< of the peer's last ACK
  TailCache::List outTail;         ///< segments of the local host: those resent, those that the
                                   ///< tunnel dropped, or all

  /// Whether both ends have acknowledged each other's SYN.
  bool isProvenByHandshake() const {
    return out.known && in.known && out.una >= out.base && in.una >= in.base;
  }
};
static_assert(sizeof(ShimFlow) == 192 && offsetof(ShimFlow, out) == 64 &&
              offsetof(ShimFlow, in) == 128);

/// The state of a flow that is needed only after a loss.
struct LossState {
  Arrivals arrivals;  ///< which data of the local host arrived; valid while ShimFlow::gap is set
  InterventionLog::Newest outTrial = 0;  ///< newest intervention for the local host as a sender
  InterventionLog::Newest inTrial = 0;   ///< newest intervention for the local host as a receiver
};

/// Memory per tracked flow in bytes: its records, timer and index entry, without cached packets.
inline constexpr size_t kBytesPerFlow =
    sizeof(ShimFlow) + sizeof(LossState) + TimerWheel::kBytesPerTimer + FlowIndex::kBytesPerId;
static_assert(kBytesPerFlow <= 256);

/// The 5-tuple of the local host's packets, and the table's hash of it.
struct FlowSlot {
  FlowKey key;
  uint64_t hash;
};

/// The table of flows by 5-tuple. It has two parts that do not compete for space: proven flows,
/// which have shown to have two ends, and half-open ones, of which the oldest is evicted when one
/// more comes. A sender that invents addresses fills only the second part. All operations are O(1).
/// Memory is taken when an entry is first used, and is then kept.
///
/// A packet of a flow that is not in the CPU's cache costs two cache misses in sequence: one for
/// the index, and one for the record's three lines, which are fetched in parallel.
class FlowTable {
 public:
  static constexpr uint32_t kNone = FlowIndex::kNone;

  /// `seed` keys the hash; it must be unpredictable outside of tests.
  FlowTable(size_t maxFlows, size_t maxHalfOpen, uint64_t seed);

  uint64_t hash(const FlowKey& key) const { return hash_(key); }
  uint32_t findProven(const FlowKey& key, uint64_t hash) const;
  uint32_t findHalfOpen(const FlowKey& key, uint64_t hash) const;
  ShimFlow& operator[](uint32_t i) { return flows_[i]; }
  /// The loss state of a proven flow.
  LossState& troubles(const ShimFlow& flow) {
    return troubles_[static_cast<size_t>(&flow - flows_.data())];
  }

  /// Prefetches the record of the proven flow `i` into the cache.
  void fetchFlow(uint32_t i) const;

  /// Adds a new half-open flow. It replaces the one with the same key, or else the oldest one.
  uint32_t addHalfOpen(const FlowKey& key, uint64_t hash);
  /// Moves a half-open flow to the proven ones. kNone when that part is full: erase one first.
  uint32_t prove(uint32_t halfOpen, uint64_t hash);
  /// Removes a proven flow.
  void erase(uint32_t i);
  /// Looks for a proven flow that can be evicted, that is, for which mayGo(flow) is true. Examines
  /// the next kTries entries in turn. kNone when there is none among them.
  template <typename F>
  uint32_t victim(F&& mayGo) {
    for (size_t n = 0; n < kTries && used_ > 0; ++n) {
      hand_ = (hand_ + 1) % used_;
      if (flows_[hand_].key.protocol != 0 && mayGo(flows_[hand_])) return hand_;
    }
    return kNone;
  }

  /// Proven flows.
  size_t size() const { return size_; }
  size_t capacity() const { return maxFlows_; }
  bool isFull() const { return size_ == maxFlows_; }

 private:
  /// Entries that victim() examines. Bounds the work per packet.
  static constexpr size_t kTries = 16;

  uint32_t idOf(uint32_t halfOpen) const { return halfOpen - static_cast<uint32_t>(maxFlows_); }

  FlowKeyHash hash_;
  size_t maxFlows_;
  size_t maxHalfOpen_;
  HugeArray<ShimFlow> flows_;  // the proven ones, followed by the half-open ones
  HugeArray<LossState> troubles_;
  FlowIndex proven_;
  FlowIndex halfOpen_;
  uint32_t free_ = kNone;      // first erased entry; the lastUse of each names the next one
  uint32_t used_ = 0;          // proven entries that were ever used
  uint32_t usedHalfOpen_ = 0;  // half-open entries that were ever used
  uint32_t nextHalfOpen_ = 0;  // the entry to use next; once all are used, the oldest
  uint32_t hand_ = 0;
  size_t size_ = 0;
};

/// The flow table together with everything that belongs to a proven flow: its record, timer, cached
/// packets and intervention log. The shim's present time is kept here, too, because all time stamps
/// in these refer to it.
class TrackedFlows {
 public:
  static constexpr uint32_t kNone = FlowTable::kNone;

  /// Uses the sizes in `options`. `payload`: size of the largest packet kept, in bytes. `seed` keys
  /// the hash.
  TrackedFlows(const AckShimOptions& options, size_t payload, uint64_t seed)
      : table_(options.maxFlows, options.maxHalfOpen, seed),
        wheel_(table_.capacity()),
        cache_(payload, options.cachePackets, options.cachePerFlow) {}

  /// Advances the present time. An earlier `now` is ignored.
  void forward(Time now) {
    now_ = std::max(now_, now);
    stamp_ = Timestamp32::of(now_);
  }
  Time now() const { return now_; }
  Timestamp32 stamp() const { return stamp_; }

  FlowTable& table() { return table_; }
  const FlowTable& table() const { return table_; }
  TailCache& cache() { return cache_; }
  const TailCache& cache() const { return cache_; }
  InterventionLog& interventions() { return interventions_; }
  ShimFlow& operator[](uint32_t i) { return table_[i]; }
  LossState& troubles(const ShimFlow& flow) { return table_.troubles(flow); }

  /// Sets the timer of a proven flow to fire after `ahead`, replacing the former deadline.
  void arm(uint32_t i, Duration ahead) {
    table_[i].timerAt = stamp_ + ahead;
    wheel_.arm(i, now_ + ahead);
  }
  /// Makes the timer of a proven flow fire after `ahead` at the latest.
  void armIn(uint32_t i, Duration ahead) {
    ShimFlow& flow = table_[i];
    ahead = std::min(ahead, AckShimOptions::kMaxIdle);  // limit for comparing stamps
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

  Time nextDeadline() const { return wheel_.nextDeadline(); }
  /// Removes flows that were idle for at least `idle`. If the timer of any other flow fires, calls
  /// next(flow), which does what is due and returns the time until something is due again.
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
  Timestamp32 stamp_;  // now_
};

}  // namespace braid
