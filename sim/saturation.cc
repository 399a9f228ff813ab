#include "sim/saturation.h"

#include <array>

#include "inet/ip.h"

namespace braid::sim {

namespace {
constexpr std::array<uint8_t, 9000> kZeros{};
constexpr uint16_t kTcpWindow = 65535;
}  // namespace

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
  server_.send(tcpPacket(ip, {port_, port_, next_, 1, TcpFields::kAck, kTcpWindow, 0, 0,
                              ByteView(kZeros).first(mss_)}));
  next_ += mss_;
  sent_ += mss_;
}

}  // namespace braid::sim
