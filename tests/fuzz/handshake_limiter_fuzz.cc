// The responder's handshake server and limiter: handshake datagrams from strangers, from attackers
// that know the pin, and from honest initiators, sent by a few hosts. Checks that a sender without
// the pin never gets an answer, that a sender without a cookie takes no place and gets fewer bytes
// than it sent, and that all limits hold.
//
// Input: steps. A step has a byte for the action, a byte for the host, and the action's arguments.

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "simnet/fake_handshake.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"
#include "tunnel/peer/accepting.h"
#include "tunnel/peer/dialing.h"

namespace {

using namespace braid;
using Bytes = std::vector<uint8_t>;

// Actions beside those of the lowest three bits.
constexpr uint8_t kCrowd = 0x3f, kReload = 0x37;
constexpr unsigned kGateway = 0, kFriend = 1, kStranger = 2;
constexpr size_t kHosts = 8;

// Hosts 0..3 are IPv4; two of them are one host with two ports. The others are IPv6; two of them
// share a link.
Route routeOf(size_t host) {
  static constexpr std::array<const char*, kHosts> kEnds{
      "192.0.2.1:1000",     "192.0.2.1:1001",     "192.0.2.2:1000",         "198.51.100.1:9",
      "[2001:db8::1]:1000", "[2001:db8::2]:1000", "[2001:db8:0:1::1]:1000", "[fd00::1]:1000"};
  return {1, {}, *Endpoint::parse(kEnds[host])};
}

class World {
 public:
  explicit World(ByteView input) : in_(input), gateway_(sim::pinOf(kGateway), 1) {
    gateway_.setAcceptedPins({sim::pinOf(kFriend)});
    handshakeServer_ = std::make_unique<HandshakeServer>(pool_, gateway_, secrets_);
  }

  void run() {
    while (in_.remaining() > 0) {
      const uint8_t what = in_.u8();
      const size_t host = in_.u8() % kHosts;
      if ((what & 0x3f) == kCrowd) {
        crowd(host, what >> 6);
        continue;
      }
      if ((what & 0x3f) == kReload) {
        reload(what >> 6);
        continue;
      }
      switch (what % 8) {
        case 0:
          raw(host, take());
          break;
        case 1:
          knock(host, what, host);
          break;
        case 2:
          knock(host, what, in_.u8() % kHosts);
          break;
        case 3:
          repeat(host);
          break;
        case 4:
          flip(host);
          break;
        case 5:
          wait(1ms * (1 << what / 16));
          break;
        default:
          talk(host, what & 0x80 ? kStranger : kFriend, (what & 0x40) != 0);
          break;
      }
    }
    for (int i = 0; i < 1000 && handshakeServer_->nextDeadline() != kNever; ++i) {
      now_ = std::max(now_, handshakeServer_->nextDeadline());
      handshakeServer_->onTimer(now_);
      listen(nullptr);
    }
    CHECK(handshakeServer_->size() == 0);
    handshakeServer_.reset();
    CHECK(pool_.inUse() == 0);
  }

 private:
  ByteView take() {
    const size_t size = in_.u16() % 1300;
    return in_.take(std::min(size, in_.remaining()));
  }

  /// Takes the responder's answers and returns their number. `to`: the route that all must have;
  /// nullptr: any.
  size_t listen(const Route* to) {
    size_t count = 0;
    for (Datagram d; handshakeServer_->pollDatagram(d); ++count) {
      CHECK(count < HandshakeServer::kMaxReplies);
      CHECK(!to || d.route == *to);
      said_ = Bytes(d.bytes.view().begin(), d.bytes.view().end());
      CHECK(said_.size() <= kMaxHandshakeDatagram);
      auto opened = seal_.open(d.bytes.span());
      CHECK(opened);
      for (size_t host = 0; host < kHosts; ++host) {
        if (routeOf(host) != d.route) continue;
        if (opened->header.kind == HandshakeKind::kCookieRequest)
          std::ranges::copy(opened->body, cookies_[host].begin());
        if (initiators_[host]) initiators_[host]->onDatagram(said_, now_);
      }
    }
    for (HandshakeServer::Outcome o; handshakeServer_->pollOutcome(o);)
      CHECK(o.secrets ? o.secrets->peer == sim::pinOf(kFriend) : !o.error.empty());
    CHECK(handshakeServer_->size() <= HandshakeServer::kMaxRunning + HandshakeServer::kMaxDone);
    return count;
  }
  std::optional<Drop> put(const Route& from, ByteView datagram) {
    // a copy of the exact size, because it is opened in place
    Bytes copy(datagram.begin(), datagram.end());
    return handshakeServer_->onDatagram(from, copy, now_);
  }

  /// Many hosts of a network (or of many) begin a handshake each, and go no further.
  void crowd(size_t network, uint8_t kind) {
    const size_t count = std::min<size_t>(in_.u8() % 160, crowd_);
    crowd_ -= count;
    for (size_t number = 0; number < count; ++number) {
      Route from{1, {}, *Endpoint::parse("10.0.0.0:1")};
      std::array<uint8_t, 16>& bytes = from.remote.address.bytes;
      bytes[1] = static_cast<uint8_t>(network + (kind & 1 ? number : 0));
      bytes[3] = static_cast<uint8_t>(kind & 2 ? 1 : number);
      from.remote.port = static_cast<uint16_t>(1 + number);
      ClientHandshake stranger(friend_, secrets_, sim::pinOf(kGateway), now_);
      for (int round = 0; round < 2; ++round) {
        Packet said = pool_.allocate();
        if (!said || !stranger.pollDatagram(said)) break;
        put(from, said.view());
        for (Datagram d; handshakeServer_->pollDatagram(d);)
          if (d.route == from && round == 0) stranger.onDatagram(d.bytes.view(), now_);
      }
      listen(nullptr);
    }
  }
  /// The gateway's configuration is read again.
  void reload(uint8_t kind) {
    if (kind & 1) {
      handshakeServer_->setListening(false);
      CHECK(handshakeServer_->size() == 0);
      Bytes hello = last_;
      if (!hello.empty()) CHECK(put(routeOf(0), hello) == Drop::kHandshakeGarbage);
      handshakeServer_->setListening(true);
    }
    handshakeServer_->setPeers(kind & 2 ? std::vector<Pin>{} : std::vector{sim::pinOf(kFriend)});
    handshakeServer_->welcome(routeOf(4).remote.address, sim::pinOf(kFriend));
  }

  /// A notice is the same when it is written again.
  void notices(ByteView bytes) {
    Packet restart = pool_.allocate(), key = pool_.allocate();
    if (auto notice = readRestartNotice(bytes)) {
      writeRestartNotice(*notice, restart);
      CHECK(std::ranges::equal(restart.view(), bytes));
    }
    if (auto notice = readKeyNotice(bytes)) {
      writeKeyNotice(*notice, key);
      CHECK(std::ranges::equal(key.view(), bytes));
    }
  }
  void raw(size_t host, ByteView bytes) {
    notices(bytes);
    const size_t before = handshakeServer_->size();
    CHECK(put(routeOf(host), bytes).has_value());
    CHECK(listen(nullptr) == 0 && handshakeServer_->size() == before);
    if (initiators_[host]) CHECK(!initiators_[host]->onDatagram(bytes, now_));
    Bytes copy(bytes.begin(), bytes.end());
    CHECK(!seal_.open(copy));
  }
  /// An attacker that knows the pin sends any content, with the cookie that was given to host
  /// `cookieOf`.
  void knock(size_t host, uint8_t what, size_t cookieOf) {
    HandshakeHeader header;
    header.kind = static_cast<HandshakeKind>(0x20 + (what & 0x40 ? in_.u8() % 3 : 0));
    store64(header.id.data(), in_.u8() % 4);
    store64(header.nonce.data(), what & 0x20 ? in_.u8() : ++nonces_ << 8);
    if (what & 0x10) header.cookie = cookies_[cookieOf];
    const bool hasCookie = header.cookie == cookies_[host] && header.cookie != HandshakeCookie{};
    ByteView body = take();
    Packet datagram = pool_.copy(body.first(std::min(body.size(), kMaxHandshakeBody)));
    if (datagram.empty() || !seal_.seal(header, datagram)) return;
    last_ = Bytes(datagram.view().begin(), datagram.view().end());
    const uint64_t begun = gateway_.accepted();
    const size_t places = handshakeServer_->size();
    const Route from = routeOf(host);
    std::optional<Drop> drop = put(from, last_);
    if (header.kind != HandshakeKind::kInitiator) CHECK(drop == Drop::kHandshakeGarbage);
    if (!hasCookie) CHECK(gateway_.accepted() == begun && handshakeServer_->size() <= places);
    const size_t answers = listen(nullptr);
    if (!hasCookie && places == 0)
      CHECK(answers <= 1 && (answers == 0 || said_.size() < last_.size()));
  }
  /// A recorded datagram is replayed.
  void repeat(size_t host) {
    if (last_.empty()) return;
    put(routeOf(host), last_);
    listen(nullptr);
    const size_t before = handshakeServer_->size();
    CHECK(put(routeOf(host), last_).has_value());
    CHECK(listen(nullptr) == 0 && handshakeServer_->size() == before);
  }
  void flip(size_t host) {
    const size_t bit = in_.u16();
    if (last_.empty()) return;
    Bytes bad = last_;
    bad[bit / 8 % bad.size()] ^= static_cast<uint8_t>(1 << bit % 8);
    CHECK(put(routeOf(host), bad).has_value());
    CHECK(listen(nullptr) == 0);
  }
  void wait(Duration time) {
    now_ += time;
    handshakeServer_->onTimer(now_);
    listen(nullptr);
  }
  /// Sends the datagrams of a real initiator.
  void talk(size_t host, unsigned who, bool anew) {
    sim::FakeHandshakeProvider& provider = who == kFriend ? friend_ : stranger_;
    auto& initiator = initiators_[host];
    if (!initiator || anew)
      initiator = std::make_unique<ClientHandshake>(provider, secrets_, sim::pinOf(kGateway), now_);
    initiator->onTimer(now_);
    for (Packet p = pool_.allocate(); initiator->pollDatagram(p); p = pool_.allocate()) {
      last_ = Bytes(p.view().begin(), p.view().end());
      p.reset();
      const Route from = routeOf(host);
      put(from, last_);
      listen(&from);
    }
  }

  Reader in_;
  PacketPool pool_{2048, 1024};
  SecretRandom secrets_{knownKey(1)};
  sim::FakeHandshakeProvider gateway_;
  sim::FakeHandshakeProvider friend_{sim::pinOf(kFriend), 2}, stranger_{sim::pinOf(kStranger), 3};
  std::unique_ptr<HandshakeServer> handshakeServer_;
  HandshakeEnvelope seal_{HandshakeEnvelope::Side::kInitiator, sim::pinOf(kGateway)};
  Time now_{1h};
  uint64_t nonces_ = 0;
  size_t crowd_ = 480;  ///< hosts that may still come in crowds, because each takes its time
  std::array<HandshakeCookie, kHosts> cookies_{};
  std::array<std::unique_ptr<ClientHandshake>, kHosts> initiators_;
  Bytes last_;  ///< sent to the responder
  Bytes said_;  ///< by the responder
};

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  World({data, size}).run();
}
