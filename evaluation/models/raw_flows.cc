#include "evaluation/models/raw_flows.h"

#include <algorithm>
#include <array>

#include "inet/ip.h"

namespace braid::sim {

namespace {
constexpr std::array<uint8_t, 9000> kPayload{};
constexpr size_t kRequestBytes = 100;
constexpr uint16_t kWindow = 65535;
}  // namespace

MessageFlow::MessageFlow(World& world, Node& client, Node& server, uint16_t port,
                         MessageOptions options)
    : world_(world),
      client_(client),
      server_(server),
      options_(options),
      port_(port),
      started_(world.now()),
      seen_((options.bytes + options.mss - 1) / options.mss),
      missing_(seen_.size()) {
  client.listen(ip::kTcp, port, [this](ByteView, const InnerPacket& i) { onSegment(i); });
  server.listen(ip::kTcp, port, [this](ByteView, const InnerPacket&) { onRequest(); });
  IpFields ip{client.host(), server.host(), ip::kTcp, Ecn::kEct0, true};
  client.send(tcpPacket(ip, {port, port, 1, 1, TcpFields::kAck | TcpFields::kPsh, kWindow, 0, 0,
                             ByteView(kPayload).first(kRequestBytes)}));
}

void MessageFlow::onRequest() {
  if (answered_) return;
  answered_ = true;
  size_t atOnce = options_.ahead > 0 ? std::min(options_.ahead, seen_.size()) : seen_.size();
  for (size_t i = 0; i < atOnce; ++i) sendNext();
}

void MessageFlow::sendNext() {
  if (sent_ == options_.bytes) return;
  IpFields ip{server_.host(), client_.host(), ip::kTcp, Ecn::kEct0, true};
  size_t size = std::min<uint64_t>(options_.mss, options_.bytes - sent_);
  auto seq = static_cast<uint32_t>(1 + sent_);
  sent_ += size;
  uint8_t flags = TcpFields::kAck | (sent_ == options_.bytes ? TcpFields::kPsh : 0);
  server_.send(tcpPacket(ip, {port_, port_, seq, 1 + kRequestBytes, flags, kWindow, 0, 0,
                              ByteView(kPayload).first(size)}));
}

void MessageFlow::onSegment(const InnerPacket& ip) {
  if (!ip.tcp || ip.tcp->payloadLength == 0) return;
  size_t index = (ip.tcp->seq - 1) / options_.mss;
  if (index >= seen_.size() || seen_[index]) return;
  seen_[index] = true;
  sendNext();
  if (--missing_ > 0) return;
  finished_ = world_.now();
  if (onDone) onDone();
}

Saturation::Saturation(World& world, Node& client, Node& server, uint16_t port, uint16_t mss,
                       size_t ahead, uint64_t bytes)
    : world_(world), client_(client), server_(server), port_(port), mss_(mss), bytes_(bytes) {
  client.listen(ip::kTcp, port, [this](ByteView, const InnerPacket& ip) {
    if (!ip.tcp || ip.tcp->payloadLength == 0) return;
    received_ += ip.tcp->payloadLength;
    if (received_ >= bytes_ && doneAt_ == kNever) doneAt_ = world_.now();
    if (!stopped_ && sent_ < bytes_) send();
  });
  add(ahead);
}

void Saturation::send() {
  IpFields ip{server_.host(), client_.host(), ip::kTcp, Ecn::kEct0, true};
  server_.send(tcpPacket(ip, {port_, port_, next_, 1, TcpFields::kAck, kWindow, 0, 0,
                              ByteView(kPayload).first(mss_)}));
  next_ += mss_;
  sent_ += mss_;
}

uint16_t segmentSize(const Node& node, size_t spare) {
  size_t headers = ip::kV4Header + ip::kTcpHeader;
  return static_cast<uint16_t>(node.status().peers.at(0).innerMtu - headers - spare);
}

}  // namespace braid::sim
