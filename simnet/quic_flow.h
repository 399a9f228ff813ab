#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simnet/world.h"

namespace braid::sim {

/// A download by QUIC as its sender sees it (RFC 9002): packet threshold 3, time threshold 9/8, NewReno, pacing, probe
/// timeouts with backoff; the receiver acknowledges each second packet, and one out of order at once. Only a packet's
/// first bytes are QUIC's (RFC 8999: enough to be recognised), the rest is a number. Simpler than the RFC: timers have
/// steps of kTick, an RTT includes the receiver's delay of an ACK, and there is no persistent congestion. There is always
/// something to send.
class QuicFlow final : public Host {
 public:
  static constexpr size_t kPayload = 1200;  ///< bytes of a full datagram

  /// Begins at once, from the host behind `from` to that behind `to`.
  QuicFlow(World& world, Node& from, Node& to, uint16_t port);

  uint64_t sent() const { return sent_.size(); }
  /// Datagrams that arrived, each counted once.
  uint64_t received() const { return arrivals_.size(); }
  /// Declared lost by the sender, and those of them that were acknowledged after that.
  uint64_t lost() const { return lost_; }
  uint64_t spurious() const { return spurious_; }
  uint64_t repeats() const { return repeats_; }

 private:
  static constexpr uint64_t kPacketThreshold = 3;
  static constexpr Duration kMaxAckDelay = 25ms;
  static constexpr Duration kTick = 1ms;  // of the sender's timers
  struct Sent {
    Time at;
    bool acked = false, lost = false;
    bool isOpen() const { return !acked && !lost; }
  };

  void send();
  void sendWindow();
  void onAck(uint64_t count);
  void onNewlyAcked(const Sent& packet);
  void detectLosses();
  void lose(Sent& packet);
  void tick();
  Duration probeTimeout() const;
  void onPacket(uint64_t number);
  void acknowledge();

  World& world_;
  Node& from_;
  Node& to_;
  uint16_t port_;
  IpFields forth_, back_;
  // sender
  std::vector<Sent> sent_;           // by packet number
  uint64_t oldest_ = 0;              // all before it are acknowledged or lost
  std::optional<uint64_t> largest_;  // acknowledged
  uint64_t reported_ = 0;            // arrivals that it has been told of
  double cwnd_ = 10 * kPayload, ssthresh_ = 1e12;
  size_t inFlight_ = 0;
  Time recovery_ = Time::min(), nextSend_ = Time::min(), lastAck_{};
  unsigned probes_ = 0;  // since the last ACK
  bool wakes_ = false;   // a call of sendWindow() is due
  Duration srtt_{}, variance_{}, latest_{};
  uint64_t lost_ = 0, spurious_ = 0;
  // receiver
  std::vector<bool> seen_;
  std::vector<uint64_t> arrivals_;  // in their order
  uint64_t next_ = 0;               // behind the largest number
  unsigned unacked_ = 0;
  uint64_t acks_ = 0, repeats_ = 0;
  Time ackAt_ = kNever;  // of what is not acknowledged yet
};

}  // namespace braid::sim
