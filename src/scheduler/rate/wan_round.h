#pragma once

#include <algorithm>
#include <utility>

#include "scheduler/rate/controller.h"

namespace braid {

/// What the packets of one round trip of `wan` add up to.
struct WanRound {
  Time began{};
  double acked = 0;      ///< bytes
  double lost = 0;       ///< bytes
  uint64_t packets = 0;  ///< lost
  double inFlight = 0;   ///< bytes before each ACK, summed
  int acks = 0;
  Duration rtt = Duration::max();  ///< smallest sample
  Duration rtts{};                 ///< sum of the samples
  int samples = 0;
  bool marked = false;    ///< a CE mark was counted
  bool tooSmall = false;  ///< the round follows a pause, and the burst after the pause filled the window

  double sent() const { return lost + acked; }
  /// With at least one sample.
  Duration meanRtt() const { return rtts / samples; }
  /// On average at least this part of the window (bytes) was in flight.
  bool isUsed(double window, double part) const { return inFlight >= part * window * acks; }
};

/// Cuts a subflow's time into rounds: a round ends with the ACK of a packet that was sent after it began, if
/// the round has an RTT sample by then.
class WanRounds {
 public:
  const WanRound& current() const { return round_; }

  /// The round begins anew when nothing else is in flight: one that nothing was sent in is no round. Gives
  /// the time since the packet before in that case, else 0.
  Duration onSent(uint64_t bytes, uint64_t inFlight, Time now) {
    Time before = std::exchange(lastSent_, now);
    if (inFlight > bytes) return {};
    round_ = {};
    round_.began = now;
    return now - before;
  }
  /// The burst after a pause has filled the window, before anything of it was acknowledged.
  void onFull() { filled_ = true; }
  /// The sender goes on after a pause. The first ACK then ends a round of which next to nothing has arrived.
  void onPause() {
    resumed_ = true;
    filled_ = false;
  }

  void onAck(const AckSample& ack) {
    if (ack.rtt > Duration{}) {
      round_.rtt = std::min(round_.rtt, ack.rtt);
      round_.rtts += ack.rtt;
      ++round_.samples;
    }
    round_.acked += static_cast<double>(ack.bytes);
    round_.inFlight += static_cast<double>(ack.inFlight);
    ++round_.acks;
  }
  void onLoss(const LossSample& loss) {
    round_.lost += static_cast<double>(loss.bytes);
    round_.packets += loss.packets;
  }
  void onMarks(uint64_t marks) { round_.marked |= marks > 0; }

  bool isEndedBy(const AckSample& ack) const { return ack.priorDelivered >= end_ && round_.samples > 0; }
  /// The current round says something of the path.
  bool isTelling() const { return !resumed_; }
  /// The next round begins with this ACK.
  void begin(const AckSample& ack) {
    end_ = ack.delivered;
    round_ = {};
    round_.tooSmall = std::exchange(resumed_, false) && filled_;
    round_.began = ack.now;
  }

 private:
  WanRound round_;
  uint64_t end_ = 0;  // bytes delivered at which the round ends
  Time lastSent_;
  bool resumed_ = false;  // after a pause, and nothing has been acknowledged since
  bool filled_ = false;   // the window was full then
};

}  // namespace braid
