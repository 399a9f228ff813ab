#include "tunnel/lane/packet_receiver.h"

#include <utility>

#include "tunnel/wire/header.h"

namespace braid {

namespace {
/// Nothing is held for order while less than this part of the buffers is free. Ours.
constexpr size_t kHoldReserve = 16;
}  // namespace

Packet PacketReceiver::onData(const DataFrame& frame, Packet packet, Time now) {
  ++counts_.innerReceivedPackets;
  counts_.innerReceivedBytes += packet.size();
  if (frame.flow < kDatagramFlow) {
    if (pool_.limit() - pool_.inUse() < pool_.limit() / kHoldReserve) order_.relieve();
    order_.onPacket(frame.flow, expandDsn(frame.dsn, order_.next(frame.flow)), std::move(packet), now);
    return {};
  }
  size_t index = frame.flow - kDatagramFlow;
  if (index >= timely_.size()) timely_.resize(index + 1);
  if (!timely_[index]) timely_[index] = std::make_unique<DuplicateFilter>();
  DuplicateFilter& filter = *timely_[index];
  if (filter.accept(expandDsn(frame.dsn, filter.next()))) return packet;
  ++timelyDuplicates_;
  return {};
}

DropCounts PacketReceiver::drops() const {
  DropCounts counts = order_.drops();
  counts[static_cast<size_t>(Drop::kDuplicate)] += timelyDuplicates_;
  return counts;
}

}  // namespace braid
