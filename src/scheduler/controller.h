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
  Duration srtt{};              ///< smoothed RTT
  Duration minRtt{};            ///< windowed minimum RTT
  uint64_t inFlight = 0;        ///< bytes in flight before this ACK
  uint64_t delivered = 0;       ///< bytes acknowledged on this subflow so far, this ACK included
  uint64_t priorDelivered = 0;  ///< `delivered` when the largest newly acknowledged packet was sent
  double deliveryRate = 0;      ///< bytes per second over the acked packet's flight; 0 when unknown
  bool appLimited = false;      ///< that rate was limited by the sender having nothing to send
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
  /// The path changed (new address, or taken back after failure): forget what was learnt.
  virtual void reset(Time now) = 0;
  /// Congestion window in bytes.
  virtual uint64_t window() const = 0;
  /// Bytes per second at which to space packets; infinity before an RTT is known.
  virtual double pacingRate() const = 0;
};

/// Datagrams (RFC 9002 section 7.2).
inline constexpr uint64_t kInitialWindow = 10;

/// Makes a controller by its configuration name ("newreno", "bbr"); nullptr for an unknown name. `datagram`
/// is the size of a full datagram in bytes, `initialWindow` the window to begin with, in datagrams.
std::unique_ptr<Controller> makeController(std::string_view name, uint64_t datagram,
                                           uint64_t initialWindow = kInitialWindow);

}  // namespace braid
