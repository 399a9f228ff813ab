#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/field.h"
#include "base/time.h"
#include "scheduler/path/path_tiers.h"
#include "scheduler/rate/controller.h"
#include "scheduler/recovery/recovery.h"
#include "tunnel/subflow/route.h"

namespace braid {

/// Settings of subflows. Ranges are checked by the configuration reader.
struct SubflowOptions {
  std::string controller = "auto";
  AmpOptions amp{};
  double liaBeta = 2;         ///< see ControllerOptions; cannot be configured
  size_t initialWindow = 10;  ///< datagrams, at least 2
  size_t outerMtu = 0;        ///< IP packet size on uplinks; 0: probe for it (RFC 8899)
  size_t maxOuterMtu = 1500;  ///< upper end of the probing
  bool tellNames = true;      ///< tell the peer the names of the uplinks
  /// Least variance term of the PTO, for comparison with TCP: it acts like TCP's minimum RTO (RFC
  /// 6298 section 2.4; Linux: 200 ms). 0: the PTO of RFC 9002.
  Duration minRto{};
  /// Options of all recovery policies, with the weights of the loss metrics.
  RecoveryOptions recoveryOptions{};
};

/// Counters of what a subflow sends.
struct SendCounts {
  uint64_t sentPackets = 0, sentBytes = 0;
  uint64_t lostPackets = 0, spuriousLosses = 0, retransmittedBytes = 0;
  uint64_t timeouts = 0, blips = 0;
};
template <>
inline constexpr auto kFieldsOf<SendCounts> = field::table<SendCounts>(
    field::counter("sent_packets", FieldUnit::kPackets, "datagrams sent", &SendCounts::sentPackets),
    field::counter("sent_bytes", FieldUnit::kBytes, "UDP payload sent", &SendCounts::sentBytes),
    field::counter("lost_packets", FieldUnit::kPackets, "lost on the path: datagrams declared lost",
                   &SendCounts::lostPackets),
    field::counter("spurious_losses", FieldUnit::kPackets,
                   "datagrams acknowledged after they were declared lost",
                   &SendCounts::spuriousLosses),
    field::counter("retransmitted_bytes", FieldUnit::kBytes, "inner packets sent again here",
                   &SendCounts::retransmittedBytes),
    field::counter(
        "timeouts", FieldUnit::kNone,
        "probe timeouts (RFC 9002 section 6.2) with data that nothing else had delivered",
        &SendCounts::timeouts),
    field::counter("blips", FieldUnit::kNone,
                   "silences of less than 100 ms that made other paths carry its data; no event "
                   "tells of them",
                   &SendCounts::blips));

/// Counters of what a subflow receives.
struct ReceiveCounts {
  uint64_t receivedPackets = 0, receivedBytes = 0;
};
template <>
inline constexpr auto kFieldsOf<ReceiveCounts> = field::table<ReceiveCounts>(
    field::counter("received_packets", FieldUnit::kPackets, "datagrams received",
                   &ReceiveCounts::receivedPackets),
    field::counter("received_bytes", FieldUnit::kBytes, "UDP payload received",
                   &ReceiveCounts::receivedBytes));

/// What protection (duplicates and parities) cost a subflow, and what became of the subflow's own
/// protected packets.
struct ProtectionCounts {
  uint64_t copies = 0, parities = 0, protectionBytes = 0;
  uint64_t protectedPackets = 0, recovered = 0, decoded = 0, useless = 0;
};
template <>
inline constexpr auto kFieldsOf<ProtectionCounts> = field::table<ProtectionCounts>(
    field::counter("copies", FieldUnit::kPackets, "copies sent here", &ProtectionCounts::copies),
    field::counter("parities", FieldUnit::kPackets, "parities sent here",
                   &ProtectionCounts::parities),
    field::counter("protection_bytes", FieldUnit::kBytes, "copies and parities sent here, in bytes",
                   &ProtectionCounts::protectionBytes),
    field::counter(
        "protected_packets", FieldUnit::kPackets,
        "packets sent here that a copy or block protected before they were known to be lost",
        &ProtectionCounts::protectedPackets),
    field::counter(
        "recovered_packets", FieldUnit::kPackets,
        "of the packets lost here, those repaired before the sender knew: a copy or parity "
        "delivered their data",
        &ProtectionCounts::recovered),
    field::counter("decoded_packets", FieldUnit::kPackets,
                   "protected packets that a parity restored, as the peer says",
                   &ProtectionCounts::decoded),
    field::counter("useless_packets", FieldUnit::kPackets,
                   "protected packets delivered here all the same", &ProtectionCounts::useless));

/// Status of one subflow, shown to the operator.
struct SubflowStatus : SendCounts, ReceiveCounts, ProtectionCounts {
  unsigned id = 0;
  std::string uplink;
  std::string path;
  std::string local, remote, observed;
  Route route;          ///< where datagrams are sent, as the driver knows it
  bool proven = false;  ///< the peer has answered there
  std::string state;
  std::string deadWay;
  Duration down{};
  Duration srtt{}, rttvar{}, minRtt{};
  Duration queueDelay{};
  std::optional<Duration> queueOut, queueIn;
  uint64_t window = 0, inFlight = 0;
  double pacingRate = 0, deliveryRate = 0;
  uint64_t deliveredBytes = 0;
  uint64_t ceMarks = 0;
  std::string ecn;
  uint64_t mtu = 0;
  PathPreference preference{};
  bool resting = false, suppressed = false;
  double lossRate = 0, lossMetric = 0, burst = 1;
};
template <>
inline constexpr auto kFieldsOf<SubflowStatus> = field::table<SubflowStatus>(
    field::base<SendCounts>(), field::base<ReceiveCounts>(), field::base<ProtectionCounts>(),
    field::text("id", "number of the subflow", &SubflowStatus::id),
    field::text("uplink", "name of its uplink; empty at the side that listens",
                &SubflowStatus::uplink),
    field::text("path",
                "name of its path: that of its uplink, as the side that began it calls it; where "
                "the peer tells none, `remote`",
                &SubflowStatus::path),
    field::text("local", "own address and port", &SubflowStatus::local),
    field::text("remote", "the peer's address and port", &SubflowStatus::remote),
    field::text("public_address",
                "own address and port as the peer saw them when the path came into use or moved, "
                "behind NAT; empty: the peer has not told",
                &SubflowStatus::observed),
    field::unlisted(&SubflowStatus::route), field::unlisted(&SubflowStatus::proven),
    field::text("state", "`validating`, `active`, `suspect`, `failed`, `closed`",
                &SubflowStatus::state),
    field::text("dead_direction",
                "which direction of a silent path is dead while the other works: `out`, to the "
                "peer; `in`, from it",
                &SubflowStatus::deadWay),
    field::gauge("down_s", FieldUnit::kSeconds,
                 "how long the path has not worked: since it last answered, or lost its uplink; "
                 "0: it works",
                 &SubflowStatus::down),
    field::gauge("srtt_ms", FieldUnit::kMilliseconds, "smoothed RTT", &SubflowStatus::srtt),
    field::gauge("rttvar_ms", FieldUnit::kMilliseconds, "mean deviation of the RTT",
                 &SubflowStatus::rttvar),
    field::gauge("min_rtt_ms", FieldUnit::kMilliseconds, "least RTT of the last 10 s",
                 &SubflowStatus::minRtt),
    field::gauge(
        "queue_delay_ms", FieldUnit::kMilliseconds,
        "smoothed RTT less the least one: what packets wait for on the way; 0 without a sample",
        &SubflowStatus::queueDelay),
    field::gauge(
        "queue_out_ms", FieldUnit::kMilliseconds,
        "what packets wait for on the way to the peer, above the least of the last 10 s, by "
        "the times at which it received them; null: not known",
        &SubflowStatus::queueOut),
    field::gauge("queue_in_ms", FieldUnit::kMilliseconds,
                 "the same of the way back, by its ACKs; null: not known", &SubflowStatus::queueIn),
    field::gauge("window_bytes", FieldUnit::kBytes, "congestion window", &SubflowStatus::window),
    field::gauge("in_flight_bytes", FieldUnit::kBytes, "sent and neither acknowledged nor lost",
                 &SubflowStatus::inFlight),
    field::gauge("pacing_bytes_per_s", FieldUnit::kBytesPerSecond,
                 "what the pacer allows; null: no limit", &SubflowStatus::pacingRate),
    field::gauge("delivery_bytes_per_s", FieldUnit::kBytesPerSecond, "delivery rate last measured",
                 &SubflowStatus::deliveryRate),
    field::counter("delivered_bytes", FieldUnit::kBytes,
                   "UDP payload that asked for an acknowledgment and got it",
                   &SubflowStatus::deliveredBytes),
    field::tally("ce_marks", FieldUnit::kPackets,
                 "datagrams that routers marked (ECN), as the peer says", &SubflowStatus::ceMarks),
    field::text("ecn", "whether the path carries marks: `testing`, `unknown`, `capable`, `failed`",
                &SubflowStatus::ecn),
    field::gauge("mtu_bytes", FieldUnit::kBytes, "largest IP packet that the path carries",
                 &SubflowStatus::mtu),
    field::inlined(&SubflowStatus::preference),
    field::flag("resting", "carries no data for now: a better uplink is usable",
                &SubflowStatus::resting),
    field::flag("suppressed", "carries no data for now: AMP found its subflows at one bottleneck",
                &SubflowStatus::suppressed),
    field::gauge("loss_estimate", FieldUnit::kFraction, "L (CoFUSO section 4.2.4)",
                 &SubflowStatus::lossRate),
    field::gauge("loss_metric", FieldUnit::kFraction,
                 "C_l (FUSO section III-B.1); null: everything is lost",
                 &SubflowStatus::lossMetric),
    field::gauge("burst_packets", FieldUnit::kPackets, "mean number of packets lost in a row",
                 &SubflowStatus::burst));

}  // namespace braid
