#pragma once

#include "scheduler/rate/loss_ceiling.h"
#include "scheduler/rate/wan_burst.h"
#include "scheduler/rate/wan_competition.h"
#include "scheduler/rate/wan_foreign_queue.h"
#include "scheduler/rate/wan_look.h"
#include "scheduler/rate/wan_model.h"
#include "scheduler/rate/wan_start.h"

namespace braid {

/// Rate control for paths that do not mark and that lose at random: WiFi, 4G, the Internet. Ours, put
/// together from published pieces, each in a file of its own:
/// - The start doubles the window each round trip until the path is full (wan_start.h). After persistent congestion it
///   begins again from the least window (RFC 9002 section 7.6.2), unless `wan` competes. What left before says nothing
///   then, and all but a policer's ceiling is forgotten.
/// - The model keeps a small queue at the bottleneck, by FAST's equation (wan_model.h, wan_target.h). Loss
///   without a queue is not congestion.
/// - A queue that does not go although this window gives way is somebody else's (wan_foreign_queue.h): then
///   `wan` competes as CUBIC until the other has gone (wan_competition.h). The model begins again then.
/// - Loss that a higher rate causes where there is no queue is a policer, whose rate bounds the pacing
///   (loss_ceiling.h); not while competing.
/// - Into an idle path goes at once what it has borne (wan_burst.h).
/// - To see the RTT without a queue, and whose queue there is, it looks (wan_look.h).
///
/// What is to be done is judged at the end of each round (wan_round.h) by what the path has shown
/// (wan_path.h). This class holds the window of the start and the model, and switches between the modes.
class Wan final : public Controller {
 public:
  /// Pacing in windows per smoothed RTT, in the start and in the model. Ours.
  static constexpr double kStartPacing = 2;
  static constexpr double kPacing = 1.2;
  /// The window was used in a round when so much of it was in flight on average; half of that in the start,
  /// where it doubles within the round. Ours.
  static constexpr double kUsed = 0.8;

  /// `datagram`: bytes of a full one; `initial`: datagrams of the initial window.
  explicit Wan(uint64_t datagram, uint64_t initial = kInitialWindow);

  /// So many subflows, this one included, share its bottleneck and are together what one is elsewhere: they
  /// take the target of one with their rate, each its part of what that keeps queued, and that part of
  /// CUBIC's share. At least 1.
  void setSharing(size_t subflows);

  void onSent(uint64_t bytes, uint64_t inFlight, Time now) override;
  void onAck(const AckSample& ack) override;
  void onLoss(const LossSample& loss) override;
  void onMarks(uint64_t marks, Time largestSentAt, Time now) override;
  void onSpuriousLoss(Time sentAt, Time now) override;
  void reset(Time now) override;
  uint64_t window() const override;
  double pacingRate() const override;
  double burst() const override;

  enum class Mode : uint8_t { kStart, kModel, kCompete };
  Mode mode() const { return mode_; }
  /// RTT without a queue; 0 before the first sample.
  Duration baseRtt() const { return path_.base(); }
  /// Standing queue aimed at now.
  Duration target() const { return target_.at(path_.rate()); }

 private:
  double windowBytes() const { return static_cast<double>(window()); }
  void restart(Time now);
  void judgeRound(const AckSample& ack);
  void modelRound(bool used, Time now);
  void judgeQueue();
  void competeRound();
  void enterModel();
  void enterCompetition();
  void look();

  uint64_t datagram_;
  uint64_t initial_;
  Mode mode_ = Mode::kStart;
  Time startedAt_;  // of the start, when it was not the first: what left before says nothing
  double window_;   // bytes, of the start and the model
  WanRounds rounds_;
  WanPath path_;
  WanTarget target_;
  WanStart start_;
  WanModel model_;
  WanBurst burst_;
  WanLook look_;
  WanForeignQueue foreign_;
  WanCompetition competition_;
  LossCeiling ceiling_;
};

}  // namespace braid
