#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/containers.h"
#include "simnet/inner_packets.h"
#include "simnet/station.h"
#include "simnet/tcp/corrective.h"
#include "simnet/tcp/options.h"
#include "simnet/tcp/receiver.h"
#include "simnet/tcp/sender.h"
#include "simnet/tcp/syn_timer.h"

namespace braid::sim::tcp {

/// Bytes that one side writes at once, and whose arrival time is recorded.
struct Message {
  uint64_t bytes = 0;
  Time begin{};       ///< when the message was written
  Time end = kNever;  ///< when the last byte has arrived in order
};

/// One side of a connection: a host's TCP. It learns about the other side only from packets, except
/// for the arrival of its messages, of which the simulation tells it.
class Endpoint final : private SegmentOutlet, private AckOutlet {
 public:
  /// Called when a message has arrived at the other side. May call send().
  using Arrived = std::function<void(const Message&)>;

  struct Place {
    Timeline& timeline;
    Station& station;
    IpFields ip;  ///< header fields of the packets it sends
    uint16_t port = 0, peerPort = 0;
    uint64_t seed = 0, peerSeed = 0;  ///< seeds of the streams' contents (fillContent())
  };
  Endpoint(const Place& place, const Options& options);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Writes a message of at least one byte behind the previous ones. It is sent as soon as the
  /// connection is open and the window allows.
  void send(uint64_t bytes, Arrived arrived = {});

  /// Called with each data segment before its packet is sent; window and scoreboard already include
  /// it. Not called for the copies of Options::redundancy.
  using Watcher = std::function<void(const DataSegment&)>;
  void watch(Watcher watcher) { watcher_ = std::move(watcher); }

  bool established() const { return state_ == State::kEstablished; }
  /// When the handshake ended; kNever before.
  Time establishedAt() const { return establishedAt_; }
  /// Number of timeouts of the SYN or SYN-ACK.
  uint32_t synTimeouts() const { return synTimer_.timeouts(); }
  /// Number of this side's messages that have not fully arrived.
  size_t pending() const { return messages_.size(); }
  const Sender& sender() const { return sender_; }
  const SenderStats& stats() const { return sender_.stats(); }
  Receiver& receiver() { return receiver_; }
  const Receiver& receiver() const { return receiver_; }
  /// Bytes received in order from the other side.
  uint64_t received() const { return receiver_.bytes().next(); }
  /// Received bytes that differ from those sent. Must be 0.
  uint64_t wrongBytes() const { return wrong_; }
  /// Data packets that arrived with CE, and all data packets that arrived.
  uint64_t ceSeen() const { return ceSeen_; }
  uint64_t dataSeen() const { return dataSeen_; }
  /// ICMP messages that a packet was too large for its path.
  uint64_t tooBigs() const { return tooBigs_; }

 private:
  friend class Connection;
  enum class State : uint8_t { kIdle, kSynSent, kSynReceived, kEstablished, kClosed };

  void connect();
  void stop();
  void onPacket(ByteView packet, const InnerPacket& ip);
  void onSyn(ByteView packet, const InnerPacket& ip);
  void onTooBig(ByteView packet, const InnerPacket& ip);
  void onSegment(ByteView packet, const InnerPacket& ip);
  void establish();
  void sendSyn();
  void takeData(ByteView packet, const InnerPacket& ip);
  void takeCoded(ByteView packet, const InnerPacket& ip, uint32_t end);
  void sendCoded(Range block);
  Ack ackOf(const TcpFields& tcp, const TcpOptionFields& options) const;
  void tellArrivals();

  void transmit(const DataSegment& segment) override;
  void acknowledge() override;
  void put(TcpSegment segment, bool ect);
  uint64_t receiveWindow() const;
  uint64_t sentOffset(uint32_t ack) const;
  uint64_t heardOffset(uint32_t seq) const;
  Time now() const { return place_.timeline.now(); }
  uint32_t tick() const { return static_cast<uint32_t>(now().time_since_epoch() / 1us); }

  Place place_;
  Options options_;
  uint32_t isn_, peerIsn_ = 0;
  State state_ = State::kIdle;
  Agreement agreed_;
  uint8_t peerShift_ = 0;
  std::optional<uint32_t> recentTick_;  // TS.Recent
  Sender sender_;
  Receiver receiver_;
  SynTimer synTimer_;
  Time establishedAt_ = kNever;
  uint64_t acknowledged_ = 0;  // Last.ACK.sent
  std::unique_ptr<CodedBins> coding_;
  bool filled_ = false;  // an XOR filled a gap, and the sender was not told yet
  // for the next ACK: the gaps that an XOR could not fill lie below this
  std::optional<uint32_t> gapUpTo_;
  Endpoint* peer_ = nullptr;
  struct Pending {
    Message message;
    uint64_t end = 0;
    Arrived arrived;
  };
  Ring<Pending> messages_;
  Watcher watcher_;
  uint64_t wrong_ = 0, ceSeen_ = 0, dataSeen_ = 0, tooBigs_ = 0;
};

}  // namespace braid::sim::tcp
