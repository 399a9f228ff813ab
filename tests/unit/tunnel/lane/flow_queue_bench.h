#pragma once

// Flow queues with packets that know their flow's number.

#include <algorithm>
#include <vector>

#include "inet/ecn.h"
#include "tunnel/lane/data_ledger.h"
#include "tunnel/lane/flow_queues.h"

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

struct Bench {
  PacketPool pool{3000, 40000};
  FlowQueueOptions options;
  FlowQueues queues;
  DataLedger ledger{3s};

  explicit Bench(FlowQueueOptions o = {}) : options(o), queues(o, 1) {}

  /// A packet of an IPv4 look, ECT(0); its flow's number behind the header.
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
                         bool ect = false) {
    return queues.enqueue(make(n, size), key(n), reliable, ect, now);
  }
  /// The flow number of the next packet; -1 when there is none.
  int out(Time now = at(1s), Flow** flow = nullptr) {
    Flow* f = nullptr;
    Packet p = queues.pop(now, f);
    if (flow) *flow = f;
    return p ? load16(p.data() + 20) : -1;
  }
  std::vector<int> outs(size_t n, Time now = at(1s)) {
    std::vector<int> v;
    while (n-- > 0) v.push_back(out(now));
    return v;
  }
  /// The next packet leaves and is on its way until it is delivered; nullptr when there is none.
  const Datum* send(Time now = at(1s)) {
    Flow* flow = nullptr;
    Packet p = queues.pop(now, flow);
    if (!p) return nullptr;
    const Datum* datum = ledger.create(*flow, std::move(p), now);
    ledger.onSent(datum, 0, 0);
    return datum;
  }
  void deliver(const Datum* datum) {
    ledger.onDelivered(datum, true);
    ledger.forget(datum);
  }
  const Flow* flow(uint16_t n) const {
    const Flow* found = nullptr;
    queues.forEachFlow([&](const Flow& f) {
      if (f.key() == key(n)) found = &f;
    });
    return found;
  }
  uint64_t drops(Drop cause) const { return queues.drops()[static_cast<size_t>(cause)]; }
};

using Outs = std::vector<int>;

}  // namespace braid
