#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "simnet/inner_packets.h"
#include "simnet/station.h"
#include "simnet/timeline.h"

namespace braid::sim {

struct TcpOptions {
  uint64_t bytes = 1 << 20;   ///< to send
  uint64_t window = 4 << 20;  ///< of the receiver, bytes
  uint16_t mss = 1460;        ///< that both hosts announce; the gateways lower it
  bool v6 = false;
  bool ecn = false;  ///< ECN-capable data (RFC 3168)
  /// Adds rules that most scenarios do not need: the handshake gives an RTT sample (RFC 6298);
  /// after a timeout, duplicate ACKs for data sent before it do not start a new fast retransmit,
  /// and a partial ACK deflates the window (both RFC 6582).
  bool exact = false;
  bool dctcp = false;  ///< RFC 8257; with `ecn`
  bool ecnRepeats =
      false;            ///< ECN-capable retransmissions too, as ns-2 and DCTCP's stacks send them
  bool content = true;  ///< fills and checks the payload; false: zeros, which is faster
};

/// A simple TCP model: one connection between two hosts that know nothing of the tunnel. It has
/// NewReno with fast retransmit (RFC 6582), RTO with backoff (RFC 6298) and path MTU discovery by
/// ICMP. The receiver checks every byte. simnet/tcp/ has a more complete model.
class TcpFlow final : public Host {
 public:
  static constexpr Duration kMinRto = 200ms;
  static constexpr Duration kMaxRto = 4s;
  static constexpr uint8_t kWindowShift = 7;

  /// Connects at once and sends from the host behind `from` to the host behind `to`.
  TcpFlow(Timeline& world, Station& from, Station& to, uint16_t port, TcpOptions options);

  /// Adds bytes to send. They are sent as soon as the window allows.
  void write(uint64_t bytes);

  bool done() const { return received_ >= options_.bytes; }
  uint64_t received() const { return received_; }
  /// Longest time without a new in-order byte, from the first SYN to the last byte.
  Duration longestStall() const { return longestStall_; }
  void restartStall() { longestStall_ = {}, lastProgress_ = world_.now(); }
  Time finishedAt() const { return lastProgress_; }
  /// Bytes that differ from what was sent. Must be 0.
  uint64_t wrongBytes() const { return wrong_; }
  /// Segments that arrived behind a gap, and segments whose data had already arrived.
  uint64_t gaps() const { return gaps_; }
  uint64_t repeats() const { return repeats_; }
  uint64_t retransmits() const { return retransmits_; }
  uint64_t timeouts() const { return timeouts_; }
  uint64_t ceSeen() const { return ceSeen_; }
  uint64_t tooBigs() const { return tooBigs_; }
  uint16_t mss() const { return mss_; }
  Duration srtt() const { return srtt_; }
  std::string describe() const;

 private:
  enum class State : uint8_t { kSynSent, kOpen };

  // sender
  void onSenderPacket(ByteView packet, const InnerPacket& ip);
  void onAck(const TcpFields& tcp);
  void onTooBig(ByteView packet, const InnerPacket& ip);
  void sendWindow();
  void sendSegment(uint64_t offset);
  void sendSyn();
  void lose();
  void onEcho(uint64_t acked, bool echo);
  void sampleRtt(Duration sample);
  void arm();
  void wakeAtRto();
  void onTimer();
  // receiver
  void onReceiverPacket(ByteView packet, const InnerPacket& ip);
  void accept(uint64_t offset, ByteView payload);
  void sendAck(bool syn);

  Timeline& world_;
  Station& from_;
  Station& to_;
  TcpOptions options_;
  uint16_t port_;
  uint64_t seed_;
  uint32_t isn_, peerIsn_;
  IpFields forth_, back_;

  State state_ = State::kSynSent;
  uint16_t mss_;
  uint64_t una_ = 0, next_ = 0, sentUpTo_ = 0;
  double cwnd_ = 0, ssthresh_ = 1e18;
  uint64_t recover_ = 0;
  bool recovering_ = false;
  int dupAcks_ = 0;
  Duration srtt_{}, rttvar_{}, rto_ = 1s;
  std::optional<std::pair<uint64_t, Time>> timing_;  // Karn: offset whose ACK gives a sample
  Time rtoAt_ = kNever;
  Time timerAt_ = kNever;  // when onTimer() is called
  uint64_t eceUntil_ = 0;
  // set while the SYN was sent only once: its answer gives an RTT sample
  std::optional<Time> synAt_;
  bool timedOut_ = false;  // a timeout occurred, and recover_ is not yet acknowledged
  double marked_ = 1;      // DCTCP.Alpha
  uint64_t windowEnd_ = 0, windowAcked_ = 0, windowMarked_ = 0;

  bool synSeen_ = false;
  uint64_t received_ = 0;
  std::map<uint64_t, uint64_t> ahead_;  // begin and end of each range that arrived behind a gap
  bool echoCe_ = false;
  Time lastProgress_;
  Duration longestStall_{};
  uint64_t wrong_ = 0, gaps_ = 0, repeats_ = 0, retransmits_ = 0, timeouts_ = 0, ceSeen_ = 0,
           tooBigs_ = 0;
};

}  // namespace braid::sim
