#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tunnel/peer/handshake.h"
#include "tunnel/peer/peer_set.h"
#include "tunnel/wire/handshake_envelope.h"

/// Handshakes that do what a test says.
namespace braid::test {

/// A handshake that does what the test says.
struct PuppetHandshake final : Handshake {
  State now = State::kRunning;
  Time timer = kNever;
  int toSend = 0;
  std::vector<uint8_t> says = std::vector<uint8_t>(40);  ///< sent in each poll
  int polls = 0;
  int datagrams = 0;
  int timeouts = 0;
  std::vector<std::pair<Duration, Duration>> answers;  ///< arguments of onFirstAnswer()
  SessionSecrets kept;

  void onDatagram(ByteView, Time) override { ++datagrams; }
  void onFirstAnswer(Duration least, Duration most, Time) override {
    answers.emplace_back(least, most);
  }
  void onTimer(Time) override {
    ++timeouts;
    timer = kNever;
  }
  bool pollDatagram(Packet& out) override {
    ++polls;
    if (toSend == 0) return false;
    --toSend;
    std::ranges::copy(says, out.append(says.size()));
    return true;
  }
  Time deadline() const override { return timer; }
  State state() const override { return now; }
  const SessionSecrets& secrets() const override { return kept; }
  void forgetSecrets() override { kept.erase(); }
  std::string_view error() const override { return now == State::kFailed ? "it failed" : ""; }
};

/// Makes handshakes and records them. The owner of a handshake may already have destroyed it.
struct PuppetProvider final : HandshakeProvider {
  Pin pin{7};
  int toSend = 0;  ///< of each from its beginning
  std::vector<PuppetHandshake*> made;

  const Pin& ownPin() const override { return pin; }
  std::unique_ptr<Handshake> initiate(const Pin&, Time) override { return make(); }
  std::unique_ptr<Handshake> accept(Time) override { return make(); }
  void setAcceptedPins(std::vector<Pin>) override {}

 private:
  std::unique_ptr<Handshake> make() {
    auto handshake = std::make_unique<PuppetHandshake>();
    handshake->toSend = toSend;
    made.push_back(handshake.get());
    return handshake;
  }
};

/// An attacker that knows the responder's pin and can put anything into the handshake envelope.
class Knocker {
 public:
  explicit Knocker(const Pin& responder, uint64_t seed = 1)
      : seal_(HandshakeEnvelope::Side::kInitiator, responder), random_(seed) {}

  HandshakeHeader header;  ///< the nonce is drawn by datagram()
  std::vector<uint8_t> datagram(ByteView body) {
    for (uint8_t& byte : header.nonce) byte = static_cast<uint8_t>(random_.next());
    Packet packet = pool_.copy(body);
    if (!seal_.seal(header, packet)) throw std::runtime_error("not sealed");
    return {packet.view().begin(), packet.view().end()};
  }
  /// A responder's message without its envelope; nullopt when the envelope is not this responder's.
  std::optional<HandshakeEnvelope::Opened> open(ByteSpan datagram) { return seal_.open(datagram); }
  /// Opens a cookie request and stores its cookie. False when it is not a cookie request.
  bool takeCookie(ByteSpan request) {
    auto opened = open(request);
    if (!opened || opened->header.kind != HandshakeKind::kCookieRequest) return false;
    std::ranges::copy(opened->body, header.cookie.begin());
    return true;
  }
  /// A ClientHello in a DTLS record (only the parts that the core checks), or a later flight.
  static std::array<uint8_t, 60> record(uint8_t message) {
    std::array<uint8_t, 60> bytes{22, 0xfe, 0xfd};
    bytes[13] = message;
    return bytes;
  }
  static std::array<uint8_t, 60> hello() { return record(1); }

 private:
  PacketPool pool_{2048, 4};
  HandshakeEnvelope seal_;
  Random random_;
};

/// The answer of the responder with this pin to an initiator's datagram: the same body. Opens the
/// datagram in place.
inline std::vector<uint8_t> answerTo(ByteSpan datagram, const Pin& responder) {
  HandshakeEnvelope seal(HandshakeEnvelope::Side::kResponder, responder);
  auto opened = seal.open(datagram);
  if (!opened) throw std::runtime_error("not sealed for this responder");
  HandshakeHeader header = opened->header;
  header.kind = HandshakeKind::kResponder;
  PacketPool pool(2048, 1);
  Packet body = pool.copy(opened->body);
  if (!seal.seal(header, body)) throw std::runtime_error("not sealed");
  return {body.view().begin(), body.view().end()};
}

}  // namespace braid::test
