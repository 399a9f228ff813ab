#include "simnet/quic_flow.h"

#include <algorithm>
#include <utility>

#include "inet/ip.h"

namespace braid::sim {

namespace {

constexpr size_t kNumber = 24, kAckSize = 40;
constexpr size_t kDatagram = QuicFlow::kPayload;

// Writes a long header of QUIC version 1 with two 8-byte connection IDs, or a short header,
// followed by the packet number.
Bytes datagram(size_t size, bool isFirst, uint64_t number) {
  Bytes out(size);
  out[0] = isFirst ? 0xc0 : 0x40;
  if (isFirst) {
    store32(&out[1], 1);
    out[5] = out[14] = 8;
  }
  store64(&out[kNumber], number);
  return out;
}

}  // namespace

QuicFlow::QuicFlow(World& world, Node& from, Node& to, uint16_t port)
    : world_(world),
      from_(from),
      to_(to),
      port_(port),
      forth_{from.host(false), to.host(false), ip::kUdp},
      back_{to.host(false), from.host(false), ip::kUdp} {
  auto number = [](ByteView packet, const InnerPacket& ip) {
    ByteView payload = packet.subspan(ip.l4Offset + 8, ip.payloadLength);
    return load64(&payload[kNumber]);
  };
  to.listen(ip::kUdp, port, [this, number](ByteView p, const InnerPacket& ip) {
    if (ip.protocol == ip::kUdp) onPacket(number(p, ip));
  });
  from.listen(ip::kUdp, port, [this, number](ByteView p, const InnerPacket& ip) {
    if (ip.protocol == ip::kUdp) onAck(number(p, ip));
  });
  lastAck_ = world_.now();
  sendWindow();
  tick();
}

// ---- the sender

void QuicFlow::send() {
  from_.send(udpPacket(forth_, port_, port_, datagram(kPayload, sent_.empty(), sent_.size())));
  sent_.push_back({world_.now()});
  inFlight_ += kPayload;
}

// RFC 9002 section 7.7: the pacing rate is 1.25 windows per round trip.
void QuicFlow::sendWindow() {
  while (static_cast<double>(inFlight_ + kPayload) <= cwnd_) {
    if (nextSend_ > world_.now()) {
      if (std::exchange(wakes_, true)) return;
      world_.after(nextSend_ - world_.now(), [this] {
        wakes_ = false;
        sendWindow();
      });
      return;
    }
    send();
    nextSend_ = world_.now() + fromSeconds(toSeconds(srtt_) * kDatagram / (1.25 * cwnd_));
  }
}

void QuicFlow::onAck(uint64_t count) {
  if (count <= reported_) return;
  lastAck_ = world_.now();
  probes_ = 0;
  uint64_t last = *std::max_element(arrivals_.begin() + static_cast<ptrdiff_t>(reported_),
                                    arrivals_.begin() + static_cast<ptrdiff_t>(count));
  if (!largest_ || last > *largest_) {
    largest_ = last;
    latest_ = world_.now() - sent_[last].at;
    Duration error = srtt_ > latest_ ? srtt_ - latest_ : latest_ - srtt_;
    variance_ = srtt_ == Duration{} ? latest_ / 2 : (3 * variance_ + error) / 4;
    srtt_ = srtt_ == Duration{} ? latest_ : (7 * srtt_ + latest_) / 8;
  }
  // Detects losses before the window grows, as in RFC 9002 appendix A.7.
  for (uint64_t i = reported_; i < count; ++i) sent_[arrivals_[i]].acked = true;
  detectLosses();
  while (reported_ < count) onNewlyAcked(sent_[arrivals_[reported_++]]);
  sendWindow();
}

void QuicFlow::onNewlyAcked(const Sent& packet) {
  if (packet.lost) return void(++spurious_);
  inFlight_ -= kPayload;
  if (packet.at <= recovery_) return;
  cwnd_ += cwnd_ < ssthresh_ ? kDatagram : double{kDatagram} * kDatagram / cwnd_;
}

void QuicFlow::detectLosses() {
  if (!largest_) return;
  Time late = world_.now() - std::max<Duration>(std::max(srtt_, latest_) * 9 / 8, 1ms);
  for (uint64_t n = oldest_; n < *largest_; ++n) {
    Sent& packet = sent_[n];
    if (packet.isOpen() && (n + kPacketThreshold <= *largest_ || packet.at <= late)) lose(packet);
    if (n == oldest_ && !packet.isOpen()) ++oldest_;
  }
}

void QuicFlow::lose(Sent& packet) {
  packet.lost = true;
  inFlight_ -= kPayload;
  ++lost_;
  if (packet.at <= recovery_) return;
  recovery_ = world_.now();
  cwnd_ = ssthresh_ = std::max(cwnd_ / 2, 2.0 * kDatagram);
}

Duration QuicFlow::probeTimeout() const {
  Duration once =
      srtt_ == Duration{} ? 1s : srtt_ + std::max<Duration>(4 * variance_, 1ms) + kMaxAckDelay;
  return once * (1 << std::min(probes_, 6u));
}

void QuicFlow::tick() {
  detectLosses();
  if (inFlight_ > 0 && world_.now() >= std::max(lastAck_, sent_.back().at) + probeTimeout()) {
    ++probes_;
    send();
  }
  sendWindow();
  world_.after(kTick, [this] { tick(); });
}

// ---- the receiver

void QuicFlow::onPacket(uint64_t number) {
  if (seen_.size() <= number) seen_.resize(number + 1);
  if (seen_[number]) return void(++repeats_);
  seen_[number] = true;
  arrivals_.push_back(number);
  bool inOrder = number == next_;
  next_ = std::max(next_, number + 1);
  if (++unacked_ >= 2 || !inOrder) return acknowledge();
  ackAt_ = world_.now() + kMaxAckDelay;
  world_.after(kMaxAckDelay, [this] {
    if (world_.now() >= ackAt_) acknowledge();
  });
}

void QuicFlow::acknowledge() {
  unacked_ = 0;
  ackAt_ = kNever;
  to_.send(udpPacket(back_, port_, port_, datagram(kAckSize, acks_++ == 0, arrivals_.size())));
}

}  // namespace braid::sim
