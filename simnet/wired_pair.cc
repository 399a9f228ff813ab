#include "simnet/wired_pair.h"

#include <optional>

namespace braid::sim {

WiredPair::End::End(WiredPair& pair, std::string name, const char* v4, const char* v6,
                    const LinkOptions& link, uint64_t seed)
    : pair_(pair),
      name_(std::move(name)),
      v4_(address(v4)),
      v6_(address(v6)),
      link_(link, seed, pair.now()) {}

void WiredPair::End::listen(uint8_t protocol, uint16_t port, Handler handler) {
  handlers_[{protocol, port}] = std::move(handler);
}

void WiredPair::End::send(ByteView packet) {
  if (onSend) {
    std::optional<InnerPacket> parsed = parseInnerPacket(packet);
    if (parsed && !onSend(packet, *parsed)) return;
  }
  link_.push({{packet.begin(), packet.end()}}, packet.size(), pair_.now());
  wake();
}

void WiredPair::End::deliver(ByteView packet, const InnerPacket& parsed, uint8_t protocol,
                             uint16_t port) {
  auto handler = handlers_.find({protocol, port});
  if (handler != handlers_.end()) handler->second(packet, parsed);
}

void WiredPair::End::wake() {
  Time next = link_.nextDelivery();
  if (next >= wakeAt_) return;
  wakeAt_ = next;
  pair_.at(next, [this, next] {
    if (wakeAt_ != next) return;  // an earlier timer has replaced this one
    wakeAt_ = kNever;
    End& other = this == &pair_.left_ ? pair_.right_ : pair_.left_;
    while (std::optional<Carried> arrived = link_.pop(pair_.now())) {
      std::optional<InnerPacket> parsed = parseInnerPacket(arrived->bytes);
      if (!parsed) continue;
      auto at = static_cast<uint64_t>(pair_.now().time_since_epoch().count());
      pair_.hash_ = (pair_.hash_ ^ at ^ arrived->bytes.size()) * 0x9e3779b97f4a7c15;
      other.deliver(arrived->bytes, *parsed, parsed->protocol, parsed->dport);
    }
    wake();
  });
}

WiredPair::WiredPair(const LinkOptions& forth, const LinkOptions& back, uint64_t seed)
    : Simulation(seed),
      left_(*this, "left", "10.0.0.1", "fd00::1", forth, random().next()),
      right_(*this, "right", "10.0.0.2", "fd00::2", back, random().next()) {}

}  // namespace braid::sim
