#pragma once

// The packet lane with its DRR scheduler, and packets that carry their flow's number.

#include <algorithm>
#include <vector>

#include "inet/ip.h"
#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/queue/packet_queue.h"

namespace braid {

constexpr Time at(Duration d) {
  return Time{} + d;
}

inline FlowKey key(uint16_t n) {
  FlowKey k;
  k.family = Address::Family::kV4;
  k.protocol = 6;
  k.sport = n;
  k.dport = 443;
  return k;
}

struct PacketLaneBench {
  static constexpr size_t kPayload = 3000;
  /// The memory that a packet takes, independent of its length.
  static constexpr size_t kBuffer = PacketPool::kHeadroom + kPayload + PacketPool::kTailroom;

  /// The minimum size of a gateway's buffers.
  static constexpr size_t kUsualPayload = 2048;

  PacketPool pool;
  InnerFlowTable flows;
  DrrScheduler round;
  PacketQueues lane;
  DataTracker dataTracker{3s};

  explicit PacketLaneBench(PacketQueuesOptions o = {}, FlowTableOptions f = {},
                           size_t payload = kPayload)
      : pool(payload, 40000), flows(f, 1), lane(o, flows, round) {}

  /// A packet that looks like IPv4 with ECT(0). Its flow's number is behind the header.
  Packet make(uint16_t n, size_t size) {
    Packet p = pool.allocate();
    p.append(size);
    std::fill_n(p.data(), size, uint8_t{0});
    p.data()[0] = 0x45;
    p.data()[1] = static_cast<uint8_t>(Ecn::kEct0);
    store16(p.data() + 20, n);
    return p;
  }
  std::optional<Drop> in(uint16_t n, size_t size = 1000, Time now = at(1s), bool reliable = true,
                         bool ect = false, PacketHint hint = {}) {
    return lane.enqueue(make(n, size), key(n), reliable, ect, now, hint);
  }
  /// Takes the next packet, with its own DrrCursor. Returns an empty packet when there is none.
  Packet take(Time now = at(1s)) {
    DrrCursor walk(round);
    return walk.peek(now).unit ? walk.take() : Packet();
  }
  /// The flow number of the next packet; -1 when there is none.
  int out(Time now = at(1s)) {
    Packet p = take(now);
    return p ? load16(p.data() + 20) : -1;
  }
  std::vector<int> outs(size_t n, Time now = at(1s)) {
    std::vector<int> v;
    while (n-- > 0) v.push_back(out(now));
    return v;
  }
  /// Sends the next packet, which is in flight until it is delivered; nullptr when there is none.
  UnitRef send(Time now = at(1s)) {
    DrrCursor walk(round);
    Candidate offer = walk.peek(now);
    if (!offer.unit) return nullptr;
    UnitRef unit = dataTracker.create(*offer.flow, walk.take(), now);
    dataTracker.onSent(unit, 0_subflow, 0_pn);
    return unit;
  }
  void deliver(UnitRef unit) {
    dataTracker.onDelivered(unit, true);
    dataTracker.release(unit);
  }
  const Flow* flow(uint16_t n) const { return flows.find(key(n)); }
  uint64_t drops(Drop cause) const { return lane.drops()[static_cast<size_t>(cause)]; }
};

using Outs = std::vector<int>;

}  // namespace braid
