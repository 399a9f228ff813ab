#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ackshim/counters.h"
#include "ackshim/segment.h"

namespace braid {

/// What became of the last times the shim acted, of all flows. Each copy that it sent, or made the sender
/// send, counts as spurious once when it went for nothing, however late the receiver's D-SACK for it comes;
/// all copies of a segment count as useful, once, when the data was acknowledged then and not every copy was
/// spurious. One direction of a flow names its newest trial, which names the one before.
class Trials {
 public:
  /// The newest trial of one direction of a flow. 0: none.
  using Newest = uint32_t;
  /// Trials that are remembered of all flows, and that are looked at of one direction. Ours: each flow's tail
  /// that is kept (AckShimOptions::cachePerFlow), and some seconds of thousands of losses.
  static constexpr uint32_t kKept = 4096;
  static constexpr size_t kLookedAt = 16;

  Trials() : ring_(kKept) {}

  /// The shim spoke about (`sent` false), or sent again, what begins at `at`.
  void onFired(ShimCounters& counters, Newest& newest, Actuator actuator, Seq at, bool sent);
  /// The sender sent it again.
  void onAgain(Newest newest, const TcpSegment& s);
  /// An ACK of the receiver. `tooEarly`: less time has passed since the shim acted last than the way takes.
  /// True when it turns out, for the first time, that the shim should have waited with the newest trial: what
  /// is learned of older ones is only counted.
  bool onAck(ShimCounters& counters, Newest newest, const TcpSegment& s, bool isNew, bool tooEarly);

 private:
  enum class Told : uint8_t {
    kNo,
    kWaiting,  ///< the sender was told, and has not sent again yet
    kJudged,   ///< counts as spurious already; the sender has not sent again yet
  };
  struct Trial {
    Seq at;
    Seq ts;  // of the sender's first copy
    Newest before = 0;
    Actuator actuator = Actuator{};
    Told told = Told::kNo;
    uint8_t copies = 0;    // that no D-SACK was for
    uint8_t foreseen = 0;  // of these: count as spurious already
    bool hasTs = false;
    bool answered = false;  // the data was acknowledged
    bool useful = false;    // counts as that
    bool wasted = false;    // the caller knows that the shim should have waited
  };

  /// Those that are looked at of one direction of a flow, the newest one first.
  struct Known {
    std::array<Trial*, kLookedAt> trials;
    size_t count = 0;
    std::span<Trial* const> all() const& { return std::span(trials).first(count); }
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
