#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tunnel/handshake.h"
#include "tunnel/peer_set.h"

/// Handshakes and owners of peers that do what a test says.
namespace braid::test {

/// A handshake that does what the test says.
struct PuppetHandshake final : Handshake {
  State now = State::kRunning;
  Time timer = kNever;
  int toSend = 0;
  int datagrams = 0;
  int timeouts = 0;
  SessionSecrets kept;

  void onDatagram(ByteView, Time) override { ++datagrams; }
  void onTimer(Time) override {
    ++timeouts;
    timer = kNever;
  }
  bool pollDatagram(Packet& out) override {
    if (toSend == 0) return false;
    --toSend;
    out.append(40);
    return true;
  }
  Time deadline() const override { return timer; }
  State state() const override { return now; }
  const SessionSecrets& secrets() const override { return kept; }
  std::string_view error() const override { return now == State::kFailed ? "it failed" : ""; }
};

/// Makes them and remembers them; who owns one may have ended it.
struct PuppetProvider final : HandshakeProvider {
  enum class Verdict { kAccept, kCookie, kLongReply, kRefuse } verdict = Verdict::kAccept;
  std::vector<PuppetHandshake*> made;

  std::unique_ptr<Handshake> initiate(const Pin&, Time) override { return make(); }
  HelloAnswer onHello(const Endpoint&, ByteView bytes, Packet& out, Time) override {
    if (verdict == Verdict::kRefuse) return {};
    if (verdict != Verdict::kAccept) {
      out.append(bytes.size() + (verdict == Verdict::kLongReply ? 1 : 0));
      return {nullptr, true};
    }
    return {make(), false};
  }
  void setAcceptedPins(std::vector<Pin>) override {}

 private:
  std::unique_ptr<Handshake> make() {
    auto handshake = std::make_unique<PuppetHandshake>();
    made.push_back(handshake.get());
    return handshake;
  }
};

/// Wants nothing of what peers hand over.
struct PuppetOwner final : PeerOwner {
  void onDelivered(Peer&, Packet) override {}
  void onTooLarge(Peer&, ByteView) override {}
  void onPacketDropped(ByteView) override {}
};

}  // namespace braid::test
