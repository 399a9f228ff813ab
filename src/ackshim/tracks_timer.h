#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ackshim/direction.h"
#include "ackshim/options.h"
#include "ackshim/segment.h"
#include "base/random.h"

namespace braid {

/// T-RACKs, Algorithms 1 and 2, for one sender: when to speak, how often, and when to stop. Line
/// numbers are those of the paper (docs/ackshim.md). The parameter `half` is the TCP direction of
/// the sender's data.
class TracksTimer {
 public:
  static constexpr Duration kNothing = Duration::max();

  /// Whether the sender is in a recovery that the shim started. Duplicate ACKs to it are then
  /// dropped (line 31).
  bool isRecovering() const { return recovering_; }

  /// A new ACK arrived (lines 21-26): resets all state.
  void onNewAck() { *this = TracksTimer(); }
  /// The sender sent data (lines 12-14): the wait starts again; a recovery continues.
  void onData() {
    spoken_ = false;
    beta_ = 0;
  }
  /// The sender was told of a loss by other means. Continues as after lines 8-10.
  void onSpoken(const TcpDirection& half, const AckShimOptions& options, Random& random,
                Timestamp32 now) {
    if (beta_ == 0) draw(half, options, random);
    speak(now);
  }

  /// Algorithm 2 for a flow that is not large and has data outstanding, an RTT and an open window.
  /// Returns the time from now until act() must be called; kNothing when only the sender's own
  /// timer can help.
  Duration left(const TcpDirection& half, const AckShimOptions& options, Random& random,
                Timestamp32 now) {
    if (beta_ == 0) draw(half, options, random);
    if (!spoken_)
      return positive(1us * beta_ - (now - latest(half.ackAt, half.activeAt)));  // lines 6, 7
    if (!recovering_) return kNothing;
    return positive(std::min(backoff() - (now - resentAt_), options.rtoMin - (now - half.ackAt)));
  }
  /// Call when left() is 0. Returns the number of duplicate ACKs to send now, which is 0 when the
  /// sender has seen enough already; nullopt when the recovery is over.
  std::optional<uint8_t> act(const TcpDirection& half, const AckShimOptions& options,
                             Timestamp32 now) {
    if (!spoken_) {  // lines 7-11
      speak(now);
      return static_cast<uint8_t>(options.phi - std::min(half.dupAcks, options.phi));
    }
    if (now - resentAt_ >= backoff() && x_ < kMaxBackoff) {  // lines 12-15
      ++x_;
      return uint8_t{1};
    }
    recovering_ = false;  // lines 16-19
    return std::nullopt;
  }

 private:
  static constexpr uint8_t kMaxBackoff = 16;

  // Draws beta (line 4), once for each wait.
  void draw(const TcpDirection& half, const AckShimOptions& options, Random& random) {
    auto rtt = static_cast<uint64_t>(half.rtt.smoothed() / 1us);
    uint64_t beta = std::max(options.alpha, 1u) * rtt + random.below(rtt);
    beta_ = static_cast<uint32_t>(std::clamp<uint64_t>(beta, 1, UINT32_MAX / 2));
  }
  // Lines 9-10.
  void speak(Timestamp32 now) {
    spoken_ = recovering_ = true;
    resentAt_ = now;
    x_ = 2;
  }
  Duration backoff() const { return 1us * beta_ * (int64_t{1} << x_); }
  static Duration positive(Duration d) { return std::max(d, Duration(0)); }

  Timestamp32 resentAt_;
  uint32_t beta_ = 0;  // us; 0: not drawn
  uint8_t x_ = 0;
  bool spoken_ : 1 = false;      // since the last new ACK or data
  bool recovering_ : 1 = false;  // in a recovery that was not stopped (f.resent > 0 in the paper)
};

/// Records the shim's latest interventions ("trials") in all flows and what became of them. Each
/// copy of a segment that the shim sent, or made the sender send, counts as spurious once when it
/// was not needed, however late the receiver's D-SACK for it comes. All copies of a segment
/// together count as useful once, when the data was acknowledged then and not every copy was
/// spurious. Each direction of a flow stores the number of its newest trial, and each trial that of
/// the one before it.
class InterventionLog {
 public:
  /// Number of the newest trial of one direction of a flow; 0: none.
  using Newest = uint32_t;
  /// Trials that are remembered for all flows (kKept), and that are examined for one direction
  /// (kLookedAt). Chosen: enough for each flow's kept tail (AckShimOptions::cachePerFlow), and for
  /// some seconds of thousands of losses.
  static constexpr uint32_t kKept = 4096;
  static constexpr size_t kLookedAt = 16;

  InterventionLog() : ring_(kKept) {}

  /// The shim sent duplicate ACKs about the segment that begins at `at` (`sent` false), or sent
  /// that segment again (`sent` true).
  void onFired(ShimCounters& counters, Newest& newest, Actuator actuator, Seq at, bool sent);
  /// The sender sent the segment `s` again.
  void onAgain(Newest newest, const TcpSegment& s);
  /// An ACK of the receiver arrived. `tooEarly`: less time has passed since the shim's last action
  /// than the path takes, so the ACK cannot be its result. True when it turns out, for the first
  /// time, that the shim should have waited with the newest trial. Findings about older trials are
  /// only counted.
  bool onAck(ShimCounters& counters, Newest newest, const TcpSegment& s, bool isNew, bool tooEarly);

 private:
  enum class Told : uint8_t {
    kNo,
    kWaiting,  ///< the sender was told, and has not resent yet
    kJudged,   ///< already counted as spurious; the sender has not resent yet
  };
  struct Trial {
    Seq at;
    Seq ts;  // timestamp of the sender's first copy
    Newest before = 0;
    Actuator actuator = Actuator{};
    Told told = Told::kNo;
    uint8_t copies = 0;    // copies for which no D-SACK came yet
    uint8_t foreseen = 0;  // those of `copies` that are already counted as spurious
    bool hasTs = false;
    bool answered = false;  // the data was acknowledged
    bool useful = false;    // is counted as useful
    bool wasted = false;    // the caller knows that the shim should have waited
  };

  /// The trials of one direction of a flow that are examined, newest first.
  struct Known {
    std::array<Trial*, kLookedAt> interventions;
    size_t count = 0;
    std::span<Trial* const> all() const& { return std::span(interventions).first(count); }
    std::span<Trial* const> all() const&& = delete;  // it would outlive the array
  };

  Trial* find(Newest n) { return n != 0 && next_ - n <= kKept ? &ring_[n % kKept] : nullptr; }
  Known known(Newest newest);
  static bool onDenied(ShimCounters& counters, Trial& trial);
  static bool onAnswered(ShimCounters& counters, const Known& known, Trial& trial, bool isOlder);

  std::vector<Trial> ring_;
  Newest next_ = 1;
};

}  // namespace braid
