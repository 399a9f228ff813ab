#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "base/time.h"

namespace braid {

/// What an ACK frame newly acknowledged on one subflow.
struct AckSample {
  Time now;
  uint64_t bytes = 0;           ///< newly acknowledged, whole datagrams
  Time largestSentAt;           ///< when the largest newly acknowledged packet was sent
  Duration rtt{};               ///< latest RTT sample; 0 when this ACK gave none
  Duration delay{};             ///< how long the peer held this ACK back; part of `rtt`
  Duration srtt{};              ///< smoothed RTT
  Duration minRtt{};            ///< windowed minimum RTT
  uint64_t inFlight = 0;        ///< bytes in flight before this ACK
  uint64_t delivered = 0;       ///< all bytes acknowledged on this subflow, this ACK included
  uint64_t priorDelivered = 0;  ///< `delivered` when the largest newly acknowledged packet was sent
  double deliveryRate = 0;      ///< bytes per second while the packet was in flight; 0: unknown
  bool appLimited = false;      ///< `deliveryRate` was limited by a lack of data, not by the path
  uint64_t marks = 0;           ///< CE-marked packets that it newly reports; onMarks() follows
};

/// Packets that loss detection just declared lost on one subflow.
struct LossSample {
  Time now;
  uint64_t bytes = 0;
  uint64_t packets = 0;     ///< 0: not counted; onSpuriousLoss() then does not undo the reduction
  Time largestSentAt;       ///< when the largest lost packet was sent
  uint64_t inFlight = 0;    ///< bytes in flight before the loss
  bool persistent = false;  ///< persistent congestion (RFC 9002 section 7.6)
};

/// Congestion control of one subflow: how many bytes may be in flight, and how fast they leave. The
/// algorithms are listed at makeController().
class Controller {
 public:
  virtual ~Controller() = default;
  /// A packet of `bytes` was sent. `inFlight`: bytes in flight, this packet included.
  virtual void onSent(uint64_t bytes, uint64_t inFlight, Time now) = 0;
  virtual void onAck(const AckSample& ack) = 0;
  virtual void onLoss(const LossSample& loss) = 0;
  /// The peer reported `marks` more CE-marked packets. `largestSentAt`: when the largest packet
  /// that the ACK covers was sent.
  virtual void onMarks(uint64_t marks, Time largestSentAt, Time now) = 0;
  /// A packet that onLoss() reported lost was acknowledged after all. `sentAt`: when it was sent.
  virtual void onSpuriousLoss(Time sentAt, Time now) = 0;
  /// Says whether the subflow is in use; false: it is silent, closed, or carries no data in its
  /// role. A new subflow is not in use.
  virtual void setUsable(bool, Time) {}
  /// Since when the subflow is suppressed: the coupled controllers of the session decided that it
  /// carries no new data. kNever: it is active.
  virtual Time suppressedAt() const { return kNever; }
  /// Forgets what was learned: the path changed (new address, or in use again after a failure).
  virtual void reset(Time now) = 0;
  /// Congestion window in bytes.
  virtual uint64_t window() const = 0;
  /// Bytes per second at which to space packets; infinity before an RTT is known.
  virtual double pacingRate() const = 0;
  /// Bytes that may be sent at once into an idle path, when the controller knows that the path
  /// takes more than the pacer's own burst; else 0.
  virtual double burst() const { return 0; }
  /// The queue, in time, that the controller itself keeps at the bottleneck; 0: it wants none.
  virtual Duration ownQueue() const { return {}; }
};

/// Initial congestion window in datagrams (RFC 9002 section 7.2).
inline constexpr uint64_t kInitialWindow = 10;

class ControllerGroup;

/// AMP's parameters (sections 4.2, 5 and 5.1).
struct AmpOptions {
  uint64_t gamma = 2;  ///< rounds with all subflows at the minimum window before suppression
  uint64_t tau = 8;    ///< rounds without marks before a suppression ends
  double beta = 4;     ///< a mark reduces the window by 1/beta; at least 2, see ampBeta()
  uint64_t minimumWindow = 2;  ///< cwnd_min, datagrams
};

/// The names that makeController() knows.
inline constexpr std::string_view kControllerNames[] = {"amp",   "auto", "bbr",     "cubic", "dcm",
                                                        "dctcp", "lia",  "newreno", "wan",   "xmp"};

/// Parameters of makeController().
struct ControllerOptions {
  uint64_t datagram = 1500;                 ///< bytes of a full datagram
  uint64_t initialWindow = kInitialWindow;  ///< datagrams, at least 2
  AmpOptions amp{};
  double liaBeta = 2;  ///< LIA: a mark reduces the window by 1/liaBeta; AMP section 4.1 examines 4
};

/// Makes a controller by its configuration name (kControllerNames); nullptr for an unknown name.
/// Controllers that couple subflows ("amp", "auto", "dcm", "lia", "wan", "xmp") share `group`,
/// which must outlive them; with nullptr each is alone. The other controllers ignore `group`.
std::unique_ptr<Controller> makeController(std::string_view name, const ControllerOptions& options,
                                           ControllerGroup* group = nullptr);
/// Makes a controller that is not coupled with others, with default options.
std::unique_ptr<Controller> makeController(std::string_view name, uint64_t datagram,
                                           uint64_t initialWindow = kInitialWindow);

/// How a start that doubles its rate each round trip notices that it has filled the path.
class FullPipe {
 public:
  /// The path is full after kRounds rounds in a row in which the rate did not grow by the factor
  /// kGrowth (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.2.2).
  static constexpr double kGrowth = 1.25;
  static constexpr int kRounds = 3;
  /// Bounds of queueOf(). RFC 9406 section 4.3: a queue of clamp(minRtt / 8, 4 ms, 16 ms).
  static constexpr Duration kMinQueue = 4ms;
  static constexpr Duration kMaxQueue = 16ms;

  /// The queue, in time, that ends a start on a path with this RTT.
  static Duration queueOf(Duration minRtt) {
    return std::clamp<Duration>(minRtt / 8, kMinQueue, kMaxQueue);
  }

  /// A round has ended with this rate (bytes per second), which was not limited by a lack of data.
  void onRound(double rate) {
    if (rate < highest_ * kGrowth) {
      if (!isFull()) ++rounds_;
    } else {
      highest_ = rate;
      rounds_ = 0;
    }
  }
  bool isFull() const { return rounds_ >= kRounds; }
  /// The last round brought a rate that had grown by kGrowth.
  bool hasGrown() const { return rounds_ == 0; }

 private:
  double highest_ = 0;  // rate of the last round that grew by kGrowth
  int rounds_ = 0;      // rounds in a row without that growth; stops at kRounds
};

}  // namespace braid
