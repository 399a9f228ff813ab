#pragma once

// `wan`: the congestion control for paths that do not mark and that lose at random, such as WiFi,
// 4G and the Internet. `auto`, the default, uses it until a path marks (AutoController). Chosen by
// name it also meets marks: they end kStart and lower the window in the other modes.
//
// One object controls one subflow. makeController("wan") makes a CoupledWan, which holds a Wan; the
// subflow's SendAdmission owns it and makes all calls of Controller (controller.h), which also says
// what each of them means.
//
// Terms. A round is about one round trip: it ends with the first ACK of a packet that was sent
// after the round began (WanRounds). RTTs are without the time for which the peer held the ACK back
// (PathModel::rttOf()). The base RTT is the RTT without a queue. The queue of a round
// is its smallest RTT minus the base RTT; it is a time. The target is the queue that this sender
// wants to keep at the bottleneck so that the link never runs dry: 25 ms at low rates, down to 1 ms
// at high ones (WanTarget). A probe lowers the window for a moment, to see the base RTT, or whose
// queue there is (RttProbe). It begins in kModel when the queue stays high or the base RTT was not
// seen for long, in kCompete after a number of rounds.
//
// States (Mode), each with its window and its pacing rate:
//
//     kStart    the window doubles each round trip        2 windows per smoothed RTT
//     kModel    keeps the target's queue, by FAST's        1.2 windows per smoothed RTT
//               equation (FastWindow::step()); loss
//               does not lower it, a mark in a round does
//     kCompete  another sender keeps a queue: CUBIC's      as the `cubic` controller
//
//     kStart   -> kModel    the path is full (WanStart): a queue, a mark, a steady rate, or loss
//                           without a higher rate
//     kModel   -> kCompete  a queue that stays while this window is lowered in three probes
//                           belongs to another sender (CompetitionDetector)
//     kCompete -> kModel    a probe shows that the other sender has gone (WanCompetition)
//     kStart, kModel -> kStart, from the smallest window: persistent congestion (RFC 9002 section
//                           7.6.2). All that was learned is forgotten, except a policer's ceiling.
//                           kCompete leaves it to CUBIC
//     any -> kStart, from the initial window: reset(). All is forgotten
//
// Outside kCompete two more things are learned. Loss that a higher rate causes without a queue
// shows a policer; its rate then bounds the pacing there (PolicerDetector), and in kModel the
// window is large enough that only the pacing limits the rate. And a burst that the path has taken
// before may be sent at once into an idle path (WanBurst, kModel only).
//
// Invariants. Modes, probes and windows change at the end of a round only, except that the window
// grows with each ACK in kStart, that CUBIC grows and lowers it at
// any time in kCompete, for marks too, and that persistent congestion and reset() act at once.
// ACKs, losses and marks of packets that were sent before the last start are ignored.

#include "scheduler/rate/controller.h"
#include "scheduler/rate/controller_group.h"
#include "scheduler/rate/wan_burst.h"
#include "scheduler/rate/wan_detectors.h"
#include "scheduler/rate/wan_model.h"

namespace braid {

/// The algorithm for one subflow. It decides by what the path has shown in a round (PathModel).
class Wan final : public Controller {
 public:
  /// Pacing rate in windows per smoothed RTT, in kStart and in kModel.
  static constexpr double kStartPacing = 2;
  static constexpr double kPacing = 1.2;
  /// A round has used its window when on average at least the fraction kUsed of it was in flight.
  /// After other rounds FAST's equation may only lower the window (kModel), and the rate counts
  /// as a lower bound. In kStart half of kUsed is enough, because the window doubles within
  /// the round.
  static constexpr double kUsed = 0.8;

  /// `datagram`: bytes of a full one; `initial`: datagrams of the initial window, at least 2.
  explicit Wan(uint64_t datagram, uint64_t initial = kInitialWindow);

  /// Says that `subflows` subflows, at least 1 and this one included, share its bottleneck. May be
  /// called at any time; 1 until then. Together they then take what one subflow with all their rate
  /// would: each aims at the target for `subflows` times its own rate, keeps 1/`subflows` of that
  /// queue itself, and competes with 1/`subflows` of CUBIC's share.
  void setSharing(size_t subflows);

  // Controller
  void onSent(uint64_t bytes, uint64_t inFlight, Time now) override;
  void onAck(const AckSample& ack) override;
  void onLoss(const LossSample& loss) override;
  void onMarks(uint64_t marks, Time largestSentAt, Time now) override;
  /// Has an effect in kCompete only.
  void onSpuriousLoss(Time sentAt, Time now) override;
  void reset(Time now) override;
  /// At least FastWindow::kMinDatagrams datagrams, also while a probe lowers it.
  uint64_t window() const override;
  double pacingRate() const override;
  /// 0 outside kModel and while there is a policer's ceiling: a policer drops bursts, and their
  /// losses would say nothing about its rate.
  double burst() const override;
  /// target(); 0 in kCompete.
  Duration ownQueue() const override { return mode_ == Mode::kCompete ? Duration{} : target(); }

  enum class Mode : uint8_t { kStart, kModel, kCompete };
  Mode mode() const { return mode_; }
  /// RTT without a queue; 0 before the first sample.
  Duration baseRtt() const { return path_.base(); }
  /// The queue to aim at, all sharing subflows' together, at `subflows` times the path's present
  /// rate (setSharing()); WanTarget::kMost before a rate is known.
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
  void beginProbe();

  uint64_t datagram_;  // bytes
  uint64_t initial_;   // datagrams
  Mode mode_ = Mode::kStart;
  Time startedAt_;  // when the last start began
  double window_;   // bytes; in kStart and kModel
  WanRounds rounds_;
  PathModel path_;
  WanTarget target_;
  WanStart start_;
  FastWindow fastWindow_;
  WanBurst burst_;
  RttProbe probe_;
  CompetitionDetector competitors_;
  WanCompetition competition_;
  PolicerDetector policer_;
};

/// Wan for one of the subflows of a session: tells Wan at each ACK how many subflows share its
/// bottleneck, and reports to the group whether it is usable, and the RTTs by which sharing is
/// found out (ControllerGroup). Everything else goes to Wan.
class CoupledWan final : public Controller {
 public:
  /// `datagram`, `initial`: as for Wan. `group`: that of the session, which must outlive this
  /// object; nullptr: the subflow is taken to share its bottleneck with no other.
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
  Duration ownQueue() const override { return wan_.ownQueue(); }

 private:
  Wan wan_;
  ControllerGroup* group_;
  ControllerGroup::Member member_;
};

}  // namespace braid
