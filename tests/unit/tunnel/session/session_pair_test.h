#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/unit/tunnel/session/kept_events.h"
#include "tests/unit/tunnel/session/kept_packets.h"
#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/session/session.h"

namespace braid::test {

/// Two sessions of the same keys, joined by a wire without delay that can be cut.
struct SessionPairTest : testing::Test {
  using Role = KeySchedule::Role;

  PacketPool pool{9216, 4096};
  SecretRandom random{knownKey(1)};
  SessionOptions options;
  SharedResources shared;
  KeptPackets edgeEnd, hubEnd;
  KeptEvents events;
  StreamRateLimits rations;
  Time now = Time{} + 1s;
  std::unique_ptr<Session> edge, hub;
  /// The kernel says where a datagram arrived, so both know their local address.
  Route edgeRoute{1, *Address::parse("198.51.100.1"), *Endpoint::parse("203.0.113.2:4433")};
  Route hubRoute{9, *Address::parse("203.0.113.2"), *Endpoint::parse("198.51.100.1:40000")};
  Route configured{1, {}, edgeRoute.remote};
  bool cut = false;
  std::vector<Drop> refused;

  std::unique_ptr<Session> make(const SessionSecrets& secrets, Role role, KeptPackets& packets) {
    SessionContext context{pool, random, events.in(), packets.in(), rations, shared};
    auto made = std::make_unique<Session>(secrets, role, options, context, now);
    made->paths().setKeepalive(0s);
    return made;
  }
  /// Makes both sessions and validates their only subflow.
  void start(const SessionSecrets& secrets) {
    edge = make(secrets, Role::kInitiator, edgeEnd);
    hub = make(secrets, Role::kResponder, hubEnd);
    ASSERT_TRUE(edge->openSubflow("a", "wifi", configured, now));
    run(1s);
    ASSERT_TRUE(edge->anyUsable() && hub->anyUsable());
  }
  /// Carries the next datagram of `from` to `to`, where it arrives by that route, or loses it.
  /// False when there is none.
  virtual bool carry(Session& from, Session& to, const Route& arrival) = 0;
  void run(Duration d) {
    for (Time end = now + d; now < end; now += 1ms) {
      for (Session* s : {edge.get(), hub.get()}) s->onTimer(now);
      for (bool any = true; any;) {
        any = carry(*edge, *hub, hubRoute);
        any |= carry(*hub, *edge, edgeRoute);
      }
      edgeEnd.take();
      hubEnd.take();
    }
  }
  void offer(Session& from, uint16_t flow, size_t size = 100, PacketHint hint = {},
             bool reliable = true) {
    FlowKey key;
    key.sport = flow;
    Packet packet = pool.allocate();
    packet.append(size);
    EXPECT_FALSE(from.onInnerPacket(std::move(packet), key, reliable, false, now, hint));
  }
};

}  // namespace braid::test
