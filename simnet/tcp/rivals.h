#pragma once

#include <span>
#include <string_view>

#include "simnet/tcp/options.h"

namespace braid::sim::tcp {

/// How losses are repaired, by the names that the papers use where they have one:
///   current    as stacks do today: RACK, TLP, PRR
///   linux      and RACK knows the handshake's round trip
///   rack       "linux" without tail probes
///   rfc6675    SACK counted, PRR (RFC 6937), and neither RACK nor tail probes
///   ns-3       and what ns-3 3.37 does beside that: growAfterRecovery, partialAcks, markAnswersLoss
///   tcp        FUSO's baseline (section VI-A): SACK, RFC 6675, Limited Transmit, Early Retransmit
///   tlp        and tail probes with FACK, as the stacks of 2013 had them
///   linux-3.18 and PRR
///   tcp-ir     "tcp" and an XOR of each time bin ("Corrective" in CoFUSO)
///   proactive  "tcp" and every segment twice
/// Throws std::invalid_argument for others. RepFlow is two connections, of which the first one counts.
Options recoveryOptions(std::string_view name);
std::span<const char* const> recoveryNames();

/// "newreno", "cubic", "cubic-8312", "dctcp"; throws std::invalid_argument for others.
Control controlOf(std::string_view name);
std::span<const char* const> controlNames();

}  // namespace braid::sim::tcp
