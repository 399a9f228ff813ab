#include "simnet/tcp/endpoint.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "inet/ip.h"

namespace braid::sim::tcp {

namespace {
constexpr uint32_t kTimestampsSize = 12;
constexpr size_t kMaxOptions = 40;        // RFC 9293 section 3.1: the header has at most 60 bytes
constexpr uint64_t kMaxWindow = 1 << 30;  // RFC 7323 section 2.3
constexpr uint64_t kSynWindow = 65535;    // the most that a SYN can announce: it is not scaled

/// The smallest shift with which the window fits the header (RFC 7323 section 2.2).
uint8_t shiftOf(uint64_t window) {
  return static_cast<uint8_t>(std::max<size_t>(std::bit_width(std::min(window, kMaxWindow)), 16) -
                              16);
}
}  // namespace

Endpoint::Endpoint(const Place& place, const Options& options)
    : place_(place),
      options_(options),
      isn_(static_cast<uint32_t>(place.timeline.random().next())),
      sender_(place.timeline, *this, options),
      receiver_(place.timeline, *this, options),
      synTimer_(place.timeline, options, [this] { sendSyn(); }) {
  place_.station.listen(ip::kTcp, place_.port,
                        [this](ByteView p, const InnerPacket& i) { onPacket(p, i); });
}

void Endpoint::send(uint64_t bytes, Arrived arrived) {
  if (state_ == State::kClosed) return;
  uint64_t end = sender_.written() + bytes;
  messages_.pushBack({{bytes, now(), kNever}, end, std::move(arrived)});
  sender_.write(bytes);
}

void Endpoint::stop() {
  state_ = State::kClosed;
  sender_.stop();
  receiver_.stop();
  synTimer_.stop();
  if (coding_) coding_->stop();
  while (!messages_.empty()) messages_.popFront();
}

// ---- handshake

void Endpoint::connect() {
  state_ = State::kSynSent;
  sendSyn();
}

// SYN or SYN-ACK (RFC 9293 section 3.5, RFC 3168 section 6.1.1).
void Endpoint::sendSyn() {
  bool answer = state_ == State::kSynReceived;
  TcpSegment syn;
  syn.seq = isn_;
  syn.flags = TcpFields::kSyn;
  syn.mss = options_.mss;
  syn.windowShift = shiftOf(options_.window);
  syn.sackPermitted = answer ? agreed_.sack : options_.sack;
  bool stamps = answer ? agreed_.timestamps : options_.timestamps;
  if (stamps) syn.timestamps = {tick(), recentTick_.value_or(0)};
  if (answer) {
    syn.flags |= TcpFields::kAck | (agreed_.ecn ? TcpFields::kEce : 0);
    syn.ack = peerIsn_ + 1;
  } else if (options_.ecn) {
    syn.flags |= TcpFields::kEce | TcpFields::kCwr;
  }
  put(syn, options_.ecnEverywhere);
  synTimer_.onSent();
}

void Endpoint::onSyn(ByteView packet, const InnerPacket& ip) {
  const TcpFields& tcp = *ip.tcp;
  bool answer = tcp.isAck();
  if (answer && state_ == State::kEstablished)
    return acknowledge();  // our ACK of its first SYN-ACK was lost
  if (answer ? state_ != State::kSynSent || tcp.ack != isn_ + 1 : state_ != State::kIdle) {
    if (state_ == State::kSynReceived && !answer) sendSyn();
    return;
  }
  TcpOptionFields fields = tcpOptionsOf(packet, ip);
  peerIsn_ = tcp.seq;
  agreed_.sack = options_.sack && fields.sackPermitted;
  agreed_.timestamps = options_.timestamps && fields.timestamps.has_value();
  agreed_.ecn =
      options_.ecn && (tcp.flags & TcpFields::kEce) && (answer || (tcp.flags & TcpFields::kCwr));
  uint32_t mss = std::min(options_.mss, fields.mss.value_or(536));  // RFC 9293 section 3.7.1
  agreed_.mss = mss - (agreed_.timestamps ? kTimestampsSize : 0);
  if (options_.redundancy == Redundancy::kCorrective) {
    agreed_.mss -= CodingOption::kSize;
    coding_ = std::make_unique<CodedBins>(place_.timeline, options_.correctiveBin,
                                          [this](Range b) { sendCoded(b); });
  }
  agreed_.peerWindow = tcp.window;
  peerShift_ = fields.windowShift.value_or(0);
  if (fields.timestamps) recentTick_ = fields.timestamps->value;
  if (!answer) {
    state_ = State::kSynReceived;
    return sendSyn();
  }
  establish();
  if (stats().sent == 0) acknowledge();
}

void Endpoint::establish() {
  state_ = State::kEstablished;
  establishedAt_ = now();
  synTimer_.stop();
  agreed_.synTimeouts = synTimer_.timeouts();
  agreed_.rtt = synTimer_.rtt();
  sender_.open(agreed_);
}

// ---- what arrives

void Endpoint::onPacket(ByteView packet, const InnerPacket& ip) {
  if (state_ == State::kClosed) return;
  if (ip.protocol != ip::kTcp) return onTooBig(packet, ip);
  if (!ip.tcp) return;
  if (ip.tcp->isSyn()) return onSyn(packet, ip);
  if (!ip.tcp->isAck() || state_ == State::kIdle || state_ == State::kSynSent) return;
  onSegment(packet, ip);
}

void Endpoint::onTooBig(ByteView packet, const InnerPacket& ip) {
  ++tooBigs_;
  size_t mtu = ip.isV4() ? load16(&packet[ip.l4Offset + 6]) : load32(&packet[ip.l4Offset + 4]);
  size_t headers = ip::kTcpHeader + (ip.isV4() ? ip::kV4Header : ip::kV6Header) +
                   (agreed_.timestamps ? kTimestampsSize : 0);
  if (mtu >= headers + 64) sender_.reduceMss(static_cast<uint32_t>(mtu - headers));
}

void Endpoint::onSegment(ByteView packet, const InnerPacket& ip) {
  const TcpFields& tcp = *ip.tcp;
  TcpOptionFields fields = tcpOptionsOf(packet, ip);
  if (fields.timestamps && heardOffset(tcp.seq) <= acknowledged_) {  // RFC 7323 section 4.3
    bool newer = !recentTick_ || static_cast<int32_t>(fields.timestamps->value - *recentTick_) >= 0;
    if (newer) recentTick_ = fields.timestamps->value;
  }
  if (state_ == State::kSynReceived) establish();
  uint64_t before = received();
  Ack ack = ackOf(tcp, fields);
  std::optional<CodingOption> coded = coding_ ? CodingOption::read(packet, ip) : std::nullopt;
  if (coded && ack.pure) {
    ack.corrected = !coded->value;
    if (coded->value) ack.missingUpTo = sentOffset(*coded->value);
  }
  sender_.onAck(ack);
  if (coded && !ack.pure && coded->value)
    takeCoded(packet, ip, *coded->value);
  else if (!ack.pure)
    takeData(packet, ip);
  if (received() > before) peer_->tellArrivals();
}

void Endpoint::takeData(ByteView packet, const InnerPacket& ip) {
  const TcpFields& tcp = *ip.tcp;
  ++dataSeen_;
  bool ce = ip.ecn == Ecn::kCe;
  ceSeen_ += ce;
  uint64_t begin = heardOffset(tcp.seq);
  Range bytes{begin, begin + tcp.payloadLength};
  ByteView payload = packet.subspan(ip.l4Offset + tcp.headerLength, tcp.payloadLength);
  bool right = bytes.end <= peer_->sender_.written() &&
               (!options_.content || isContent(place_.peerSeed, begin, payload));
  if (!right) {
    wrong_ += payload.size();
    return;
  }
  bool cwr = tcp.flags & TcpFields::kCwr;
  if (cwr) filled_ = false;
  receiver_.onSegment(bytes, ce, cwr);
}

// A gap of at most the XOR's size can be filled, because no two of its bytes were XORed into the
// same position.
void Endpoint::takeCoded(ByteView packet, const InnerPacket& ip, uint32_t end) {
  ByteView sum = packet.subspan(ip.l4Offset + ip.tcp->headerLength, ip.tcp->payloadLength);
  Range block{heardOffset(ip.tcp->seq), heardOffset(end)};
  Range gap = receiver_.bytes().missing(block);
  if (gap.size() == 0) return;
  if (gap.size() > sum.size()) {
    gapUpTo_ = end;
    return acknowledge();
  }
  if (options_.content) {
    Bytes rest(sum.begin(), sum.end());
    xorContent(place_.peerSeed, block, rest);
    if (std::ranges::any_of(rest, [](uint8_t b) { return b != 0; })) wrong_ += gap.size();
  }
  filled_ = true;
  receiver_.onSegment(gap, false, false);
  receiver_.acknowledgeNow();
}

Ack Endpoint::ackOf(const TcpFields& tcp, const TcpOptionFields& options) const {
  Ack ack;
  ack.upTo = sentOffset(tcp.ack);
  ack.window = uint64_t{tcp.window} << peerShift_;
  ack.echo = tcp.flags & TcpFields::kEce;
  ack.pure = tcp.payloadLength == 0;
  if (options.timestamps && options.timestamps->echo != 0) {
    Time ticked = std::chrono::floor<std::chrono::microseconds>(now());
    ack.echoed = ticked - 1us * static_cast<int32_t>(tick() - options.timestamps->echo);
  }
  for (size_t i = 0; i < options.sackCount; ++i) {
    Range block{sentOffset(options.sacks[i].begin.value), sentOffset(options.sacks[i].end.value)};
    bool first = i == 0 && options.sackCount > 1;
    Range second = first ? Range{sentOffset(options.sacks[1].begin.value),
                                 sentOffset(options.sacks[1].end.value)}
                         : Range{};
    bool within = first && block.begin >= second.begin && block.end <= second.end;
    if (i == 0 && (block.begin < ack.upTo || within))
      ack.dsack = block;
    else if (block.begin > ack.upTo && block.end > block.begin)
      ack.addSack(block);
  }
  return ack;
}

// The peer has received more of what this side wrote: completes the messages that have arrived.
void Endpoint::tellArrivals() {
  while (!messages_.empty() && messages_.front().end <= peer_->received()) {
    Pending done = std::move(messages_.front());
    messages_.popFront();
    done.message.end = now();
    if (done.arrived) done.arrived(done.message);
  }
}

// ---- what leaves

void Endpoint::transmit(const DataSegment& segment) {
  if (watcher_) watcher_(segment);
  std::array<uint8_t, 9000> content;
  ByteSpan payload = ByteSpan(content).first(segment.bytes.size());
  if (options_.content)
    fillContent(place_.seed, segment.bytes.begin, payload);
  else
    std::ranges::fill(payload, uint8_t{0});
  TcpSegment out;
  out.seq = isn_ + 1 + static_cast<uint32_t>(segment.bytes.begin);
  out.payload = payload;
  if (segment.cwr) out.flags = TcpFields::kCwr;
  bool ect = !segment.again || options_.ecnEverywhere;
  put(out, ect);
  if (options_.redundancy == Redundancy::kProactive) put(out, ect);
  if (coding_ && !segment.again) coding_->onSent(segment.bytes, sender_.rto().srtt());
}

void Endpoint::sendCoded(Range block) {
  Bytes sum(std::min<uint64_t>(agreed_.mss, block.size()));
  if (options_.content) xorContent(place_.seed, block, sum);
  Bytes option = CodingOption{isn_ + 1 + static_cast<uint32_t>(block.end)}.write();
  TcpSegment out;
  out.seq = isn_ + 1 + static_cast<uint32_t>(block.begin);
  out.payload = sum;
  out.otherOptions = option;
  put(out, true);
}

void Endpoint::acknowledge() {
  TcpSegment out;
  out.seq = isn_ + 1 + static_cast<uint32_t>(sender_.sentUpTo());
  put(out, options_.ecnEverywhere);
}

// Adds the fields that every segment has (ports, ACK, window, options) and sends it.
void Endpoint::put(TcpSegment out, bool ect) {
  out.sport = place_.port;
  out.dport = place_.peerPort;
  std::array<Range, Reassembly::kMaxBlocks> blocks;
  std::array<SeqRange, Reassembly::kMaxBlocks> sacks;
  Bytes extra;
  if (out.flags & TcpFields::kSyn) {
    out.window = static_cast<uint16_t>(std::min(options_.window, kSynWindow));
  } else {
    out.flags |= TcpFields::kAck | (agreed_.ecn && receiver_.echo() ? TcpFields::kEce : 0);
    acknowledged_ = received();
    out.ack = peerIsn_ + 1 + static_cast<uint32_t>(acknowledged_);
    out.window = static_cast<uint16_t>(
        std::min<uint64_t>(receiveWindow() >> shiftOf(options_.window), UINT16_MAX));
    if (agreed_.timestamps) out.timestamps = {tick(), recentTick_.value_or(0)};
    if (out.payload.empty() && (filled_ || gapUpTo_)) {
      extra = CodingOption{std::exchange(gapUpTo_, std::nullopt)}.write();
      out.otherOptions = extra;
    }
    if (agreed_.sack && out.payload.empty()) {
      size_t room =
          (kMaxOptions - (agreed_.timestamps ? kTimestampsSize : 0) - extra.size() - 4) / 8;
      size_t count = receiver_.bytes().blocks(room, blocks);
      auto seqOf = [&](uint64_t offset) {
        return Seq{peerIsn_ + 1 + static_cast<uint32_t>(offset)};
      };
      for (size_t i = 0; i < count; ++i) sacks[i] = {seqOf(blocks[i].begin), seqOf(blocks[i].end)};
      out.sacks = std::span(sacks).first(count);
    }
    receiver_.onAcknowledged();
  }
  IpFields fields = place_.ip;
  fields.ecn = ect && (agreed_.ecn || out.flags & TcpFields::kSyn) && options_.ecn ? Ecn::kEct0
                                                                                   : Ecn::kNotEct;
  place_.station.send(tcpPacket(fields, out));
}

// Without SACK, only data in order opens the window, twice as fast as it arrives (Linux,
// tcp_grow_window()). An ACK that moves the window would not be a duplicate (RFC 5681 section 2).
uint64_t Endpoint::receiveWindow() const {
  uint64_t most = std::min(options_.window, kMaxWindow);
  return agreed_.sack ? most : std::min(most, kSynWindow + 2 * received());
}

uint64_t Endpoint::sentOffset(uint32_t ack) const {
  auto from = static_cast<uint32_t>(sender_.acked());
  return sender_.acked() +
         static_cast<uint64_t>(int64_t{static_cast<int32_t>(ack - (isn_ + 1 + from))});
}

uint64_t Endpoint::heardOffset(uint32_t seq) const {
  auto from = static_cast<uint32_t>(received());
  return received() +
         static_cast<uint64_t>(int64_t{static_cast<int32_t>(seq - (peerIsn_ + 1 + from))});
}

}  // namespace braid::sim::tcp
