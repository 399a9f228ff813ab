#pragma once

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
  Duration delay{};             ///< for which the peer held this ACK back, in `rtt`
  Duration srtt{};              ///< smoothed RTT
  Duration minRtt{};            ///< windowed minimum RTT
  uint64_t inFlight = 0;        ///< bytes in flight before this ACK
  uint64_t delivered = 0;       ///< bytes acknowledged on this subflow so far, this ACK included
  uint64_t priorDelivered = 0;  ///< `delivered` when the largest newly acknowledged packet was sent
  double deliveryRate = 0;      ///< bytes per second over the acked packet's flight; 0 when unknown
  bool appLimited = false;      ///< that rate was limited by the sender having nothing to send
  uint64_t marks = 0;           ///< CE-marked packets that it newly counts; onMarks() follows
};

/// Packets that loss detection just declared lost on one subflow.
struct LossSample {
  Time now;
  uint64_t bytes = 0;
  uint64_t packets = 0;     ///< 0: not counted, then its effect is not undone by onSpuriousLoss()
  Time largestSentAt;       ///< when the largest lost packet was sent
  uint64_t inFlight = 0;    ///< bytes in flight before the loss
  bool persistent = false;  ///< persistent congestion (RFC 9002 section 7.6)
};

/// Rate control of one subflow: how many bytes may be in flight and how fast they leave. One algorithm a
/// file.
class Controller {
 public:
  virtual ~Controller() = default;
  virtual void onSent(uint64_t bytes, uint64_t inFlight, Time now) = 0;
  virtual void onAck(const AckSample& ack) = 0;
  virtual void onLoss(const LossSample& loss) = 0;
  /// The peer counted `marks` more CE-marked packets; `largestSentAt` is of the largest packet that ACK
  /// covered.
  virtual void onMarks(uint64_t marks, Time largestSentAt, Time now) = 0;
  /// A loss reported before turned out to be none (the packet was acknowledged late).
  virtual void onSpuriousLoss(Time sentAt, Time now) = 0;
  /// The subflow came into use, or fell silent or was closed. New ones are not in use.
  virtual void setUsable(bool, Time) {}
  /// Since when it is to carry no new data, because the controllers of the session together decided so;
  /// kNever: it is active.
  virtual Time suppressedAt() const { return kNever; }
  /// The path changed (new address, or taken back after failure): forget what was learnt.
  virtual void reset(Time now) = 0;
  /// Congestion window in bytes.
  virtual uint64_t window() const = 0;
  /// Bytes per second at which to space packets; infinity before an RTT is known.
  virtual double pacingRate() const = 0;
  /// Bytes that may leave at once into an idle path, where the controller knows that it bears more than the
  /// pacer lets go anyway.
  virtual double burst() const { return 0; }
};

/// Datagrams (RFC 9002 section 7.2).
inline constexpr uint64_t kInitialWindow = 10;

class ControllerGroup;

/// AMP's parameters (sections 4.2, 5 and 5.1).
struct AmpOptions {
  uint64_t gamma = 2;          ///< rounds with all subflows at the minimum window before suppression
  uint64_t tau = 8;            ///< rounds without marks before release
  double beta = 4;             ///< a mark takes 1/beta of the window; at least 2, see ampBeta()
  uint64_t minimumWindow = 2;  ///< cwnd_min, datagrams
};

/// The names that makeController() knows.
inline constexpr std::string_view kControllerNames[] = {"amp",   "auto", "bbr",     "cubic", "dcm",
                                                        "dctcp", "lia",  "newreno", "wan",   "xmp"};

/// What a controller is made from.
struct ControllerOptions {
  uint64_t datagram = 1500;                 ///< bytes of a full datagram
  uint64_t initialWindow = kInitialWindow;  ///< datagrams, at least 2
  AmpOptions amp{};
  double liaBeta = 2;  ///< LIA: a mark takes 1/liaBeta of the window; AMP section 4.1 examines 4
};

/// Makes a controller by its configuration name (kControllerNames); nullptr for an unknown name. Those that
/// couple subflows ("amp", "auto", "dcm", "lia", "wan", "xmp") share `group`, which must outlive them;
/// without one they are alone. The others ignore it.
std::unique_ptr<Controller> makeController(std::string_view name, const ControllerOptions& options,
                                           ControllerGroup* group = nullptr);
/// A controller that is alone, with default options.
std::unique_ptr<Controller> makeController(std::string_view name, uint64_t datagram,
                                           uint64_t initialWindow = kInitialWindow);

}  // namespace braid
