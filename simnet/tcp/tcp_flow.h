#pragma once

#include <cstdint>
#include <string>

#include "simnet/station.h"
#include "simnet/tcp/connection.h"
#include "simnet/timeline.h"

namespace braid::sim {

namespace tcp {
/// The options of a TCP that hides nothing of the network: NewReno (RFC 6582) without SACK,
/// timestamps and limited transmit, an ACK for each segment, timeouts of SRTT + 200 ms to 4 s.
Options plainOptions();
}  // namespace tcp

struct TcpOptions {
  uint64_t bytes = 1 << 20;   ///< to send
  uint64_t window = 4 << 20;  ///< of the receiver, bytes
  uint16_t mss = 1460;        ///< that both hosts announce; the gateways lower it
  bool v6 = false;
  bool ecn = false;     ///< ECN-capable data (RFC 3168)
  bool content = true;  ///< fills and checks the payload; false: zeros, which is faster
};

/// One transfer between two hosts that know nothing of the tunnel. The receiver checks every byte.
class TcpFlow final : public Host {
 public:
  /// Connects at once and sends from the host behind `from` to the host behind `to`: with
  /// tcp::plainOptions(), or with other options for both hosts.
  TcpFlow(Timeline& world, Station& from, Station& to, uint16_t port, const TcpOptions& options);
  TcpFlow(Timeline& world, Station& from, Station& to, uint16_t port, uint64_t bytes,
          const tcp::Options& options);

  /// Adds bytes to send. They are sent as soon as the window allows.
  void write(uint64_t bytes) { sender().send(bytes); }

  bool done() const { return received() >= sender().sender().written(); }
  uint64_t received() const { return receiver().received(); }
  /// Longest time without a new in-order byte, from the first SYN to the last byte.
  Duration longestStall() const { return receiver().receiver().stats().longestStall; }
  void restartStall() { connection_.server().receiver().restartStall(); }
  Time finishedAt() const { return receiver().receiver().stats().progressAt; }
  /// Bytes that differ from what was sent. Must be 0.
  uint64_t wrongBytes() const { return receiver().wrongBytes(); }
  /// Segments that arrived behind a gap, and segments whose data had already arrived.
  uint64_t gaps() const { return receiver().receiver().stats().gaps; }
  uint64_t repeats() const { return receiver().receiver().stats().repeats; }
  uint64_t retransmits() const { return sender().stats().retransmitted; }
  /// Includes the timeouts of the SYN.
  uint64_t timeouts() const { return sender().stats().timeouts + sender().synTimeouts(); }
  uint64_t ceSeen() const { return receiver().ceSeen(); }
  uint64_t tooBigs() const { return sender().tooBigs(); }
  uint32_t mss() const { return sender().sender().mss(); }
  std::string describe() const;

 private:
  tcp::Endpoint& sender() { return connection_.client(); }
  const tcp::Endpoint& sender() const { return connection_.client(); }
  const tcp::Endpoint& receiver() const { return connection_.server(); }

  std::string name_;  // for describe()
  tcp::Connection connection_;
};

}  // namespace braid::sim
