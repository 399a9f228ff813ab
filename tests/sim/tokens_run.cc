#include "tests/sim/tokens_run.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/raw_peer.h"
#include "tests/splitmix.h"
#include "tunnel/session/session.h"

namespace braid::sim {

namespace {

using Frames = std::vector<uint8_t>;

/// The frames of a datagram without any content.
Frames padded(Frames frames, size_t datagram) {
  frames.resize(std::max(frames.size(), datagram - kHeaderSize - kTagSize), kPaddingNumber);
  return frames;
}

Route routeOf(uint64_t host, uint16_t port = 4000) {
  std::string address =
      "192.0." + std::to_string(host / 250) + "." + std::to_string(1 + host % 250);
  return {1, *Address::parse("203.0.113.2"), {*Address::parse(address), port}};
}

/// The attacker's address, which the gateway has validated before the attack.
const Route kHome{1, *Address::parse("203.0.113.2"), *Endpoint::parse("198.51.100.1:40000")};

/// A gateway's session with a peer that is the attacker. The attacker sends anything from any
/// address, and sees what the gateway sends to any address. Each attack decides how much of that it
/// uses.
class Attack {
 public:
  explicit Attack(uint64_t seed)
      : dice(~seed), random_(knownKey(seed)), liar_(secrets(), Role::kInitiator, now) {
    SessionContext context{pool_, random_, events_, packetEvents_, rations_, shared_};
    gateway_ = std::make_unique<Session>(secrets(), Role::kResponder, options_, context, now);
  }

  Random dice;
  Time now = Time{} + 1s;
  /// The token of the last challenge sent to each address.
  std::map<Endpoint, PathToken> asked;
  uint64_t tokens = 0;

  /// The next packet number of a subflow. Some are skipped, as if packets had been lost.
  PacketNumber take(SubflowId subflow) {
    PacketNumber& next = next_[subflow.value()];
    if (dice.chance(0.2)) next += dice.below(4);
    return next++;
  }
  void say(const Frames& frames, const Route& from, SubflowId subflow = SubflowId(0)) {
    say(frames, from, subflow, take(subflow));
  }
  void say(const Frames& frames, const Route& from, SubflowId subflow, PacketNumber pn) {
    Packet datagram = liar_.seal(subflow, pn, frames, pool_);
    books_[from.remote].received += datagram.size();
    gateway_->onDatagram(liar_.header(subflow, pn), from, Ecn::kNotEct, std::move(datagram), now);
    while (!packets_.empty()) packets_.popFront();
  }
  /// Takes all datagrams that the gateway has to send.
  void listen() {
    Datagram out;
    while (gateway_->pollDatagram(out, now)) {
      Book& book = books_[out.route.remote];
      book.sent += out.bytes.size();
      book.note();
      std::optional<test::RawPeer::Opened> opened = liar_.open(out, now);
      if (!opened) continue;
      for (const WireFrame& frame : opened->frames) {
        if (const auto* challenge = std::get_if<PathChallengeFrame>(&frame)) {
          asked[out.route.remote] = challenge->token;
          ++tokens;
        }
      }
      if (opened->eliciting) toAck_[opened->subflow.value()].push_back(opened->pn);
      out.bytes.reset();
    }
  }
  /// Acknowledges the received packets from that address, as an honest peer would.
  void acknowledge(const Route& from, SubflowId subflow = SubflowId(0)) {
    for (PacketNumber pn : std::exchange(toAck_[subflow.value()], {})) {
      AckFrame ack;
      ack.subflow = subflow;
      ack.count = 1;
      ack.ranges[0] = {pn, pn};
      say(test::framesOf(ack), from, subflow);
    }
  }
  void pass(Duration time) {
    now += time;
    gateway_->onTimer(now);
    listen();
  }
  /// Gives the gateway something to send.
  void offer() {
    FlowKey key;
    key.sport = static_cast<uint16_t>(dice.below(50));
    Packet packet = pool_.allocate();
    packet.append(1 + dice.below(1000));
    gateway_->onInnerPacket(std::move(packet), key, dice.chance(0.5), false, now);
  }
  /// Sends a datagram from the address and answers the following challenge correctly. False when
  /// the gateway does not accept the address.
  bool prove(const Route& route) {
    say(padded({}, 1200), route);
    listen();
    if (!asked.contains(route.remote)) return false;
    say(test::framesOf(PathResponseFrame{asked[route.remote]}), route);
    books_[route.remote].isProven = true;
    listen();
    return isAt(route);
  }
  /// True when the gateway considers that address the attacker's on subflow 0.
  bool isAt(const Route& route) {
    SessionStatus status;
    gateway_->fill(status, now);
    for (const SubflowStatus& subflow : status.subflows) {
      if (subflow.id == 0)
        return subflow.state != "validating" && subflow.remote == route.remote.toString();
    }
    return false;
  }
  /// Checks that this run proves something. It does not when the session is over (a gateway without
  /// a session refuses everybody), or when the gateway refuses the peer's correct answer from a new
  /// address. Ends the attack, which is then at address `fresh`.
  std::string findBroken(const Route& fresh) {
    if (gateway_->over()) return "the session ended early";
    pass(1s);
    return prove(fresh) ? "" : "an address that answers was not proven at the end";
  }
  void addBooks(TokensResult& result) const {
    for (const auto& [remote, book] : books_) {
      if (book.isProven) continue;
      ++result.unprovenRoutes;
      result.bytesFromThere += book.received;
      result.bytesToThere += book.sent;
      result.bytesBeyond += book.beyond;
    }
  }

 private:
  using Role = KeySchedule::Role;
  /// Bytes received from and sent to an address.
  struct Book {
    uint64_t received = 0, sent = 0, beyond = 0;
    bool isProven = false;
    void note() { beyond = std::max(beyond, sent - std::min(sent, 3 * received)); }
  };
  static SessionSecrets secrets() {
    SessionSecrets secrets;
    secrets.initiatorSecret.fill(1);
    secrets.responderSecret.fill(2);
    secrets.sessionId = 7;
    return secrets;
  }

  PacketPool pool_{2048, 4096};
  SessionOptions options_;
  PacketEventQueue packets_;
  PacketEvents packetEvents_{packets_, nullptr};
  StreamRateLimits rations_;
  EventQueue queue_;
  std::string name_ = "attacker";
  PeerEvents events_{queue_, name_};
  SecretRandom random_;
  SharedResources shared_;
  test::RawPeer liar_;
  std::map<uint8_t, PacketNumber> next_;                ///< by subflow
  std::map<uint8_t, std::vector<PacketNumber>> toAck_;  ///< by subflow
  std::map<Endpoint, Book> books_;
  std::unique_ptr<Session> gateway_;
};

PathToken tokenOf(uint64_t number) {
  PathToken token;
  store64(token.data(), number);
  return token;
}

/// An attacker that sees the tokens sent to its own addresses, and then sends a datagram from a
/// victim's address. It must guess the token that is sent to the victim: it tries the numbers that
/// SplitMix64 would produce after the last token it saw.
void predict(uint64_t seed, TokensResult& result) {
  constexpr int kTries = 10, kGuesses = 12;
  Attack attack(seed);
  if (!attack.prove(kHome)) result.note("the first address was not proven");
  Route at = kHome;
  for (int i = 0; i < kTries; ++i) {
    Route own = routeOf(1000 + static_cast<uint64_t>(i));
    if (!attack.prove(own)) {
      result.note("an address that answers was not proven");
      return;
    }
    at = own;
    ++result.honestMoves;
    test::SplitMix guess = test::SplitMix::after(load64(attack.asked[own.remote].data()));
    Route victim = routeOf(static_cast<uint64_t>(i));
    attack.say(test::framesOf(PingFrame{}), victim);
    attack.listen();
    for (int k = 0; k < kGuesses && !attack.isAt(victim); ++k) {
      ++result.predictions;
      attack.say(test::framesOf(PathResponseFrame{tokenOf(guess.next())}), victim);
      attack.pass(1ms);
      result.predictedAccepted += attack.isAt(victim);
    }
    attack.say(test::framesOf(PingFrame{}), at);
    attack.pass(10ms);
  }
  result.tokensSeen += attack.tokens;
  attack.addBooks(result);
  result.note(attack.findBroken(routeOf(900)));
}

/// An attacker with an accomplice that sees the datagrams to the victim, and so the token. It
/// answers from its own addresses.
void answerFromElsewhere(uint64_t seed, TokensResult& result) {
  constexpr int kTries = 20;
  Attack attack(seed);
  if (!attack.prove(kHome)) result.note("the first address was not proven");
  for (uint64_t i = 0; i < kTries; ++i) {
    Route victim = routeOf(i);
    // Packet numbers older than the victim's, so that the gateway does not switch to the address
    // they come from.
    std::array<PacketNumber, 4> older;
    for (PacketNumber& pn : older) pn = attack.take(SubflowId(0));
    attack.say(test::framesOf(PingFrame{}), victim);
    attack.listen();
    auto asked = attack.asked.find(victim.remote);
    if (asked == attack.asked.end()) {
      result.note("a victim was not asked");
      return;
    }
    Route otherPort = routeOf(i, 4001);
    Route otherSocket = victim;
    otherSocket.socket = 2;
    std::array<Route, older.size()> places{kHome, otherPort, otherSocket, routeOf(500 + i)};
    Frames answer = test::framesOf(PathResponseFrame{asked->second});
    for (size_t k = 0; k < older.size(); ++k) {
      const Route& from = places[k];
      attack.say(answer, from, SubflowId(0), older[k]);
      attack.say(answer, from, SubflowId(1));
      ++result.strayAnswers;
      attack.listen();
      result.strayAccepted += !attack.isAt(kHome);
    }
    attack.pass(Duration(attack.dice.below(uint64_t(20'000'000))));
    attack.say(test::framesOf(PingFrame{}), kHome);
    attack.acknowledge(kHome);
  }
  result.tokensSeen += attack.tokens;
  attack.addBooks(result);
  result.note(attack.findBroken(routeOf(900)));
}

/// An attacker that claims victims' addresses and requests as many answers as possible to them.
/// `isHome`: it also has a validated address.
void elicit(uint64_t seed, bool isHome, TokensResult& result) {
  constexpr int kSteps = 600;
  Attack attack(seed);
  if (isHome && !attack.prove(kHome)) result.note("the first address was not proven");
  uint64_t victims = 1 + attack.dice.below(4);
  uint64_t subflows = 1 + attack.dice.below(4);
  Random& dice = attack.dice;
  for (int i = 0; i < kSteps; ++i) {
    Route from = routeOf(dice.below(victims));
    SubflowId subflow(static_cast<uint8_t>(dice.below(subflows + (isHome ? 1 : 0))));
    Frames frames;
    auto add = [&](const Frames& more) { frames.insert(frames.end(), more.begin(), more.end()); };
    if (dice.chance(0.7)) add(test::framesOf(PingFrame{}));
    if (dice.chance(0.3)) add(test::framesOf(PathChallengeFrame{tokenOf(dice.next())}));
    if (dice.chance(0.1))
      add(test::framesOf(SubflowStatusFrame{subflow, static_cast<uint64_t>(i), dice.chance(0.5)}));
    if (frames.empty()) add(test::framesOf(PathResponseFrame{tokenOf(dice.next())}));
    if (dice.chance(0.05)) frames = padded(std::move(frames), 60 + dice.below(1140));
    attack.say(frames, from, subflow);
    if (isHome && dice.chance(0.1)) attack.say(test::framesOf(PingFrame{}), kHome);
    if (isHome && dice.chance(0.3)) attack.acknowledge(kHome);
    if (dice.chance(0.3)) attack.offer();
    if (dice.chance(0.5)) attack.pass(Duration(dice.below(uint64_t(100'000'000))));
    if (dice.chance(0.5)) attack.listen();
  }
  for (int i = 0; i < 100; ++i) attack.pass(100ms);
  attack.addBooks(result);
  result.note(attack.findBroken(routeOf(900)));
}

}  // namespace

TokensResult tokensRun(uint64_t seed) {
  TokensResult result;
  predict(seed, result);
  answerFromElsewhere(seed, result);
  elicit(seed, false, result);
  elicit(seed, true, result);
  return result;
}

uint64_t foreseenOfRandom(uint64_t count) {
  Random random(count);
  uint64_t foreseen = 0;
  for (uint64_t last = random.next(), i = 0; i < count; ++i) {
    uint64_t next = random.next();
    foreseen += test::SplitMix::after(last).next() == next;
    last = next;
  }
  return foreseen;
}

}  // namespace braid::sim
