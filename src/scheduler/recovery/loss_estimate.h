#pragma once

// Loss statistics of one path, from the fate of its packets: the overall rate and the most recent
// one (FUSO section III-B.1), a rate that forgets, and the length of loss bursts.

#include <algorithm>
#include <cstdint>

namespace braid {

/// Why a packet was lost, as far as the sender knows.
enum class LossCause : uint8_t {
  kPath,        ///< the path loses packets
  kCongestion,  ///< a queue was full
};

class LossEstimate {
 public:
  /// Packets after which recentRate() has forgotten 63 % of the past. Chosen: some seconds of a
  /// busy path.
  static constexpr double kMemory = 1000;
  /// Number of runs of losses after which burst() begins to forget.
  static constexpr double kRuns = 32;

  /// A packet that counts was sent: it is ack-eliciting, and its loss says something about the
  /// path.
  void onSent() { ++sent_; }
  void onAcked() { outcome(0); }
  /// Loss detection declared packet `pn` lost. Several are reported in the order of their numbers.
  /// `cause` kCongestion: neither recentRate() nor burst() counts it.
  void onLost(uint64_t pn, LossCause cause = LossCause::kPath) {
    ++lost_;
    atLoss_ = sent_;
    if (cause == LossCause::kCongestion) return;
    outcome(1);
    if (!anyRun_ || pn != lastLost_ + 1) {
      if (runs_ >= kRuns) runs_ /= 2, inRuns_ /= 2;
      ++runs_;
    }
    anyRun_ = true;
    lastLost_ = pn;
    ++inRuns_;
  }
  /// A packet that counted as lost, for this cause, has arrived.
  void onSpurious(LossCause cause = LossCause::kPath) {
    if (lost_ > 0) --lost_;
    if (cause == LossCause::kCongestion) return;
    recentLost_ = std::max(0.0, recentLost_ - 1);
    inRuns_ = std::max(runs_, inRuns_ - 1);
  }

  uint64_t sent() const { return sent_; }
  uint64_t lost() const { return lost_; }
  /// Packets sent since the last loss was noticed, the retransmission included, at least 1; 0:
  /// nothing was ever lost.
  uint64_t sinceLoss() const { return lost_ == 0 ? 0 : std::max<uint64_t>(1, sent_ - atLoss_); }
  /// Share of lost ones among about the last kMemory packets with a known fate; 0 before any.
  double recentRate() const { return recent_ > 0 ? recentLost_ / recent_ : 0; }
  /// How many packets recentRate() rests on: at most kMemory.
  double recentPackets() const { return recent_; }
  /// Mean number of packets lost in a row; 1 before any loss.
  double burst() const { return runs_ > 0 ? inRuns_ / runs_ : 1; }

 private:
  void outcome(double lost) {
    recent_ += 1 - recent_ / kMemory;
    recentLost_ += lost - recentLost_ / kMemory;
  }
  uint64_t sent_ = 0;
  uint64_t lost_ = 0;
  uint64_t atLoss_ = 0;  // sent_ when the last loss was noticed
  double recent_ = 0;
  double recentLost_ = 0;
  bool anyRun_ = false;
  uint64_t lastLost_ = 0;
  double runs_ = 0;
  double inRuns_ = 0;
};

}  // namespace braid
