#pragma once

// Two gateways' cores joined by perfect links, without sockets or devices, to measure what a packet
// costs them.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/containers.h"
#include "simnet/fake_handshake.h"
#include "tunnel/tunnel.h"

namespace braid::sim {

/// Two cores with an established session, over `links` links of 10 ms in each direction.
class TwoCores {
 public:
  explicit TwoCores(size_t links, const TunnelOptions& options = {}) : options_(options) {
    PeerOptions far;
    far.name = "far";
    far.pin = pinOf(2);
    far.endpoints = {server_};
    far.prefixes = {*Prefix::parse("10.2.0.0/16")};
    PeerOptions near;
    near.name = "near";
    near.pin = pinOf(1);
    near.prefixes = {*Prefix::parse("10.1.0.0/16")};
    a_.setPeers({far}, now_);
    b_.setPeers({near}, now_);
    std::vector<UplinkSpec> uplinks;
    for (size_t i = 0; i < links; ++i) {
      uplinks.push_back(
          {"link" + std::to_string(i), {{static_cast<SocketId>(i), Address::Family::kV4}}, true});
      clients_.push_back(*Endpoint::parse("192.0.2." + std::to_string(i + 1) + ":1000"));
    }
    a_.setUplinks(uplinks, now_);
    for (Time end = now_ + 2s; now_ < end;) step();
  }
  ~TwoCores() {
    while (!toB_.empty()) toB_.popFront();
    while (!toA_.empty()) toA_.popFront();
  }

  /// Sends one inner packet of `size` bytes of one of `flows` TCP flows, from b to a.
  void send(size_t size, size_t flows) {
    Packet p = poolB_.allocate();
    uint8_t* h = p.append(size);
    std::fill_n(h, 40, uint8_t{0});
    h[0] = 0x45;
    store16(h + 2, static_cast<uint16_t>(size));
    h[9] = 6;
    store32(h + 12, 0x0a020001);
    store32(h + 16, 0x0a010001);
    store16(h + 20, static_cast<uint16_t>(count_++ % flows));
    h[32] = 0x50;
    b_.onInnerPacket(std::move(p), now_);
  }
  /// One turn of both drivers. Then `tick` of virtual time passes.
  void step(Duration tick = 100us) {
    deliver(toB_, b_);
    deliver(toA_, a_);
    a_.onTimer(now_);
    b_.onTimer(now_);
    poll(a_, toB_, true);
    poll(b_, toA_, false);
    now_ += tick;
  }
  Time now() const { return now_; }
  StreamApi& streamsOfA() { return a_.streams(); }
  StreamApi& streamsOfB() { return b_.streams(); }
  /// Inner packets that left the tunnel.
  uint64_t delivered() const { return delivered_; }

 private:
  struct Flight {
    Time at;
    Route from;
    Packet bytes;
  };
  void deliver(Ring<Flight>& wire, Tunnel& to) {
    while (!wire.empty() && wire.front().at <= now_) {
      Flight f = std::move(wire.front());
      wire.popFront();
      to.onDatagram(f.from, Ecn::kEct0, std::move(f.bytes), now_);
    }
  }
  void poll(Tunnel& from, Ring<Flight>& wire, bool up) {
    Datagram d;
    while (from.pollDatagram(d, now_)) {
      Route route{9, {}, up ? clients_[d.route.socket] : server_};
      if (!up) {
        for (size_t i = 0; i < clients_.size(); ++i) {
          if (clients_[i] == d.route.remote) route.socket = static_cast<SocketId>(i);
        }
      }
      wire.pushBack({now_ + 10ms, route, std::move(d.bytes)});
    }
    Packet inner;
    while (from.pollInnerPacket(inner)) ++delivered_;
    Event event;
    while (from.pollEvent(event)) {
    }
  }

  TunnelOptions options_;
  PacketPool poolA_{2048, 40000};
  PacketPool poolB_{2048, 40000};
  FakeHandshakeProvider handshakesA_{pinOf(1), 1};
  FakeHandshakeProvider handshakesB_{pinOf(2), 2};
  Endpoint server_ = *Endpoint::parse("198.51.100.1:4433");
  std::vector<Endpoint> clients_;
  Ring<Flight> toA_, toB_;
  Time now_ = Time{} + 1s;
  Tunnel a_{options_, poolA_, handshakesA_, knownKey(1)};
  Tunnel b_{options_, poolB_, handshakesB_, knownKey(2)};
  uint64_t count_ = 0;
  uint64_t delivered_ = 0;
};

}  // namespace braid::sim
