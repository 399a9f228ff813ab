#include "simnet/tcp_flow.h"

#include <algorithm>
#include <sstream>

#include "inet/ip.h"

namespace braid::sim {

TcpFlow::TcpFlow(Timeline& world, Station& from, Station& to, uint16_t port, TcpOptions options)
    : world_(world),
      from_(from),
      to_(to),
      options_(options),
      port_(port),
      seed_(world.random().next()),
      isn_(static_cast<uint32_t>(world.random().next())),
      peerIsn_(static_cast<uint32_t>(world.random().next())),
      forth_{from.host(options.v6), to.host(options.v6), ip::kTcp,
             options.ecn ? Ecn::kEct0 : Ecn::kNotEct, true},
      back_{to.host(options.v6), from.host(options.v6), ip::kTcp, Ecn::kNotEct, true},
      mss_(options.mss),
      lastProgress_(world.now()) {
  from.listen(ip::kTcp, port, [this](ByteView p, const InnerPacket& i) { onSenderPacket(p, i); });
  to.listen(ip::kTcp, port, [this](ByteView p, const InnerPacket& i) { onReceiverPacket(p, i); });
  sendSyn();
}

void TcpFlow::write(uint64_t bytes) {
  options_.bytes += bytes;
  sendWindow();
}

// ---- sender

void TcpFlow::sendSyn() {
  IpFields fields = forth_;
  fields.ecn = Ecn::kNotEct;
  TcpSegment syn{port_, port_, isn_, 0, TcpFields::kSyn, 65535, options_.mss, kWindowShift, {}};
  synAt_ = timeouts_ == 0 ? std::optional(world_.now()) : std::nullopt;
  from_.send(tcpPacket(fields, syn));
  arm();
}

void TcpFlow::onSenderPacket(ByteView packet, const InnerPacket& ip) {
  if (ip.protocol != ip::kTcp) return onTooBig(packet, ip);
  if (!ip.tcp) return;
  if (state_ == State::kSynSent) {
    if (!ip.tcp->isSyn() || ip.tcp->ack != isn_ + 1) return;
    state_ = State::kOpen;
    mss_ = std::min(options_.mss, mssOf(packet, ip));
    cwnd_ = 10.0 * mss_;
    rtoAt_ = kNever;
    rto_ = 1s;
    if (options_.exact && synAt_) sampleRtt(world_.now() - *synAt_);
    return sendWindow();
  }
  if (ip.tcp->isAck()) onAck(*ip.tcp);
}

void TcpFlow::onAck(const TcpFields& tcp) {
  auto delta = static_cast<int32_t>(tcp.ack - (isn_ + 1 + static_cast<uint32_t>(una_)));
  if (delta < 0) return;
  uint64_t acked = una_ + static_cast<uint32_t>(delta);
  if (acked > sentUpTo_) return;
  onEcho(acked, tcp.flags & TcpFields::kEce);
  if (delta == 0) {
    if (tcp.payloadLength > 0 || next_ == una_) return;
    ++dupAcks_;
    bool old = options_.exact && timedOut_;
    if (dupAcks_ == 3 && !recovering_ && !old)
      lose();
    else if (recovering_)
      cwnd_ += mss_;
    return sendWindow();
  }
  una_ = acked;
  next_ = std::max(next_, una_);
  dupAcks_ = 0;
  if (timing_ && acked >= timing_->first) {
    Duration r = world_.now() - timing_->second;
    timing_.reset();
    sampleRtt(r);
  }
  if (una_ > recover_) timedOut_ = false;
  if (recovering_ && una_ < recover_) {
    if (options_.exact) cwnd_ = std::max(cwnd_ - static_cast<double>(delta), 0.0) + mss_;
    sendSegment(una_);  // the next hole of the same window (RFC 6582)
  } else if (recovering_) {
    recovering_ = false;
    cwnd_ = ssthresh_;
  } else {
    cwnd_ += cwnd_ < ssthresh_ ? static_cast<double>(delta) : 1.0 * mss_ * mss_ / cwnd_;
  }
  if (una_ >= options_.bytes)
    rtoAt_ = kNever;
  else
    arm();
  sendWindow();
}

void TcpFlow::sampleRtt(Duration r) {
  if (srtt_ == 0ns)
    srtt_ = r, rttvar_ = r / 2;
  else
    rttvar_ = (3 * rttvar_ + std::chrono::abs(srtt_ - r)) / 4, srtt_ = (7 * srtt_ + r) / 8;
  rto_ = std::clamp<Duration>(srtt_ + 4 * rttvar_, kMinRto, kMaxRto);
}

// Reduces the window at most once per round trip: by half, or with DCTCP by half the share of
// marked bytes.
void TcpFlow::onEcho(uint64_t acked, bool echo) {
  constexpr double kGain = 1.0 / 16;  // RFC 8257 section 4.2
  windowAcked_ += acked - una_;
  if (echo) windowMarked_ += acked - una_;
  if (acked > windowEnd_ && windowAcked_ > 0) {
    double share = static_cast<double>(windowMarked_) / static_cast<double>(windowAcked_);
    marked_ = (1 - kGain) * marked_ + kGain * share;
    windowEnd_ = sentUpTo_;
    windowAcked_ = windowMarked_ = 0;
  }
  if (!echo || acked <= eceUntil_) return;
  eceUntil_ = sentUpTo_;
  double cut = options_.dctcp ? marked_ / 2 : 0.5;
  ssthresh_ = cwnd_ = std::max(cwnd_ * (1 - cut), 2.0 * mss_);
}

void TcpFlow::lose() {
  recovering_ = true;
  recover_ = sentUpTo_;
  ssthresh_ = std::max(static_cast<double>(next_ - una_) / 2, 2.0 * mss_);
  cwnd_ = ssthresh_ + 3 * mss_;
  sendSegment(una_);
}

void TcpFlow::onTooBig(ByteView packet, const InnerPacket& ip) {
  ++tooBigs_;
  size_t mtu = ip.isV4() ? load16(&packet[ip.l4Offset + 6]) : load32(&packet[ip.l4Offset + 4]);
  size_t headers = ip::kTcpHeader + (ip.isV4() ? ip::kV4Header : ip::kV6Header);
  if (mtu < headers + 64 || mtu - headers >= mss_) return;
  mss_ = static_cast<uint16_t>(mtu - headers);
  next_ = una_;
  timing_.reset();
  sendWindow();
}

void TcpFlow::sendWindow() {
  if (state_ != State::kOpen) return;
  uint64_t window = std::min(static_cast<uint64_t>(cwnd_), options_.window);
  while (next_ < options_.bytes) {
    uint64_t size = std::min<uint64_t>(mss_, options_.bytes - next_);
    if (next_ - una_ + size > window && next_ != una_) break;
    sendSegment(next_);
    next_ += size;
  }
  if (rtoAt_ == kNever && una_ < options_.bytes) arm();
}

void TcpFlow::sendSegment(uint64_t offset) {
  size_t size = static_cast<size_t>(std::min<uint64_t>(mss_, options_.bytes - offset));
  std::array<uint8_t, 9000> content;
  ByteSpan payload = ByteSpan(content).first(size);
  if (options_.content)
    fillContent(seed_, offset, payload);
  else
    std::fill(payload.begin(), payload.end(), uint8_t{0});
  bool again = offset < sentUpTo_;
  if (again) {
    ++retransmits_;
    timing_.reset();
  } else if (!timing_) {
    timing_ = {offset + size, world_.now()};
  }
  sentUpTo_ = std::max(sentUpTo_, offset + size);
  TcpSegment segment{port_,
                     port_,
                     isn_ + 1 + static_cast<uint32_t>(offset),
                     peerIsn_ + 1,
                     TcpFields::kAck,
                     65535,
                     0,
                     0,
                     payload};
  IpFields fields = forth_;
  if (again && !options_.ecnRepeats) fields.ecn = Ecn::kNotEct;
  from_.send(tcpPacket(fields, segment));
}

void TcpFlow::arm() {
  rtoAt_ = world_.now() + rto_;
  wakeAtRto();
}

void TcpFlow::wakeAtRto() {
  if (timerAt_ <= rtoAt_) return;
  timerAt_ = rtoAt_;
  world_.at(timerAt_, [this, at = timerAt_] {
    if (timerAt_ == at) onTimer();  // else the timer was set to an earlier time
  });
}

void TcpFlow::onTimer() {
  timerAt_ = kNever;
  if (rtoAt_ == kNever) return;
  if (world_.now() < rtoAt_) return wakeAtRto();
  rto_ = std::min<Duration>(rto_ * 2, kMaxRto);
  ++timeouts_;
  if (state_ == State::kSynSent) return sendSyn();
  ssthresh_ = std::max(static_cast<double>(next_ - una_) / 2, 2.0 * mss_);
  cwnd_ = mss_;
  recover_ = sentUpTo_;
  timedOut_ = true;
  recovering_ = false;
  dupAcks_ = 0;
  next_ = una_;
  timing_.reset();
  arm();
  sendWindow();
}

// ---- receiver

void TcpFlow::onReceiverPacket(ByteView packet, const InnerPacket& ip) {
  if (!ip.tcp) return;
  if (ip.tcp->isSyn()) {
    synSeen_ = true;
    return sendAck(true);
  }
  if (!synSeen_ || ip.tcp->payloadLength == 0) return;
  if (ip.ecn == Ecn::kCe) ++ceSeen_, echoCe_ = true;
  auto delta = static_cast<int32_t>(ip.tcp->seq - (isn_ + 1 + static_cast<uint32_t>(received_)));
  auto offset = static_cast<int64_t>(received_) + delta;
  ByteView payload = packet.subspan(ip.l4Offset + ip.tcp->headerLength, ip.tcp->payloadLength);
  if (offset < 0 || static_cast<uint64_t>(offset) + payload.size() > options_.bytes) {
    wrong_ += payload.size();
  } else {
    accept(static_cast<uint64_t>(offset), payload);
  }
  sendAck(false);
}

void TcpFlow::accept(uint64_t offset, ByteView payload) {
  if (options_.content && !isContent(seed_, offset, payload)) wrong_ += payload.size();
  uint64_t end = offset + payload.size();
  if (end <= received_) {
    ++repeats_;
    return;
  }
  if (offset > received_) {
    ++gaps_;
    uint64_t& known = ahead_[offset];
    if (known >= end) ++repeats_;
    known = std::max(known, end);
    return;
  }
  received_ = end;
  while (!ahead_.empty() && ahead_.begin()->first <= received_) {
    received_ = std::max(received_, ahead_.begin()->second);
    ahead_.erase(ahead_.begin());
  }
  longestStall_ = std::max(longestStall_, world_.now() - lastProgress_);
  lastProgress_ = world_.now();
}

void TcpFlow::sendAck(bool syn) {
  uint8_t flags = TcpFields::kAck | (syn ? TcpFields::kSyn : 0) | (echoCe_ ? TcpFields::kEce : 0);
  echoCe_ = false;
  auto window = static_cast<uint16_t>(std::min<uint64_t>(options_.window >> kWindowShift, 65535));
  TcpSegment ack{
      port_, port_,  syn ? peerIsn_ : peerIsn_ + 1,    isn_ + 1 + static_cast<uint32_t>(received_),
      flags, window, syn ? options_.mss : uint16_t{0}, syn ? kWindowShift : uint8_t{0},
      {}};
  to_.send(tcpPacket(back_, ack));
}

std::string TcpFlow::describe() const {
  std::ostringstream out;
  out << "tcp " << port_ << " " << from_.name() << " > " << to_.name() << ": " << received_ << "/"
      << options_.bytes << " una " << una_ << " next " << next_ << " cwnd " << cwnd_ << " mss "
      << mss_ << " rto " << toMilliseconds(rto_) << " retransmits " << retransmits_ << " timeouts "
      << timeouts_ << " wrong " << wrong_ << " gaps " << gaps_ << " repeats " << repeats_
      << " stall " << toMilliseconds(longestStall_);
  return out.str();
}

}  // namespace braid::sim
