#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tests/raw_peer.h"
#include "tests/unit/tunnel/session/kept_events.h"
#include "tests/unit/tunnel/session/kept_packets.h"
#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/session/session.h"

namespace braid::test {

/// A real responder session and an initiator played by the test, which has the session's keys.
struct RawPeerTest : testing::Test {
  PacketPool pool;
  SecretRandom secretRandom{knownKey(1)};
  SessionOptions options;
  SharedResources shared;
  KeptEvents events;
  KeptPackets packets;  ///< of the hub
  StreamRateLimits rations;
  Time now = Time{} + 1s;
  Route home{1, *Address::parse("203.0.113.2"), *Endpoint::parse("198.51.100.1:40000")};
  SessionSecrets secrets;
  std::optional<RawPeer> peer;
  std::unique_ptr<Session> hub;
  PacketNumber next{};                       ///< of the peer's subflow 0
  std::map<Route, uint64_t> received, sent;  ///< bytes, by the hub
  std::vector<PathToken> challenges;
  PacketNumber largest{};  ///< of the hub's subflow 0

  explicit RawPeerTest(size_t largestDatagram = 2048) : pool(largestDatagram, 4096) {}

  void start() {
    secrets.initiatorSecret.fill(1);
    secrets.responderSecret.fill(2);
    secrets.sessionId = 7;
    using Role = KeySchedule::Role;
    peer.emplace(secrets, Role::kInitiator, now);
    SessionContext context{pool, secretRandom, events.in(), packets.in(), rations, shared};
    hub = std::make_unique<Session>(secrets, Role::kResponder, options, context, now);
    hub->paths().setKeepalive(0s);
  }
  std::optional<Drop> say(ByteView frames, const Route& from, PacketNumber pn,
                          SubflowId subflow = 0_subflow) {
    Packet datagram = peer->seal(subflow, pn, frames, pool);
    received[from] += datagram.size();
    return hub->onDatagram(peer->header(subflow, pn), from, Ecn::kNotEct, std::move(datagram), now);
  }
  std::optional<Drop> say(ByteView frames, const Route& from) { return say(frames, from, next++); }
  std::optional<Drop> say(ByteView frames) { return say(frames, home); }
  /// Reads the hub's datagrams.
  void listen() {
    Datagram out;
    while (hub->pollDatagram(out, now)) {
      sent[out.route] += out.bytes.size();
      std::optional<RawPeer::Opened> opened = peer->open(out, now);
      ASSERT_TRUE(opened);
      largest = std::max(largest, opened->pn);
      onDatagram(*opened, out.bytes.size());
      for (const WireFrame& frame : opened->frames) {
        if (const auto* challenge = std::get_if<PathChallengeFrame>(&frame))
          challenges.push_back(challenge->token);
        onFrame(frame);
      }
      out.bytes.reset();
    }
  }
  void step(Duration d) {
    now += d;
    hub->onTimer(now);
    listen();
  }
  /// Lets the hub validate the peer's address.
  void prove() {
    say(std::vector<uint8_t>(1200 - kHeaderSize - kTagSize, 0));
    listen();
    ASSERT_EQ(challenges.size(), 1u);
    say(framesOf(PathResponseFrame{challenges[0]}));
    listen();
    ASSERT_TRUE(hub->anyUsable());
  }
  uint64_t drops(Drop cause) { return hub->drops()[static_cast<size_t>(cause)]; }
  SessionStatus status() {
    SessionStatus s;
    hub->fill(s, now);
    return s;
  }

  // ---- called by listen() for each datagram and frame; tests may override them

  virtual void onDatagram(const RawPeer::Opened&, size_t /*size*/) {}
  virtual void onFrame(const WireFrame&) {}
};

}  // namespace braid::test
