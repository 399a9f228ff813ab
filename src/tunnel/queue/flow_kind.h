#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "inet/datagram_sign.h"

namespace braid {

/// How the packets of an inner flow are delivered to the peer (docs/protocol.md section 6).
enum class Delivery : uint8_t {
  kReliable,  ///< TCP: in order, repaired for the repair time
  /// Protocols over UDP that take reordering for loss (QUIC, VPNs): in order and repaired, but only
  /// for orderPatience().
  kOrdered,
  /// Other datagrams: each delivered as it arrives, and repaired for DataTracker::kTimely.
  kTimely,
  kStream,  ///< a range of a stream's bytes: repaired until it arrives or the stream ends
};

constexpr std::string_view deliveryName(Delivery delivery) {
  switch (delivery) {
    case Delivery::kReliable:
      return "reliable";
    case Delivery::kOrdered:
      return "ordered";
    case Delivery::kStream:
      return "stream";
    case Delivery::kTimely:
      break;
  }
  return "timely";
}

/// How long an ordered datagram is worth waiting for and repairing, on a path with this smoothed
/// RTT and RTT variance: until a loss is noticed there (9/8 of the RTT), its repair has crossed the
/// path, and some jitter; at most kLongestPatience. Both sides use the slowest path in use.
inline constexpr Duration kLongestPatience = std::chrono::seconds(10);
constexpr Duration orderPatience(Duration srtt, Duration rttvar) {
  return std::min(srtt * 3 / 2 + rttvar * 4 + std::chrono::milliseconds(10), kLongestPatience);
}
/// The patience while nothing is known of the paths.
inline constexpr Duration kFirstPatience = std::chrono::milliseconds(100);

/// What the sender knows of a packet in addition to its flow key.
struct PacketHint {
  uint8_t recoveryClass = 0;  ///< 0: none, else 1 + index; the flow keeps that of its first packet
  bool fin = false;           ///< the sender says that nothing follows (FIN)
  bool push = false;          ///< nothing follows at once (PSH), which bulk senders say often
  DatagramSign sign = DatagramSign::kNone;  ///< what a datagram says about its flow
};

/// Bytes that a flow has queued since it was last quiet. They tell a request, or the frame of a
/// call, from bulk. Only the flow's lane writes it, packet by packet.
class FlowBurst {
 public:
  /// A flow that queues nothing for this long begins a new burst. Chosen: shorter than the time
  /// between the frames of a call, longer than the gaps of a bulk sender that waits for ACKs.
  static constexpr Duration kGap = 10ms;
  /// Bytes that the burst of a timely flow forgets in each kGap: one full packet. So the burst of a
  /// call stays small however densely its packets come, up to 1.2 Mbit/s.
  static constexpr uint64_t kForgottenInGap = 1500;
  /// A flow is short while its burst has at most this many bytes: latency-sensitive in FUSO section
  /// VI-B.
  static constexpr uint64_t kShort = 100'000;
  /// A flow has the priority allowance over bulk while its burst has at most this many bytes: four
  /// full packets.
  static constexpr uint64_t kSmall = 6000;

  /// A flow that queues nothing for this long, while nothing of it waits, is no longer bulk to the
  /// path scheduler. Chosen: longer than the pause of a sender that has halved its window.
  static constexpr Duration kPause = 100ms;

  uint64_t bytes() const { return bytes_; }
  /// How often the flow has been quiet for kPause.
  uint32_t pauses() const { return pauses_; }
  /// How often the last unit that waited was handed out.
  uint32_t drains() const { return drains_; }
  bool isShort() const { return bytes_ <= kShort; }
  bool isSmall() const { return bytes_ <= kSmall; }
  /// Nothing follows the last packet, or not at once: after FIN, PSH in a short burst, the end of a
  /// stream, or a lone ordered datagram. In a short burst of timely datagrams each one counts as
  /// the last, because no later packet repairs it.
  bool ended() const { return ended_; }

 private:
  friend class PacketQueues;
  friend class StreamSendSide;
  friend class Flow;

  /// A packet is queued, `quiet` after the one before it. `waits`: packets of the flow already
  /// wait, so its sender was not quiet.
  void onPacket(size_t size, Delivery delivery, const PacketHint& hint, Duration quiet,
                bool waits) {
    bool isTimely = delivery == Delivery::kTimely;
    if (!waits && quiet >= kPause) ++pauses_;
    if (!waits && quiet >= kGap) {
      bytes_ = 0;
    } else if (isTimely) {
      auto forgotten =
          static_cast<uint64_t>(kForgottenInGap * std::min<Duration>(quiet, kGap) / kGap);
      bytes_ -= std::min(bytes_, forgotten);
    }
    bytes_ += size;
    bool isLoneDatagram = delivery == Delivery::kOrdered && bytes_ == size;
    ended_ = hint.fin || isLoneDatagram || ((hint.push || isTimely) && isShort());
  }

  /// Nothing follows what is queued, however long the burst was.
  void onEnd() { ended_ = true; }
  /// The last unit that waited was handed out.
  void onDrained() { ++drains_; }

  uint64_t bytes_ = 0;
  uint32_t pauses_ = 0, drains_ = 0;
  bool ended_ = false;
};

/// Finds out whether a flow of datagrams wants order: from its first packets, or because it behaves
/// as bulk. The decision is made once; a flow that asked to be timely stays timely. Only the packet
/// lane writes it.
class DatagramOrder {
 public:
  /// A packet of at least this many bytes is a full one. Chosen: bulk senders fill their packets,
  /// games and voice do not.
  static constexpr size_t kFull = 1000;
  /// A flow is bulk if its full packets have more than kBulk bytes (6 Mbit/s) in each of kWindows
  /// consecutive windows of length kWindow. Chosen: a video call has less.
  static constexpr Duration kWindow = 500ms;
  static constexpr size_t kBulk = 375'000;
  static constexpr unsigned kWindows = 2;

  /// A packet of the flow is queued. Returns true for the one packet from which on the flow is
  /// ordered.
  bool onPacket(size_t size, DatagramSign sign, Time now) {
    if (decided_) return false;
    if (opening_ && sign != DatagramSign::kSetup) {
      opening_ = false;
      decided_ = sign == DatagramSign::kOrdered || sign == DatagramSign::kTimely;
      if (decided_) return sign == DatagramSign::kOrdered;
    }
    return decided_ = size >= kFull && isBulk(size, now);
  }

 private:
  bool isBulk(size_t size, Time now) {
    if (Duration age = now - since_; age >= kWindow) {
      fullWindows_ = age < 2 * kWindow && bytes_ > kBulk ? fullWindows_ + 1 : 0;
      since_ = now;
      bytes_ = 0;
    }
    bytes_ += size;
    return bytes_ > kBulk && fullWindows_ + 1 >= kWindows;
  }

  bool opening_ = true;   // no packet has said anything yet
  bool decided_ = false;  // final for the life of the flow
  unsigned fullWindows_ = 0;
  size_t bytes_ = 0;  // of full datagrams, in the current window
  Time since_{};      // begin of the current window
};

}  // namespace braid
