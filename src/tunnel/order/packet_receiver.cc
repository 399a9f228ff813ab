#include "tunnel/order/packet_receiver.h"

#include <utility>

#include "tunnel/wire/header.h"

namespace braid {

namespace {
/// Held packets are released early while less than 1/kHoldReserve of the pool's buffers is free.
constexpr size_t kHoldReserve = 16;
/// Time between two searches for state that may be freed.
constexpr Duration kLookInterval = 10s;
}  // namespace

Packet PacketReceiver::onData(const DataFrame& frame, Packet packet, Time now) {
  if (frame.flow < kDatagramFlow) {
    if (!admits(order_.growth(frame.flow))) return {};
    if (pool_.limit() - pool_.inUse() < pool_.limit() / kHoldReserve) order_.releaseOldest();
    order_.onPacket(frame.flow, expandDsn(frame.dsn, order_.next(frame.flow)), std::move(packet),
                    now);
    setUsed(footprint());
    return {};
  }
  DuplicateFilter* filter = timely(frame.flow, now);
  if (!filter) return {};
  bool isNew = filter->accept(expandDsn(frame.dsn, filter->next()));
  setUsed(footprint());  // may free the filter
  if (isNew) {
    count(packet);
    return packet;
  }
  ++timelyDuplicates_;
  return {};
}

bool PacketReceiver::poll(Packet& out) {
  if (!order_.poll(out)) return false;
  count(out);
  return true;
}

void PacketReceiver::count(const Packet& packet) {
  ++counts_.innerReceivedPackets;
  counts_.innerReceivedBytes += packet.size();
}

void PacketReceiver::onSkip(const SkipFrame& skip, Time now) {
  if (!admits(order_.growth(skip.flow))) return;
  order_.skip(skip.flow, skip.first, skip.count, now);
  setUsed(footprint());
}

void PacketReceiver::onTimer(Time now) {
  released_ = false;
  order_.onTimer(now);
  if (now < nextLook_) return;
  nextLook_ = now + kLookInterval;
  forget(now - kForget);
}

DropCounts PacketReceiver::drops() const {
  DropCounts counts = order_.drops();
  counts[static_cast<size_t>(Drop::kDuplicate)] += timelyDuplicates_;
  counts[static_cast<size_t>(Drop::kFlowTableFull)] += refused_;
  return counts;
}

bool PacketReceiver::admits(size_t more) {
  if (more == 0 || makeRoom(more)) return true;
  ++refused_;
  return false;
}

// nullptr when no memory is left for it.
DuplicateFilter* PacketReceiver::timely(FlowNumber flow, Time now) {
  constexpr size_t kPage = std::tuple_size_v<decltype(TimelyPage::filters)>;
  size_t at = flow - kDatagramFlow;
  if (at / kPage >= timely_.size() || !timely_[at / kPage]) {
    if (!admits(sizeof(TimelyPage))) return nullptr;
    if (at / kPage >= timely_.size()) timely_.resize(at / kPage + 1);
    timely_[at / kPage] = std::make_unique<TimelyPage>();
    ++timelyPages_;
  }
  TimelyPage& page = *timely_[at / kPage];
  page.used = now;
  return &page.filters[at % kPage];
}

void PacketReceiver::forget(Time before) {
  order_.freeIdle(before);
  for (std::unique_ptr<TimelyPage>& page : timely_) {
    if (!page || page->used > before) continue;
    page.reset();
    --timelyPages_;
  }
  setUsed(footprint());
}

// First frees what no packet needs. If that frees nothing, the memory is needed for held packets:
// releases all of them.
void PacketReceiver::reclaim() {
  size_t before = used();
  forget(Time::max());
  if (used() < before) return;
  order_.releaseAll();
  released_ = true;
  setUsed(footprint());
}

}  // namespace braid
