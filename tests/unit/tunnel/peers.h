#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tunnel/peer.h"

/// Peers that nobody calls, for tests of what lies around them.
namespace braid::test {

class Peers final : PeerOwner, HandshakeProvider {
 public:
  explicit Peers(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      PeerOptions peer;
      peer.name = std::to_string(i);
      PeerOwner& owner = *this;
      HandshakeProvider& handshakes = *this;
      peers_.push_back(std::make_unique<Peer>(peer, options_, pool_, handshakes, owner, Random(i)));
    }
  }
  Peer& operator[](size_t i) { return *peers_[i]; }

 private:
  void onDelivered(Peer&, Packet) override {}
  void onTooLarge(Peer&, ByteView) override {}
  void onPacketDropped(ByteView) override {}
  void onEvent(Event) override {}
  void onDrop(Drop, uint64_t) override {}
  bool addSession(Peer&, Session&) override { return false; }
  void removeSession(uint32_t) override {}
  std::unique_ptr<Handshake> initiate(const Pin&, Time) override { return nullptr; }
  HelloAnswer onHello(const Endpoint&, ByteView, Packet&, Time) override { return {}; }
  void setAcceptedPins(std::vector<Pin>) override {}

  TunnelOptions options_;
  PacketPool pool_{2048, 64};
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace braid::test
