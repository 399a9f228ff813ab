#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "scheduler/rate/congestion_signs.h"

namespace braid {

/// How the round-trip time of one subflow rose and fell: its mean in each of the last kIntervals
/// intervals. The RTTs of subflows that queue at the same bottleneck rise and fall together. The
/// intervals are those of RFC 8382; docs/fidelity.md compares the measures of that RFC with this
/// one. A sample costs O(1), a series takes 500 bytes.
class DelaySeries {
 public:
  /// T and N (RFC 8382 section 2.2). The intervals of all subflows begin at the same times.
  static constexpr Duration kInterval = 350ms;
  static constexpr size_t kIntervals = 50;
  /// M (section 2.2): two subflows are compared when both measured at least this many intervals.
  static constexpr size_t kCommon = 30;
  /// No decision is made before kWarmUp intervals were measured: 2 * M (section 3.3.2).
  static constexpr uint64_t kWarmUp = 2 * kCommon;
  /// An interval with fewer than kMinSamples samples counts as not measured. A subflow that
  /// measured none of its newest kIdle intervals is idle.
  static constexpr uint32_t kMinSamples = 5;
  static constexpr size_t kIdle = 6;

  /// Adds a round-trip time, above 0. `now` must not decrease. The caller leaves out samples taken
  /// while the application limited the sender: they show the path's delay, not that of its
  /// bottleneck.
  void onSample(Duration rtt, Time now);
  /// Ends the intervals that are over at `now`.
  void advance(Time now);
  /// Forgets everything: the path is another one.
  void reset() { *this = {}; }

  /// kWarmUp intervals were measured, and the subflow is not idle.
  bool ready() const;

  /// How similarly the RTTs of two subflows rose and fell: Pearson's coefficient over the intervals
  /// that both measured, [-1, 1]. 0 when these are fewer than kCommon.
  friend double correlation(const DelaySeries& a, const DelaySeries& b);

 private:
  void close();
  /// Mean of an interval, ns; `age` 0 is the newest. 0: nothing was measured.
  double mean(size_t age) const { return means_[(newest_ + kIntervals - age) % kIntervals]; }

  std::array<double, kIntervals> means_{};
  size_t newest_ = 0;
  Time end_{};            // of the current interval
  double sum_ = 0;        // of its samples, ns
  uint32_t samples_ = 0;  // their number
  uint64_t measured_ = 0;
};

/// A subflow that may share its bottleneck with others.
struct BottleneckUser {
  DelaySeries delays;
  size_t bottleneck = 0;  ///< users with the same number share a bottleneck; 0: not known
  size_t sharing = 1;     ///< how many users share the bottleneck, this one included
  size_t before = 0;      ///< `bottleneck` before the last groupByBottleneck()
};

/// Smallest correlation() with which two subflows are put into one group, and with which two that
/// are in one group stay there. Chosen: by tests/sim/shared_bottleneck_test.cc on other seeds.
inline constexpr double kJoinCorrelation = 0.9;
inline constexpr double kStayCorrelation = 0.7;

/// Decides again which users share a bottleneck. Called once per interval, after
/// DelaySeries::advance() of all users.
void groupByBottleneck(std::span<BottleneckUser*> users);

/// In which of the last kIntervals intervals CE marks came on one subflow. The intervals of the
/// subflows that are compared begin at the same times; the owner of the histories ends them.
/// Subflows that queue at the same bottleneck are marked at the same times.
class MarkHistory {
 public:
  static constexpr int kIntervals = 64;
  /// Two subflows are compared when at least one of them was marked in this many intervals in which
  /// both were heard. Chosen: responses of some hundred datagrams are over before.
  static constexpr int kLeast = 8;

  /// An ACK came with this number of new CE marks.
  void onAck(uint64_t marks) {
    heard_ |= 1;
    if (marks > 0) marked_ |= 1;
  }
  /// An interval ends.
  void advance() {
    heard_ <<= 1;
    marked_ <<= 1;
  }
  /// Forgets everything: the path is another one.
  void reset() { *this = {}; }

  /// Whether the two subflows were marked together: in at least half of the intervals in which one
  /// of them was.
  friend bool shareMarks(const MarkHistory& a, const MarkHistory& b) {
    uint64_t common = a.heard_ & b.heard_;
    int either = std::popcount((a.marked_ | b.marked_) & common);
    int both = std::popcount(a.marked_ & b.marked_ & common);
    return either >= kLeast && 2 * both >= either;
  }

 private:
  // The lowest bit is the current interval.
  uint64_t heard_ = 0;   // ACKs came
  uint64_t marked_ = 0;  // ACKs with marks came
};

/// What the coupled controllers of one session know about each other, and which of them AMP has
/// suppressed. The first usable coupled member is the "initial subflow" of AMP.
class ControllerGroup {
 public:
  /// One subflow's controller, as the others see it. The record lives in that controller, which
  /// keeps it up to date.
  struct Member {
    double window = 0;           ///< bytes
    Duration srtt{};             ///< smoothed RTT; 0 before the first sample
    bool atMinimum = false;      ///< the window is the minimum window, in whole datagrams
    bool usable = false;         ///< validated and not suspect, closed or refused
    Time suppressedAt = kNever;  ///< kNever: active
    bool coupled = true;         ///< its window counts in the group's sums; it can be suppressed
    BottleneckUser user{};       ///< its delays, for controllers that ask for sharing()
    MarkHistory marks{};         ///< for controllers that report them by onMarks()
    bool takesPart() const { return usable && suppressedAt == kNever; }
    bool isCoupled() const { return coupled && takesPart(); }
  };

  /// The member must leave() before it is destroyed.
  void join(Member& member) { members_.push_back(&member); }
  void leave(const Member& member);
  /// The subflow came into use, or is no longer in use. A suppression ends when its initial subflow
  /// is no longer in use, because no other subflow could tell when congestion is over.
  void setUsable(Member& member, bool usable, Time now);

  /// Sum of the windows of all members that take part, bytes; w_total.
  double totalWindow() const;
  /// Sum of the windows of `member` and of those members that share its marks, bytes.
  double windowSharingMarks(const Member& member) const;
  /// Eq. (1) of AMP and (2) of RFC 6356: w_total * max(w/rtt^2) / (sum(w/rtt))^2, over the members
  /// that take part and know their RTT. 1 when there are none.
  double alpha() const;
  /// Eq. (3) of AMP: rtt_s/rtt_min * (w_s/rtt_s) / sum(w/rtt), in datagrams per window. 1 when no
  /// RTT is known.
  double delta(const Member& member) const;

  // ---- shared bottlenecks

  /// How many members that take part share the bottleneck of `member`, itself included. 1 when no
  /// other is known to share it, when no delays are reported for `member`, and when it does not
  /// take part. Decided once per DelaySeries::kInterval.
  size_t sharing(const Member& member, Time now);

  /// An ACK of `member` came with this number of new CE marks. Ends the current interval of all
  /// members' marks when it has lasted for the longest smoothed RTT.
  void onMarks(Member& member, uint64_t marks, Time now);

  // ---- losses by congestion

  /// The last time at which packets of the session were lost by congestion.
  CongestionEpisode& congestion() { return congestion_; }

  // ---- suppression (AMP, Algorithm 1)

  /// Whether `member` is the initial subflow. Only the marks and rounds of that subflow count.
  bool isInitial(const Member& member) const { return initial() == &member; }
  bool suppressing() const { return suppressing_ != nullptr; }
  /// Rounds in a row up to now: with all members at the minimum window, or, during a suppression,
  /// without marks.
  uint64_t rounds() const { return rounds_; }
  /// How many suppressions there have been.
  uint64_t episodes() const { return episodes_; }
  /// A round has ended: one window of data of the initial subflow. `marked`: CE marks came in it.
  /// `gamma`, `tau`: as in AmpOptions.
  void onRound(bool marked, uint64_t gamma, uint64_t tau, Time now);

 private:
  const Member* initial() const;
  void suppress(Time now);
  void release();
  void regroup(Time now);

  CongestionEpisode congestion_;
  std::vector<Member*> members_;         // in order of joining
  const Member* suppressing_ = nullptr;  // the initial subflow of the suppression under way
  uint64_t rounds_ = 0;
  uint64_t episodes_ = 0;
  std::vector<BottleneckUser*> users_;  // scratch memory of regroup()
  Time regroupAt_{};
  Time marksUntil_{};  // end of the current interval of MarkHistory
};

}  // namespace braid
