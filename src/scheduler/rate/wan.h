#pragma once

#include "scheduler/rate/controller.h"
#include "scheduler/rate/controller_group.h"
#include "scheduler/rate/wan_detectors.h"
#include "scheduler/rate/wan_model.h"

namespace braid {

/// How much `wan` may send at once into an idle path. The model's pacing spreads a window over most
/// of a round trip, because a full window in flight must not queue. A response that the path can
/// take at once need not wait for that. A burst may be twice as large as one that the path has
/// already taken: each burst that came through without a queue doubles the next one. A burst that
/// did not halves the next one, and bursts then do not grow for a while (kPatience).
///
/// RFC 9002 section 7.7 allows bursts where the sender knows that the path can take them.
class WanBurst {
 public:
  /// A burst was too large when the share of it that was lost exceeds the usual loss by more than
  /// kLossy.
  static constexpr double kLossy = 1.0 / 8;
  /// The usual loss is that of bursts that may always be sent at once, over about the last
  /// kLossMemory bytes of them.
  static constexpr double kLossMemory = 1e6;
  /// After a burst that was too large, bursts do not grow for kPatience. Each further one doubles
  /// that time, up to kMostPatience. A burst of that size that comes through resets it to
  /// kPatience.
  static constexpr Duration kPatience = 10s;
  static constexpr Duration kMostPatience = 320s;

  /// `least`: bytes that may always be sent at once (RFC 9002 section 7.2); a burst of that size
  /// never counts as too large.
  explicit WanBurst(uint64_t least) : least_(static_cast<double>(least)), size_(least_) {}

  /// A burst begins: something is sent while nothing is in flight. The burst before it is judged
  /// now. `target`: the standing queue that `wan` aims at.
  void begin(Duration target, Time now);
  /// `base`: the RTT without a queue.
  void onAck(const AckSample& ack, Duration base);
  void onLoss(const LossSample& loss);
  /// A round has ended. The second one after begin() ends the burst and judges it: the fate of all
  /// that was sent in its first round trip is known by then, even if the sender does not pause.
  void onRound(Duration target, Time now);

  /// Bytes that may be sent at once. 0 from the first ACK of the burst on: the path is not idle
  /// then.
  double size() const { return isFresh_ ? size_ : 0; }

 private:
  /// What became of the bytes that a burst sent at once.
  struct Seen {
    double acked = 0;   // bytes
    double lost = 0;    // bytes
    Duration queues{};  // sum over the RTT samples: time above the base RTT
    int samples = 0;
    bool marked = false;

    double sent() const { return acked + lost; }
  };
  bool isWatched() const { return isRunning_ && seen_.sent() < size_; }
  void judge(Duration target, Time now);
  bool isClean(Duration target) const;
  double usualLoss() const;

  double least_;
  double size_;
  double usualSent_ = 0, usualLost_ = 0;  // bytes
  Seen seen_;
  bool isFresh_ = false;    // the burst has begun, and none of it is acknowledged
  bool isRunning_ = false;  // the burst has begun and is not yet judged
  int rounds_ = 0;          // rounds that ended since it began
  double tooLarge_ = 0;     // bytes of the last burst that was too large
  Time mayGrow_;            // bursts do not grow before
  Duration patience_ = kPatience;
};

/// Congestion control for paths that do not mark and that lose at random: WiFi, 4G, the Internet.
/// The algorithm is put together from published pieces:
/// - The start doubles the window each round trip until the path is full (WanStart). After
///   persistent congestion the start begins again from the smallest window (RFC 9002 section
///   7.6.2), unless `wan` competes. Everything learned is then forgotten, except a policer's
///   ceiling, and ACKs and losses of packets sent before are ignored.
/// - The model keeps a small queue at the bottleneck, by FAST's equation (FastWindow, WanTarget).
///   Loss without a queue does not count as congestion.
/// - A queue that stays although this window gives way belongs to another sender
///   (CompetitionDetector). `wan` then competes as CUBIC until the other sender has gone
///   (WanCompetition). After that the model begins again.
/// - Loss that a higher rate causes without a queue shows a policer. The policer's rate bounds the
///   pacing, except while competing (PolicerDetector).
/// - A burst that the path has taken before is sent at once into an idle path (WanBurst).
/// - Probes lower the window for a moment, to see the RTT without a queue and whose queue there is
///   (RttProbe; in names of functions a probe is a "look").
///
/// Decisions are made at the end of each round (WanRounds), by what the path has shown (PathModel).
/// This class holds the window of the start and the model, and switches between the modes.
class Wan final : public Controller {
 public:
  /// Pacing rate in windows per smoothed RTT, in the start and in the model.
  static constexpr double kStartPacing = 2;
  static constexpr double kPacing = 1.2;
  /// A round used its window when on average at least the fraction kUsed of it was in flight. In
  /// the start half of kUsed is enough, because the window doubles within the round.
  static constexpr double kUsed = 0.8;

  /// `datagram`: bytes of a full one; `initial`: datagrams of the initial window.
  explicit Wan(uint64_t datagram, uint64_t initial = kInitialWindow);

  /// Says that `subflows` subflows, at least 1 and this one included, share its bottleneck.
  /// Together they then take what one subflow would: each aims at the target of a single subflow
  /// with `subflows` times its rate, queues its part of that, and competes with 1/`subflows` of
  /// CUBIC's share.
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
  /// Standing queue that the model aims at now.
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
  Time startedAt_;  // when the start began again; what was sent before is ignored
  double window_;   // bytes, in the start and the model
  WanRounds rounds_;
  PathModel path_;
  WanTarget target_;
  WanStart start_;
  FastWindow model_;
  WanBurst burst_;
  RttProbe look_;
  CompetitionDetector foreign_;
  WanCompetition competition_;
  PolicerDetector ceiling_;
};

/// `wan` for one of several subflows: tells Wan how many subflows of the group share its
/// bottleneck.
class CoupledWan final : public Controller {
 public:
  /// `group` must outlive the controller; nullptr: it is alone.
  CoupledWan(uint64_t datagram, uint64_t initial, ControllerGroup* group);
  ~CoupledWan() override;
  CoupledWan(const CoupledWan&) = delete;
  CoupledWan& operator=(const CoupledWan&) = delete;

  void onSent(uint64_t bytes, uint64_t inFlight, Time now) override {
    wan_.onSent(bytes, inFlight, now);
  }
  void onAck(const AckSample& ack) override;
  void onLoss(const LossSample& loss) override { wan_.onLoss(loss); }
  void onMarks(uint64_t marks, Time largestSentAt, Time now) override {
    wan_.onMarks(marks, largestSentAt, now);
  }
  void onSpuriousLoss(Time sentAt, Time now) override { wan_.onSpuriousLoss(sentAt, now); }
  void setUsable(bool usable, Time now) override;
  void reset(Time now) override;
  uint64_t window() const override { return wan_.window(); }
  double pacingRate() const override { return wan_.pacingRate(); }
  double burst() const override { return wan_.burst(); }

 private:
  Wan wan_;
  ControllerGroup* group_;
  ControllerGroup::Member member_;
};

}  // namespace braid
