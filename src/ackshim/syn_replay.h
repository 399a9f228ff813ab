#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ackshim/counters.h"
#include "ackshim/segment.h"
#include "base/bytes.h"
#include "base/timer_wheel.h"
#include "inet/flow_key.h"

namespace braid {

/// SYNs and SYN-ACKs that went one way and got no answer yet. Their senders' timers are a second (RFC 6298
/// section 2.1), the way to the host and back is known from its other connections: what is not answered within
/// a time that the caller takes from that goes again, with doubled waits, until that second is over.
///
/// A host that was never heard of gets nothing twice. What is not answered keeps its place for that second,
/// so a flood of SYNs gets no more than kPlaces times kMaxReplays added to it.
class SynReplay {
 public:
  static constexpr size_t kPlaces = 64;
  static constexpr uint8_t kMaxReplays = 5;
  /// Headers with all options, without data.
  static constexpr size_t kMaxSize = 120;

  SynReplay() : wheel_(kPlaces) {}

  /// How long an answer is waited for.
  struct Patience {
    Duration rtt;       ///< to the receiver and back
    Duration first;     ///< before the first replay; about doubled for each one more
    bool mayBeCarried;  ///< by the tunnel: then it goes after two looks, an `rtt` apart, that say no
  };
  /// A SYN or SYN-ACK; also when its sender sent it again. `key`: from the local host. Not kept when it carries
  /// data (TCP Fast Open), when its sender's timer is earlier, or when others wait in its place.
  void onSyn(const FlowKey& key, uint64_t hash, ByteView packet, const TcpSegment& s,
             const Patience& patience, Time now);
  /// Its receiver answered with an ACK or a reset. When it was to one of several SYNs: the time since the likely
  /// one, which is the last unless the answer came too soon for that.
  std::optional<Duration> onAnswer(const FlowKey& key, uint64_t hash, ShimCounters& counters, Time now);
  /// Either end gave the attempt up, or began another one.
  void cancel(const FlowKey& key, uint64_t hash);
  bool empty() const { return wheel_.armed() == 0; }

  Time nextDeadline() const { return wheel_.nextDeadline(); }
  /// Calls send(packet) for each that is to go again and not isCarried(key); what send() returns says whether it
  /// went.
  template <typename C, typename F>
  void onTimer(Time now, ShimCounters& counters, C&& isCarried, F&& send) {
    wheel_.advance(now, [&](uint32_t id) {
      Entry& entry = entries_[id];
      if (now < entry.due) return wheel_.arm(id, entry.due);  // it lay beyond the wheel's horizon
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
  static constexpr Duration kLook = 1ms;  // least pause between two looks. Ours.
  struct Entry {
    FlowKey key;
    Time first;
    Time last;
    Time due;
    Seq seq;
    Patience patience;
    bool carried = true;  // when it was looked at last, or not looked at yet
    uint8_t replays = 0;
    uint8_t size = 0;
    std::array<uint8_t, kMaxSize> bytes;
    // The first of two looks comes a round trip before.
    Duration firstTimer() const { return patience.first - (patience.mayBeCarried ? patience.rtt : 0s); }
  };

  void arm(uint32_t id, Time due) {
    entries_[id].due = due;
    wheel_.arm(id, due);
  }
  bool holds(const FlowKey& key, uint32_t id) const { return wheel_.isArmed(id) && entries_[id].key == key; }

  std::array<Entry, kPlaces> entries_{};
  TimerWheel wheel_;
};

}  // namespace braid
