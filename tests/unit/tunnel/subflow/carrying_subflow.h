#pragma once

// A subflow that carries data, to test its protection and its packets' fates.

#include <gtest/gtest.h>

#include "tests/unit/tunnel/queue/some_flows.h"
#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

/// An active subflow that has sent one PING, with a new data tracker.
struct CarryingSubflow : testing::Test {
  static constexpr Duration kRtt = 40ms;
  PacketPool pool{1500, 4000};
  SomeFlows flows;
  Flow& flow = flows.make();
  Flow& other = flows.make(true, 2);
  SubflowOptions options;
  DataTracker dataTracker{3s};
  ControllerGroup group;
  SubflowEvents events;
  SecretRandom random{knownKey(3)};
  Time now = Time{} + 1s;
  Route home{1, {}, *Endpoint::parse("192.0.2.1:4433")};
  std::unique_ptr<Subflow> s;

  void SetUp() override {
    s = std::make_unique<Subflow>(3_subflow, "wifi", home, true, options, events, dataTracker,
                                  group, random, now);
    auto frame = s->takePathFrame(now);
    now += kRtt;
    s->onPathResponse(frame->challenge->token, frame->route, now);
    ASSERT_TRUE(s->usable());
    ping();
    now += kRtt;
    ack(0_pn);
  }
  UnitRef make(Flow& f) { return dataTracker.create(f, pool.copy(std::array<uint8_t, 1>{}), now); }
  PacketNumber carry(std::initializer_list<UnitRef> data,
                     SentPacket::Role role = SentPacket::Role::kOrdinary) {
    PacketNumber pn = s->sender().sent().next();
    SentPacket& p = s->onSent(1200, true, now);
    p.role = role;
    for (UnitRef d : data) {
      p.data[p.dataCount++] = d;
      if (role == SentPacket::Role::kCopy) {
        dataTracker.onCopied(d);
      } else {
        dataTracker.onSent(d, s->id(), pn);
      }
    }
    return pn;
  }
  PacketNumber send(Flow& f) { return carry({make(f)}); }
  PacketNumber send() { return send(flow); }
  PacketNumber ping() {
    s->onSent(40, true, now);
    return s->sender().sent().next() - 1;
  }
  void ack(PacketNumber first, PacketNumber last) {
    AckFrame frame;
    frame.subflow = s->id();
    frame.count = 1;
    frame.ranges[0] = {first, last};
    s->onAck(frame, true, now);
  }
  void ack(PacketNumber pn) { ack(pn, pn); }
  UnitRef unit(PacketNumber pn, size_t i = 0) { return s->sender().sent().at(pn).data[i]; }
  /// Three later packets are acknowledged, so that packet `pn` counts as lost.
  void lose(PacketNumber pn) {
    PacketNumber first = ping();
    ping();
    ping();
    now += kRtt;
    ack(std::max(first, pn + 1), first + 2);
  }
};

}  // namespace braid
