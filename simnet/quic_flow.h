#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simnet/world.h"

namespace braid::sim {

/// A model of a QUIC bulk download with an endless supply of data. The sender follows RFC 9002:
/// packet threshold 3, time threshold 9/8, NewReno, pacing, PTO with backoff. The receiver
/// acknowledges every second packet, and an out-of-order packet at once. Only the first bytes of a
/// packet are QUIC (RFC 8999: enough to be recognised); they are followed by the packet number.
/// Simpler than the RFC: timers have steps of kTick, RTT samples include the receiver's ACK delay,
/// and persistent congestion is not modelled.
class QuicFlow final : public Host {
 public:
  static constexpr size_t kPayload = 1200;  ///< bytes of a full datagram

  /// Starts at once, from the host behind `from` to the host behind `to`.
  QuicFlow(World& world, Node& from, Node& to, uint16_t port);

  uint64_t sent() const { return sent_.size(); }
  /// Datagrams that arrived, each counted once.
  uint64_t received() const { return arrivals_.size(); }
  /// Packets that the sender declared lost, and how many of these were acknowledged later.
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
  uint64_t oldest_ = 0;              // all packets before it are acknowledged or lost
  std::optional<uint64_t> largest_;  // acknowledged
  uint64_t reported_ = 0;            // arrivals that ACKs have reported
  double cwnd_ = 10 * kPayload, ssthresh_ = 1e12;
  size_t inFlight_ = 0;
  Time recovery_ = Time::min(), nextSend_ = Time::min(), lastAck_{};
  unsigned probes_ = 0;  // since the last ACK
  bool wakes_ = false;   // a call of sendWindow() is due
  Duration srtt_{}, variance_{}, latest_{};
  uint64_t lost_ = 0, spurious_ = 0;
  // receiver
  std::vector<bool> seen_;
  std::vector<uint64_t> arrivals_;  // packet numbers in order of arrival
  uint64_t next_ = 0;               // largest packet number + 1
  unsigned unacked_ = 0;
  uint64_t acks_ = 0, repeats_ = 0;
  Time ackAt_ = kNever;  // when the delayed ACK is due
};

}  // namespace braid::sim
