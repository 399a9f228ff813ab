#include "simnet/shim_host.h"

#include <optional>

#include "base/random.h"

namespace braid::sim {

namespace {
constexpr size_t kPacketBytes = 2000;
constexpr size_t kPackets = 4096;
/// A host has few flows at a time. The default table for thousands of flows would only waste
/// memory.
constexpr size_t kFlows = 4096;
}  // namespace

void ShimHost::listen(uint8_t protocol, uint16_t port, Handler handler) {
  handlers_[{protocol, port}] = std::move(handler);
}

void ShimHost::addShim(AckShimOptions options, uint64_t seed) {
  options.maxFlows = options.maxHalfOpen = kFlows;
  pool_ = std::make_unique<PacketPool>(kPacketBytes, kPackets);
  shim_ = std::make_unique<AckShim>(options, *pool_, nullptr,
                                    AckShim::Seeds{seed, Random(seed).next()});
}

void ShimHost::send(ByteView packet) {
  if (shim_) {
    std::optional<InnerPacket> parsed = parseInnerPacket(packet);
    if (parsed) shim_->onFromHost(packet, *parsed, timeline_.now());
  }
  transmit_({packet.begin(), packet.end()});
  pollShim();
}

void ShimHost::arrive(ByteView packet) {
  std::optional<InnerPacket> parsed = parseInnerPacket(packet);
  if (!parsed) return;
  auto verdict = AckShim::Verdict::kPass;
  if (shim_) verdict = shim_->onToHost(packet, *parsed, timeline_.now());
  if (verdict == AckShim::Verdict::kPass) deliver(packet);
  pollShim();
}

void ShimHost::deliver(ByteView packet) {
  std::optional<InnerPacket> parsed = parseInnerPacket(packet);
  if (!parsed) return;
  auto handler = handlers_.find({parsed->protocol, parsed->dport});
  if (handler != handlers_.end()) handler->second(packet, *parsed);
}

// Packets from the shim are delivered to the host by a later timer call, because the host may be in
// the middle of sending.
void ShimHost::pollShim() {
  if (!shim_) return;
  while (Packet packet = shim_->pollToHost()) {
    ByteView v = packet.view();
    timeline_.after(Duration(0), [this, bytes = Bytes(v.begin(), v.end())] { deliver(bytes); });
  }
  while (Packet packet = shim_->pollToPeer())
    transmit_({packet.view().begin(), packet.view().end()});
  armShim();
}

void ShimHost::armShim() {
  Time next = shim_->nextDeadline();
  if (next >= shimAt_) return;
  shimAt_ = next;
  timeline_.at(next, [this, next] {
    if (shimAt_ != next) return;  // an earlier one was armed
    shimAt_ = kNever;
    shim_->onTimer(timeline_.now());
    pollShim();
  });
}

}  // namespace braid::sim
