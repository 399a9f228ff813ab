#include "simnet/udp_flow.h"

#include "inet/ip.h"

namespace braid::sim {

namespace {
constexpr size_t kPrefix = 16;  // number and time
}

UdpFlow::UdpFlow(World& world, Node& from, Node& to, uint16_t port, UdpOptions options)
    : world_(world),
      from_(from),
      options_(options),
      port_(port),
      seed_(world.random().next()),
      ip_{from.host(options.v6),
          to.host(options.v6),
          ip::kUdp,
          options.ecn ? Ecn::kEct0 : Ecn::kNotEct,
          options.dontFragment,
          options.dscp},
      seen_(options.count) {
  to.listen(ip::kUdp, port, [this](ByteView p, const InnerPacket& i) { onPacket(p, i); });
  send();
}

void UdpFlow::send() {
  uint64_t before = sent_;
  while (!finished() && sent_ - before < options_.together) sendOne();
  if (sent_ > before) world_.after((sent_ - before) * options_.interval, [this] { send(); });
}

void UdpFlow::sendOne() {
  Bytes payload(std::max(options_.payload, kPrefix));
  store64(&payload[0], sent_);
  store64(&payload[8], static_cast<uint64_t>(world_.now().time_since_epoch().count()));
  fillContent(seed_, sent_ << 12, ByteSpan(payload).subspan(kPrefix));
  ++sent_;
  from_.send(udpPacket(ip_, port_, port_, payload));
}

void UdpFlow::onPacket(ByteView packet, const InnerPacket& ip) {
  if (ip.protocol != ip::kUdp || ip.isFragment) return;
  ByteView payload = packet.subspan(ip.l4Offset + 8, ip.payloadLength);
  if (payload.size() != std::max(options_.payload, kPrefix)) return void(++wrong_);
  uint64_t number = load64(&payload[0]);
  if (number >= sent_ || !isContent(seed_, number << 12, payload.subspan(kPrefix)))
    return void(++wrong_);
  if (seen_[number]) return void(++duplicates_);
  seen_[number] = true;
  ++received_;
  if (number < highest_) ++reordered_;
  highest_ = std::max(highest_, number);
  if (ip.ecn == Ecn::kCe) ++ceSeen_;
  delays_.push_back(world_.now() - Time(Duration(load64(&payload[8]))));
}

Duration UdpFlow::delay(double share) const {
  if (delays_.empty()) return {};
  std::vector<Duration> sorted = delays_;
  std::sort(sorted.begin(), sorted.end());
  auto index = static_cast<size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(index, sorted.size() - 1)];
}

Ping::Ping(World& world, Node& from, Node& to, uint16_t id, Duration interval, unsigned count,
           bool v6)
    : world_(world),
      from_(from),
      id_(id),
      interval_(interval),
      left_(count),
      ip_{from.host(v6), to.host(v6), v6 ? ip::kIcmpV6 : ip::kIcmp, Ecn::kNotEct, true} {
  from.listen(ip_.protocol, id, [this](ByteView packet, const InnerPacket& ip) {
    ByteView message = packet.subspan(ip.l4Offset);
    if (message[0] != (ip.isV4() ? 0 : 129)) return void(++unreachable_);
    uint16_t sequence = load16(&message[6]);
    if (sequence < sentAt_.size()) rtts_.push_back(world_.now() - sentAt_[sequence]);
  });
  send();
}

void Ping::send() {
  if (left_ == 0) return;
  --left_;
  sentAt_.push_back(world_.now());
  Bytes payload(56);
  from_.send(echoPacket(ip_, false, id_, sequence_++, payload));
  world_.after(interval_, [this] { send(); });
}

}  // namespace braid::sim
