#pragma once

#include <cstdint>

#include "base/time.h"

namespace braid::sim::tcp {

/// Congestion control: RFC 5681 with RFC 3465; RFC 9438; RFC 8312, which is what Linux still has; RFC 8257.
enum class Control : uint8_t { kNewReno, kCubic, kCubic8312, kDctcp };

/// What is sent beside the data before anything is known to be lost.
enum class Redundancy : uint8_t {
  kNone,
  kProactive,   ///< every segment twice, back to back (Flach et al., SIGCOMM 2013)
  kCorrective,  ///< "TCP Instant Recovery": an XOR of what a time bin sent; see corrective.h
};

/// How a TCP behaves. The defaults are those of a current stack: SACK, RACK-TLP, PRR, delayed ACKs, ten
/// segments at the start.
struct Options {
  Control control = Control::kNewReno;
  Redundancy redundancy = Redundancy::kNone;
  double correctiveBin = 0.25;  ///< kCorrective: the bin in round trips (CoFUSO section 6.2.1; FUSO: 0.5)

  // Negotiated: both sides must want it.
  bool sack = true;        ///< RFC 2018, with D-SACK (RFC 2883)
  bool timestamps = true;  ///< RFC 7323, ticks of 1 us; 12 bytes of each segment. No PAWS
  bool ecn = false;        ///< RFC 3168; with kDctcp the receiver echoes as RFC 8257 section 3.2 says
  /// SYNs, pure ACKs and retransmissions are ECN-capable too, as stacks with DCTCP and ns-2 send them
  /// (RFC 8257 section 3.6). With `ecn`.
  bool ecnEverywhere = false;

  // How losses are found and repaired. Without `sack` only three duplicate ACKs and the timer find any.
  bool rack = true;                 ///< by time (RFC 8985 section 6), in place of RFC 6675's counting
  bool rackKnowsHandshake = false;  ///< RACK.min_RTT begins with the handshake's round trip, as in Linux
  bool fack = false;  ///< without `rack`: all that lies three segments below the highest SACK (Linux to 4.14)
  bool earlyRetransmit = false;  ///< RFC 5827, without `rack`
  bool limitedTransmit = true;   ///< RFC 3042
  bool tlp = true;               ///< tail loss probes (RFC 8985 section 7); with `sack`
  bool prr = true;               ///< RFC 6937; without, the window is halved at once (RFC 6675)
  /// A mark brings the window down by PRR, too, as in Linux and ns-3, unless nothing is in flight; false: at once
  /// (RFC 3168). With `prr`.
  bool prrAfterMarks = true;

  /// The ACK that ends a fast recovery lets the window grow by all that it covers, as in ns-3 3.37; Linux and the
  /// RFCs have no growth for what arrived while the window came down.
  bool growAfterRecovery = false;
  /// An ACK in a fast recovery that does not end it says that its first segment is lost, with SACK, too: as in ns-3.
  bool partialAcks = false;
  /// A loss in a window of data that gave way to a mark takes no more of it with any control, DCTCP's included, as in
  /// ns-3; RFC 8257 section 3.5 and Linux halve for it.
  bool markAnswersLoss = false;

  // The window.
  uint32_t initialWindow = 10;  ///< segments (RFC 6928)
  uint32_t minimumWindow = 2;   ///< segments that a loss or mark leaves at least (RFC 5681 equation 4)
  uint32_t slowStartLimit = 2;  ///< segments that an ACK adds at most: L of RFC 3465; after a timeout it is 1
  bool idleRestart = true;  ///< back to the initial window after an RTO without sending (RFC 5681 sec. 4.1)

  // Timers.
  Duration initialRto = 1s;  ///< of SYN and SYN-ACK (RFC 6298)
  Duration minRto = 200ms;
  Duration maxRto = 60s;
  /// minRto bounds the variation's part and not the sum: SRTT + max(4 RTTVAR, minRto), as Linux does.
  bool minRtoAboveSrtt = false;
  /// What a receiver may wait with an ACK: a probe for a single segment comes so much later (TLP.max_ack_delay).
  Duration maxAckDelay = 200ms;
  Duration minProbe{};  ///< least time to a probe (10 ms in the TLP draft of 2013)

  // The receiver.
  bool delayedAcks = true;
  Duration ackDelay = 40ms;     ///< least delay of Linux; RFC 9293 section 3.8.6.3 allows 500 ms
  uint32_t ackEvery = 2;        ///< segments in order that are acknowledged at once
  uint64_t window = 64u << 20;  ///< bytes that it takes beyond what it acknowledged; at most 2^30

  // The packets.
  uint16_t mss = 1460;  ///< announced; timestamps take 12 bytes of it
  bool v6 = false;
  bool content = true;  ///< payloads are filled and checked; false: zeros, which is faster
};

}  // namespace braid::sim::tcp
