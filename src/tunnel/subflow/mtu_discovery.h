#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "base/timers.h"

namespace braid {

/// Datagram packetization layer path MTU discovery (RFC 8899) for one subflow. Sizes are UDP
/// payload bytes.
///
/// A search probes the largest size first, then kBaseDatagram, then bisects what is left. A size is
/// ruled out after kMaxProbes lost probes. After a search that stopped below the largest size,
/// larger sizes are tried again kRaiseInterval later. A black hole restarts the search from
/// kMinDatagram.
class MtuDiscovery {
 public:
  /// Every path must carry this size (RFC 9000 section 14.1). Larger ones are used only after a
  /// probe has arrived.
  static constexpr size_t kMinDatagram = 1200;
  /// BASE_PLPMTU of RFC 8899 section 5.1.2: carries an inner IPv6 packet of 1280 bytes. Probed
  /// right after the largest size.
  static constexpr size_t kBaseDatagram = 1315;
  /// RFC 8899 section 5.1.2 MAX_PROBES.
  static constexpr int kMaxProbes = 3;
  /// Longest wait for the answer to a probe (PROBE_TIMER of RFC 8899 section 5.1.1, there 15 s). It
  /// is shorter here because large packets wait for the answer.
  static constexpr Duration kMaxProbeTime = 2s;
  /// Shortest wait for the answer to a probe. On a fabric a PTO is a few milliseconds, and a
  /// gateway that does not get the processor for that long would make the path look narrow.
  static constexpr Duration kLeastProbeTime = 20ms;
  /// RFC 8899 section 5.1.1 PMTU_RAISE_TIMER.
  static constexpr Duration kRaiseInterval = 600s;
  /// The search ends when the largest size that passes is known to within this many bytes.
  static constexpr size_t kPrecision = 8;
  /// A black hole (RFC 8899 section 4.3) is detected when kBlackHoleLosses full-size packets were
  /// lost in a row while kBlackHoleArrivals smaller ones arrived.
  static constexpr int kBlackHoleLosses = 10;
  static constexpr int kBlackHoleArrivals = 3;
  /// At most this many full-size packets lost in one silence of the path count towards a black
  /// hole.
  static constexpr int kSilentLosses = 3;

  /// Searches up to `max`. `fixed` > 0 is the size to use, and nothing is probed.
  MtuDiscovery(size_t max, size_t fixed);

  /// The largest size that the path is known to carry.
  size_t current() const { return current_; }
  /// Size of the probe to send now; 0: none is due.
  size_t pollProbe() const;
  /// A probe of `size` was sent. It counts as lost after `timeout`.
  void onProbeSent(size_t size, Duration timeout, Time now);
  void onProbeAcked(size_t size, Time now);
  void onProbeLost(size_t size, Time now);
  /// A packet of this size was acknowledged, or lost, as part of the normal traffic.
  void onAcked(size_t size);
  void onLost(size_t size, Time sentAt);
  /// The path is validated, or answers again after a silence. Losses from before that say nothing
  /// about sizes. But a lone path with sparse traffic falls silent after every packet that is too
  /// large, so kSilentLosses losses of each silence count.
  void onPathUp(Time now) {
    upSince_ = now;
    silentLosses_ = 0;
  }
  /// The kernel reports that datagrams of this size are too big for the uplink.
  void onTooBig(size_t size, Time now);
  /// The peer takes no datagrams larger than `largest`; less than kMinDatagram counts as
  /// kMinDatagram. Never raises the largest size.
  void setLimit(size_t largest);
  /// The subflow now uses another path, of which nothing is known.
  void restart();
  void onTimer(Time now);
  Time nextDeadline() const { return timers_.next(); }
  bool searching() const { return fixed_ == 0 && low_ + kPrecision <= high_; }

 private:
  void search();
  void probeFailed(Time now);
  size_t candidate() const;

  size_t max_;
  size_t fixed_;
  size_t current_;
  size_t low_;           ///< known to pass
  size_t high_;          ///< largest that may pass
  bool tryHigh_ = true;  ///< the next probe has the largest size
  /// Size of the probe in flight; 0: there is none, and Timer::kProbe is stopped.
  size_t probing_ = 0;
  int failures_ = 0;
  int fullSizeLosses_ = 0;
  int smallArrivals_ = 0;
  Time upSince_ = Time::min();
  int silentLosses_ = 0;  ///< losses of packets sent before upSince_
  enum class Timer : uint8_t {
    kProbe,  ///< PROBE_TIMER: the probe in flight counts as lost
    kRaise,  ///< PMTU_RAISE_TIMER: larger sizes are tried again
    kCount,
  };
  TimerTable<Timer> timers_;
};

}  // namespace braid
