#pragma once

#include <cstdint>

#include "base/time.h"

namespace braid::sim::tcp {

/// Congestion control, in this order: RFC 5681 with RFC 3465; RFC 9438; RFC 8312, which Linux still
/// has; RFC 8257.
enum class Control : uint8_t { kNewReno, kCubic, kCubic8312, kDctcp };

/// The redundancy that is sent with the data before any loss is known.
enum class Redundancy : uint8_t {
  kNone,
  kProactive,   ///< every segment twice, back to back (Flach et al., SIGCOMM 2013)
  kCorrective,  ///< "TCP Instant Recovery": an XOR of the data sent in a time bin; see corrective.h
};

/// How one side's TCP behaves. The defaults are those of a current stack: SACK, RACK-TLP, PRR,
/// delayed ACKs, an initial window of ten segments.
struct Options {
  Control control = Control::kNewReno;
  Redundancy redundancy = Redundancy::kNone;
  double correctiveBin =
      0.25;  ///< kCorrective: the bin in round trips (CoFUSO section 6.2.1; FUSO: 0.5)

  // Negotiated: both sides must want it.
  bool sack = true;        ///< RFC 2018, with D-SACK (RFC 2883)
  bool timestamps = true;  ///< RFC 7323 without PAWS; ticks of 1 us; take 12 bytes of each segment
  bool ecn = false;  ///< RFC 3168; with kDctcp the receiver echoes as RFC 8257 section 3.2 says
  /// SYNs, pure ACKs and retransmissions are also ECN-capable, as in stacks with DCTCP and in ns-2
  /// (RFC 8257 section 3.6). Only with `ecn`.
  bool ecnEverywhere = false;

  // How losses are found and repaired. Without `sack`, only three duplicate ACKs and the
  // retransmission timer find losses.
  bool rack = true;  ///< find losses by time (RFC 8985 section 6) instead of by counting (RFC 6675)
  bool rackKnowsHandshake =
      false;  ///< RACK.min_RTT begins with the handshake's round trip, as in Linux
  /// Without `rack`: all segments three or more below the highest SACKed one are lost (Linux up to
  /// 4.14)
  bool fack = false;
  bool earlyRetransmit = false;  ///< RFC 5827, without `rack`
  bool limitedTransmit = true;   ///< RFC 3042
  bool tlp = true;               ///< tail loss probes (RFC 8985 section 7); with `sack`
  bool prr = true;               ///< RFC 6937; false: the window is halved at once (RFC 6675)
  /// A mark also reduces the window gradually by PRR, unless nothing is in flight, as in Linux and
  /// ns-3. False: it reduces the window at once (RFC 3168). Only with `prr`.
  bool prrAfterMarks = true;

  /// The ACK that ends a fast recovery lets the window grow by all the data that it covers, as in
  /// ns-3 3.37. In Linux and the RFCs, data that arrived during the reduction causes no growth.
  bool growAfterRecovery = false;
  /// A partial ACK in a fast recovery marks the first outstanding segment as lost, with SACK as
  /// well as without, as in ns-3.
  bool partialAcks = false;
  /// A loss in a window of data that was already reduced for a mark does not reduce it again, with
  /// any congestion control including DCTCP, as in ns-3. RFC 8257 section 3.5 and Linux halve the
  /// window for it.
  bool markAnswersLoss = false;

  // The window.
  uint32_t initialWindow = 10;  ///< segments (RFC 6928)
  uint32_t minimumWindow =
      2;  ///< segments that a loss or mark leaves at least (RFC 5681 equation 4)
  uint32_t slowStartLimit =
      2;  ///< most segments by which an ACK grows the window: L of RFC 3465; after a timeout 1
  bool idleRestart =
      true;  ///< back to the initial window after an RTO without sending (RFC 5681 sec. 4.1)

  // Timers.
  Duration initialRto = 1s;  ///< for SYN and SYN-ACK (RFC 6298)
  Duration minRto = 200ms;
  Duration maxRto = 60s;
  /// minRto bounds the variation and not the sum: the RTO is SRTT + max(4 RTTVAR, minRto), as in
  /// Linux.
  bool minRtoAboveSrtt = false;
  /// How long a receiver may delay an ACK. The tail loss probe for a single segment waits this much
  /// longer (TLP.max_ack_delay).
  Duration maxAckDelay = 200ms;
  Duration minProbe{};  ///< shortest time to a tail loss probe (10 ms in the TLP draft of 2013)

  // The receiver.
  bool delayedAcks = true;
  Duration ackDelay = 40ms;     ///< Linux's shortest delay; RFC 9293 section 3.8.6.3 allows 500 ms
  uint32_t ackEvery = 2;        ///< an ACK is sent at once after this many in-order segments
  uint64_t window = 64u << 20;  ///< receive window, bytes; at most 2^30

  // The packets.
  uint16_t mss = 1460;  ///< the MSS announced; timestamps take 12 bytes of it
  bool v6 = false;
  bool content = true;  ///< payloads are filled and checked; false: zeros, which is faster
};

}  // namespace braid::sim::tcp
