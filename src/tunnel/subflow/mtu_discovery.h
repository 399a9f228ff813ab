#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "base/timer_table.h"

namespace braid {

/// Datagram packetization layer path MTU discovery (RFC 8899) for one subflow. Sizes are UDP payload bytes.
///
/// A search probes the largest size first, then the base, then halves what is left; each size is ruled out by
/// kMaxProbes lost probes. kRaiseInterval after a search that stopped below the top, larger sizes are tried
/// again. A black hole begins the search anew from the least size.
class MtuDiscovery {
 public:
  /// Every path must carry this (RFC 9000 section 14.1); more only once a probe has shown it.
  static constexpr size_t kMinDatagram = 1200;
  /// RFC 8899 section 5.1.2 BASE_PLPMTU: carries an inner IPv6 packet of 1280 bytes. Tried right after the
  /// top.
  static constexpr size_t kBaseDatagram = 1315;
  /// RFC 8899 section 5.1.2 MAX_PROBES.
  static constexpr int kMaxProbes = 3;
  /// Longest wait for the answer to a probe (RFC 8899 section 5.1.1 PROBE_TIMER, there 15 s): large packets
  /// wait for it.
  static constexpr Duration kMaxProbeTime = 2s;
  /// Shortest: on a fabric, where a PTO is a few milliseconds, a gateway that is kept from its processor would make the
  /// path look narrow. Ours.
  static constexpr Duration kLeastProbeTime = 20ms;
  /// RFC 8899 section 5.1.1 PMTU_RAISE_TIMER.
  static constexpr Duration kRaiseInterval = 600s;
  /// The search ends when the largest size that passes is known to so many bytes. Ours.
  static constexpr size_t kPrecision = 8;
  /// A black hole (RFC 8899 section 4.3): so many full-size packets lost in a row, while so many smaller ones
  /// arrived.
  static constexpr int kBlackHoleLosses = 10;
  static constexpr int kBlackHoleArrivals = 3;
  /// Full-size packets lost in a silence of the path that count towards a black hole. Ours.
  static constexpr int kSilentLosses = 3;

  /// Searches up to `max`; `fixed` > 0 is taken as it is and never probed.
  MtuDiscovery(size_t max, size_t fixed);

  /// The largest size that the path is known to carry.
  size_t current() const { return current_; }
  /// Size of the probe to send now; 0: none is due.
  size_t pollProbe() const;
  /// The probe counts as lost after `timeout`.
  void onProbeSent(size_t size, Duration timeout, Time now);
  void onProbeAcked(size_t size, Time now);
  void onProbeLost(size_t size, Time now);
  /// A packet of this size was acknowledged, or lost, as part of the normal traffic.
  void onAcked(size_t size);
  void onLost(size_t size, Time sentAt);
  /// The path is proven, or answers again after a silence. What it lost before says nothing of sizes; but a
  /// lone path with sparse traffic falls silent for every packet that is too large, so kSilentLosses count
  /// each time.
  void onPathUp(Time now) {
    upSince_ = now;
    silentLosses_ = 0;
  }
  /// The kernel says that datagrams of this size do not leave the uplink.
  void onTooBig(size_t size, Time now);
  /// The peer takes no larger datagrams; less than kMinDatagram counts as that. Only ever lowers the largest size.
  void setLimit(size_t largest);
  /// The path is another one: nothing is known of it.
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
  bool tryHigh_ = true;  ///< the first probe goes for the top
  size_t probing_ = 0;   ///< size of the probe in flight; 0: there is none, and Timer::kProbe is stopped
  int failures_ = 0;
  int fullSizeLosses_ = 0;
  int smallArrivals_ = 0;
  Time upSince_ = Time::min();
  int silentLosses_ = 0;  ///< of packets sent before upSince_, that counted
  enum class Timer : uint8_t {
    kProbe,  ///< PROBE_TIMER: the probe in flight counts as lost
    kRaise,  ///< PMTU_RAISE_TIMER: larger sizes are tried again
    kCount,
  };
  TimerTable<Timer> timers_;
};

}  // namespace braid
