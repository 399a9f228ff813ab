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
  uint16_t slot = frame.flow & (kDatagramFlow - 1);
  if (frame.flow < kDatagramFlow) {
    if (pool_.limit() - pool_.inUse() < pool_.limit() / kHoldReserve) order_.relieve();
    order_.onPacket(slot, expandDsn(frame.dsn, order_.next(slot)), std::move(packet), now);
    return {};
  }
  if (slot >= timely_.size()) timely_.resize(slot + 1u);
  DuplicateFilter& filter = timely_[slot];
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
