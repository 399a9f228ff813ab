#include "tunnel/peer/dialing.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/peer/puppets.h"

namespace braid::attempts_test {
namespace {

using State = Handshake::State;

struct AttemptsTest : testing::Test {
  TunnelOptions options;
  PacketPool pool{2048, 64};
  test::PuppetProvider handshakes;
  EventQueue events;
  PacketEventQueue packets;
  SessionIndex sessions;
  AttemptIndex index;
  SharedResources shared;
  PeerContext context{options, pool, handshakes, events, packets, shared, sessions, index};
  Pin pin{3};
  SecretRandom peersRandom{knownKey(1)};
  Peer peer{{}, context, peersRandom, Time{}};
  ConnectionRace attempts{peer, pool, handshakes, index, peersRandom};
  std::vector<NamedRoute> routes{{"a", "a", route(1)}, {"b", "b", route(2)}, {"c", "c", route(3)}};
  Time now = Time{} + 1s;

  static Route route(SocketId socket) { return {socket, {}, {*Address::parse("192.0.2.1"), 4500}}; }
  bool begin() { return attempts.begin(routes, now); }
  std::optional<SessionSecrets> step() { return attempts.step(pin, now); }
  /// The next datagram of the connection race, sent back in its envelope by a responder that echoes
  /// it.
  std::vector<uint8_t> echo() {
    Datagram d;
    if (!attempts.pollDatagram(d)) return {};
    return test::answerTo(d.bytes.span(), pin);
  }
  test::PuppetHandshake& last() { return *handshakes.made.back(); }
  size_t known(SocketId socket) {
    size_t count = 0;
    index.forEachOn(route(socket), [&](Peer&) { ++count; });
    return count;
  }
  std::vector<std::string> failures() {
    std::vector<std::string> all;
    for (std::string line; attempts.pollFailure(line);) all.push_back(line);
    return all;
  }
};

TEST_F(AttemptsTest, RoutesAreTriedOneAfterTheOther) {
  ASSERT_TRUE(begin());
  for (size_t tried = 1; tried <= 3; ++tried) {
    step();
    EXPECT_EQ(handshakes.made.size(), tried);
    if (tried < 3) {
      EXPECT_EQ(attempts.nextDeadline(), now + ConnectionRace::kAttemptDelay);
    }
    now += ConnectionRace::kAttemptDelay;
  }
  EXPECT_EQ(attempts.nextDeadline(), kNever);
}

TEST_F(AttemptsTest, TheFirstThatIsDoneEndsTheRound) {
  begin();
  step();
  now += ConnectionRace::kAttemptDelay;
  step();
  last().now = State::kDone;
  last().kept.sessionId = 5;
  std::optional<SessionSecrets> secrets = step();
  ASSERT_TRUE(secrets);
  EXPECT_EQ(secrets->sessionId, 5u);
  EXPECT_FALSE(attempts.isTrying());
  EXPECT_EQ(known(1) + known(2), 0u);
}

TEST_F(AttemptsTest, DatagramsFindTheHandshakeOfTheirRouteWhateverTheLocalAddress) {
  begin();
  step();
  Route from = route(1);
  from.local = *Address::parse("198.51.100.7");
  EXPECT_EQ(known(1), 1u);
  last().toSend = 1;
  std::vector<uint8_t> answer = echo();
  EXPECT_TRUE(attempts.onDatagram(from, answer, now));
  EXPECT_EQ(last().datagrams, 1);
  EXPECT_EQ(known(2), 0u) << "its turn has not come";
  EXPECT_FALSE(attempts.onDatagram(route(2), answer, now));
  answer.back() ^= 1;
  EXPECT_FALSE(attempts.onDatagram(from, answer, now)) << "of somebody who does not know the pin";
  EXPECT_EQ(last().datagrams, 1);
}

TEST_F(AttemptsTest, OneThatFailsSaysItsLastWordsAndLeavesTheOthers) {
  begin();
  step();
  last().now = State::kFailed;
  last().toSend = 1;
  now += ConnectionRace::kAttemptDelay;
  EXPECT_FALSE(step());
  EXPECT_EQ(failures(), std::vector<std::string>{"192.0.2.1:4500: it failed"});
  EXPECT_EQ(known(1), 0u);
  EXPECT_EQ(known(2), 1u);
  Datagram alert;
  ASSERT_TRUE(attempts.pollDatagram(alert));
  EXPECT_EQ(alert.route, route(1));
  EXPECT_FALSE(attempts.pollDatagram(alert));
}

TEST_F(AttemptsTest, AttemptsOnRoutesThatAreGoneEnd) {
  begin();
  step();
  routes.erase(routes.begin());
  attempts.retarget(routes, now);
  EXPECT_EQ(known(1), 0u);
  EXPECT_TRUE(attempts.isTrying());
  now += ConnectionRace::kAttemptDelay;
  step();
  EXPECT_EQ(known(2), 1u);
}

// The name of a peer may be answered with an address that is dead, and a moment later, over another
// uplink, with one that lives.
TEST_F(AttemptsTest, ANewRouteIsTriedInTheRoundThatIsUnderWay) {
  NamedRoute late = routes.back();
  routes.pop_back();
  begin();
  step();
  routes.push_back(late);
  attempts.retarget(routes, now);
  now += ConnectionRace::kAttemptDelay;
  step();
  EXPECT_EQ(known(2), 1u);
  EXPECT_EQ(known(3), 0u) << "after the others, and the usual delay";
  now += ConnectionRace::kAttemptDelay;
  step();
  EXPECT_EQ(known(3), 1u);
  attempts.cancel();
  attempts.retarget(routes, now);
  EXPECT_FALSE(attempts.isTrying()) << "no round is under way";
}

// A host that changes its network in the middle of a round has other sockets at once.
TEST_F(AttemptsTest, WhenAllRoutesAreOthersTheFirstIsTriedAtOnce) {
  std::vector<NamedRoute> others(routes.begin() + 2, routes.end());
  routes.resize(2);
  begin();
  step();
  attempts.retarget(others, now);
  step();
  EXPECT_EQ(known(1) + known(2), 0u);
  EXPECT_EQ(known(3), 1u);
}

// RFC 8305 section 5: attempts begin one after the other, also those that come to an old round.
TEST_F(AttemptsTest, NewRoutesOfAnOldRoundAreTriedOneAfterTheOther) {
  std::vector<NamedRoute> late(routes.begin() + 1, routes.end());
  routes.resize(1);
  begin();
  step();
  now += 10s;
  routes.insert(routes.end(), late.begin(), late.end());
  attempts.retarget(routes, now);
  step();
  EXPECT_EQ(known(2), 1u) << "the others have had their time";
  EXPECT_EQ(known(3), 0u);
  now += ConnectionRace::kAttemptDelay;
  step();
  EXPECT_EQ(known(3), 1u);
}

TEST_F(AttemptsTest, ARouteThatHasFailedWaitsForTheNextRound) {
  begin();
  step();
  last().now = State::kFailed;
  now += ConnectionRace::kAttemptDelay;
  step();
  now += 10s;
  routes.push_back({"d", "d", route(4)});
  for (int again = 0; again < 3; ++again, now += 1s) {
    attempts.retarget(routes, now);
    step();
  }
  EXPECT_EQ(known(1), 0u);
  EXPECT_EQ(known(4), 1u);
  EXPECT_EQ(handshakes.made.size(), 4u) << "one for each route";
  attempts.cancel();
  now = std::max(now, attempts.nextRound());
  ASSERT_TRUE(begin());
  step();
  EXPECT_EQ(known(1), 1u);
}

// Its uplink was gone for a moment.
TEST_F(AttemptsTest, ARouteThatFailedAndComesAgainIsNew) {
  begin();
  step();
  last().now = State::kFailed;
  now += ConnectionRace::kAttemptDelay;
  step();
  std::vector<NamedRoute> others(routes.begin() + 1, routes.end());
  attempts.retarget(others, now);
  attempts.retarget(routes, now);
  now += 10s;
  step();
  EXPECT_EQ(known(1), 1u);
}

TEST_F(AttemptsTest, PausesGrowToTheLongestAndAreShortAgainAfterSuccess) {
  Duration before{};
  for (int round = 0; round < 8; ++round) {
    ASSERT_TRUE(begin());
    EXPECT_FALSE(begin()) << "one is under way";
    attempts.cancel();
    Duration pause = attempts.nextRound() - now;
    EXPECT_GE(pause, std::min<Duration>(ConnectionRace::kFirstPause * (1 << round),
                                        ConnectionRace::kLongestPause));
    EXPECT_LE(pause, ConnectionRace::kLongestPause * 5 / 4);
    EXPECT_FALSE(begin()) << "too early";
    now = attempts.nextRound();
    before = pause;
  }
  attempts.resetPause();
  begin();
  EXPECT_LT(attempts.nextRound() - now, before);
}

TEST_F(AttemptsTest, NothingIsLeftInTheIndexAtTheEnd) {
  {
    ConnectionRace other(peer, pool, handshakes, index, peersRandom);
    other.begin(routes, now);
    other.step(pin, now);
    EXPECT_EQ(known(1), 1u);
  }
  EXPECT_EQ(known(1), 0u);
}

}  // namespace
}  // namespace braid::attempts_test
