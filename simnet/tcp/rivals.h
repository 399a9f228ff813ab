#pragma once

#include <span>
#include <string_view>

#include "simnet/tcp/options.h"

namespace braid::sim::tcp {

/// The TCP options for a way of finding and repairing losses, by the name that the papers use where
/// they have one. Throws std::invalid_argument for other names.
/// - "current": as stacks do today: RACK, TLP, PRR.
/// - "linux": "current"; in addition RACK knows the handshake's round trip.
/// - "rack": "linux" without tail loss probes.
/// - "rfc6675": SACK counting and PRR (RFC 6937), without RACK and tail loss probes.
/// - "ns-3": "rfc6675" with the peculiarities of ns-3 3.37: growAfterRecovery, partialAcks,
///   markAnswersLoss.
/// - "tcp": FUSO's baseline (section VI-A): SACK, RFC 6675, Limited Transmit, Early Retransmit.
/// - "tlp": "tcp" with tail loss probes and FACK, as the stacks of 2013 had them.
/// - "linux-3.18": "tlp" with PRR.
/// - "tcp-ir": "tcp" with an XOR of each time bin ("Corrective" in CoFUSO).
/// - "proactive": "tcp" with every segment sent twice.
/// RepFlow is not here: it is two connections, of which the one that finishes first counts.
Options recoveryOptions(std::string_view name);
std::span<const char* const> recoveryNames();

/// The congestion control by name: "newreno", "cubic", "cubic-8312" or "dctcp". Throws
/// std::invalid_argument for other names.
Control controlOf(std::string_view name);
std::span<const char* const> controlNames();

}  // namespace braid::sim::tcp
