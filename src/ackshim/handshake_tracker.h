#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ackshim/direction.h"
#include "ackshim/flow_table.h"
#include "ackshim/options.h"
#include "ackshim/segment.h"
#include "base/bytes.h"
#include "base/timers.h"
#include "inet/flow_key.h"

namespace braid {

/// Round-trip times between this gateway and hosts, learned from earlier flows. They are used for a
/// new connection that has no measurement of its own yet. A hash table without probing: a host may
/// replace another one with the same hash hashed.
class HostLegs {
 public:
  /// Adds a sample. `hash`: the keyed hash of the host's address.
  void note(uint64_t hash, Duration rtt) {
    Place& hashed = places_[hash % kPlaces];
    if (hashed.hash != hash) hashed = {hash, {}};
    hashed.rtt.onSample(rtt);
  }
  /// The RTT of a host; nullptr when it is not known.
  const LegRtt* find(uint64_t hash) const {
    const Place& hashed = places_[hash % kPlaces];
    return hashed.hash == hash && hashed.rtt.hasSample() ? &hashed.rtt : nullptr;
  }

 private:
  static constexpr size_t kPlaces = 1024;
  struct Place {
    uint64_t hash = 0;
    LegRtt rtt;
  };
  std::array<Place, kPlaces> places_{};
};

/// Repeats SYNs and SYN-ACKs that were sent one way and are not answered yet. Their senders' own
/// timers take 1 s (RFC 6298 section 2.1), but the round trip to the receiver is known from its
/// other connections. A SYN without an answer within a wait that the caller derives from that round
/// trip is sent again, with doubled waits, until the 1 s is over.
///
/// Nothing is repeated to a host without a known round trip. An unanswered SYN keeps its place for
/// 1 s, so a flood of SYNs adds at most kPlaces times kMaxReplays packets per second.
class SynReplay {
 public:
  static constexpr size_t kPlaces = 64;
  static constexpr uint8_t kMaxReplays = 5;
  /// The largest packet kept, in bytes: IP and TCP headers with all options, without data.
  static constexpr size_t kMaxSize = 120;

  SynReplay() : wheel_(kPlaces) {}

  /// How long to wait for an answer.
  struct Patience {
    Duration rtt;    ///< round trip to the receiver
    Duration first;  ///< wait before the first replay; about doubled for each further one
    /// The tunnel may still carry the SYN. Then it is replayed only after two looks, an `rtt`
    /// apart, that both found that the tunnel does not.
    bool mayBeCarried;
  };
  /// A SYN or SYN-ACK passed, perhaps one that its sender repeats. `key` is that of the local
  /// host's packets. It is not kept when it carries data (TCP Fast Open), when `patience.first` is
  /// not below the sender's own 1 s timer, or when another SYN occupies its hashed.
  void onSyn(const FlowKey& key, uint64_t hash, ByteView packet, const TcpSegment& s,
             const Patience& patience, Time now);
  /// The receiver answered with an ACK or a reset. Returns a value only if the SYN was replayed:
  /// the time since the copy that was probably answered. That is the last copy, or the first if the
  /// answer came too soon after the last.
  std::optional<Duration> onAnswer(const FlowKey& key, uint64_t hash, ShimCounters& counters,
                                   Time now);
  /// Either end gave up the connection attempt or began another one.
  void cancel(const FlowKey& key, uint64_t hash);
  bool empty() const { return wheel_.armed() == 0; }

  Time nextDeadline() const { return wheel_.nextDeadline(); }
  /// Calls send(packet) for each SYN that is to be sent again and for which isCarried(key) is
  /// false. send() returns whether it was sent.
  template <typename C, typename F>
  void onTimer(Time now, ShimCounters& counters, C&& isCarried, F&& send) {
    wheel_.advance(now, [&](uint32_t id) {
      Entry& entry = entries_[id];
      if (now < entry.due) return wheel_.arm(id, entry.due);  // beyond the wheel's horizon
      if (now - entry.first >= kSenderTimer) return;
      if (entry.replays == kMaxReplays) return arm(id, entry.first + kSenderTimer);
      if (entry.patience.mayBeCarried) {
        bool wasCarried = entry.carried;
        entry.carried = isCarried(entry.key);
        if (wasCarried || entry.carried) return arm(id, now + std::max(entry.patience.rtt, kLook));
        entry.carried = true;
      }
      if (send(ByteView(entry.bytes).first(entry.size))) counters[Actuator::kSynReplay].fired += 1;
      ++entry.replays;
      entry.last = now;
      arm(id, now + entry.firstTimer() * (int64_t{1} << entry.replays));
    });
  }

 private:
  static constexpr Duration kSenderTimer = 1s;
  static constexpr Duration kLook = 1ms;  // least pause between two looks at the tunnel
  struct Entry {
    FlowKey key;
    Time first;
    Time last;
    Time due;
    Seq seq;
    Patience patience;
    bool carried = true;  // at the last look, or not looked at yet
    uint8_t replays = 0;
    uint8_t size = 0;
    std::array<uint8_t, kMaxSize> bytes;
    // The first of the two looks comes one round trip before the replay.
    Duration firstTimer() const {
      return patience.first - (patience.mayBeCarried ? patience.rtt : 0s);
    }
  };

  void arm(uint32_t id, Time due) {
    entries_[id].due = due;
    wheel_.arm(id, due);
  }
  bool holds(const FlowKey& key, uint32_t id) const {
    return wheel_.isArmed(id) && entries_[id].key == key;
  }

  std::array<Entry, kPlaces> entries_{};
  TimerWheel wheel_;
};

/// Handles packets of flows that are not proven yet, that is, whose ends have not shown that they
/// hear each other. Such a flow takes a half-open entry at most, no timer and no cached packet. The
/// shim does nothing for it except repeat a SYN to a host with a known round trip (SynReplay,
/// HostLegs).
class HandshakeTracker {
 public:
  /// All arguments must outlive this.
  HandshakeTracker(const AckShimOptions& options, TrackedFlows& flows, ShimOutbox& outbox,
                   ShimCounters& counters, const FlowActivityQuery* tunnel)
      : options_(options), flows_(flows), outbox_(outbox), counters_(counters), tunnel_(tunnel) {}

  /// Takes every segment, because it may answer a SYN that is kept, or begin another attempt.
  void onAny(const HashedKey& hashed, const TcpSegment& s, bool fromHost) {
    if (!towards(fromHost).syns.empty()) onPossibleAnswer(hashed, s, fromHost);
  }
  /// A proven flow has its first RTT sample to one of its hosts: the local one (`atHost`) or the
  /// other.
  void onMeasured(const ShimFlow& flow, bool atHost) {
    const LegRtt& rtt = (atHost ? flow.in : flow.out).rtt;
    towards(atHost).legs.note(hostHash(flow.key, atHost), rtt.smoothed());
  }
  /// Takes a segment that fits no proven flow. If it proves a half-open flow, returns that flow,
  /// which must then process the segment; else kNone.
  uint32_t onSegment(const HashedKey& hashed, ByteView packet, const TcpSegment& s, bool fromHost);

  Time nextDeadline() const {
    return std::min(hosts_.syns.nextDeadline(), peers_.syns.nextDeadline());
  }
  void onTimer();

 private:
  static constexpr uint32_t kNone = TrackedFlows::kNone;

  // The hosts on one side of this gateway: their round trips, and unanswered SYNs sent to them.
  struct Side {
    SynReplay syns;
    HostLegs legs;
  };
  Side& towards(bool hosts) { return hosts ? hosts_ : peers_; }

  void onSyn(const HashedKey& hashed, uint32_t i, ByteView packet, const TcpSegment& s,
             bool fromHost);
  bool isEnabled(const FlowKey& key) const;
  uint32_t open(const HashedKey& hashed, bool fromHost);
  void join(const HashedKey& hashed, const TcpSegment& s, bool fromHost);
  bool isProof(ShimFlow& flow, const TcpSegment& s, bool fromHost);
  uint32_t prove(uint32_t halfOpen, uint64_t hash);
  bool makeRoom();
  uint64_t hostHash(const FlowKey& key, bool local) const;
  void keepSyn(const HashedKey& hashed, ByteView packet, const TcpSegment& s, bool fromHost);
  void onPossibleAnswer(const HashedKey& hashed, const TcpSegment& s, bool fromHost);
  void recallLeg(ShimFlow& flow);

  const AckShimOptions& options_;
  TrackedFlows& flows_;
  ShimOutbox& outbox_;
  ShimCounters& counters_;
  const FlowActivityQuery* tunnel_;
  Side hosts_;
  Side peers_;
};

}  // namespace braid
