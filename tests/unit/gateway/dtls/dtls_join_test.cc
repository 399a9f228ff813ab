// Joining, which uses a separate handshake.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "gateway/dtls/join.h"
#include "tests/unit/gateway/dtls/dtls_fixture.h"

namespace braid::dtls_join_test {
namespace {

using State = Handshake::State;
using testing::HasSubstr;

struct Desk : JoinHandler {
  bool isOpen() const override {
    if (throws) throw std::bad_alloc();
    return open;
  }
  std::optional<JoinMessage> onRequest(const Pin& pin, const JoinBinding& b, ByteView request,
                                       Time) override {
    ++asked;
    seen = pin;
    binding = b;
    text.assign(request.begin(), request.end());
    if (asked < answersFrom) return std::nullopt;
    return JoinMessage{'y', 'e', 's', static_cast<uint8_t>(asked)};
  }
  bool open = true, throws = false;
  int asked = 0, answersFrom = 1;
  Pin seen{};
  JoinBinding binding{};
  std::string text;
};

struct Asker : JoinAsker {
  JoinMessage request(const JoinBinding& b) override {
    ++requests;
    binding = b;
    return {'m', 'a', 'y', '?'};
  }
  void onAnswer(ByteView bytes) override {
    ++answers;
    answer.assign(bytes.begin(), bytes.end());
  }
  int requests = 0, answers = 0;
  JoinBinding binding{};
  std::string answer;
};

// Bob does not accept Mallory's pin.
struct DtlsJoinTest : testing::Test {
  DtlsJoinTest() {
    pair.initiators.setJoinAsker(&asker);
    pair.responders.setJoinHandler(&handler);
    pair.joins = true;
  }
  Desk handler;
  Asker asker;
  DtlsPair pair{DtlsPair::quick(), DtlsPair::quick(), mallory(), bob()};
};

TEST_F(DtlsJoinTest, WhoseHandshakeNamesItIsHeardAndAnswered) {
  pair.start();
  pair.run();
  EXPECT_EQ(pair.initiator->state(), State::kDone);
  EXPECT_EQ(handler.text, "may?");
  EXPECT_EQ(handler.seen, mallory().pin) << "the pin was proven by the handshake";
  EXPECT_EQ(asker.answer, std::string("yes") + '\1');
  EXPECT_EQ(handler.binding, asker.binding);
  EXPECT_EQ(asker.answers, 1);
  EXPECT_EQ(pair.responder->state(), State::kRunning) << "to answer again; it never is a session";
}

// OpenSSL calls the handler, and is C: an exception must not pass through it.
TEST_F(DtlsJoinTest, AHandlerThatThrowsEndsTheHandshakeAlone) {
  handler.throws = true;
  pair.start();
  EXPECT_NO_THROW(pair.run());
  EXPECT_EQ(pair.responder->state(), State::kFailed);
  EXPECT_EQ(pair.initiator->state(), State::kFailed) << "it got an alert";
}

TEST_F(DtlsJoinTest, AResponderWithoutInvitationsRefusesItAsAnUnknownProtocol) {
  RecordProperty("rule", "join.open");
  handler.open = false;
  pair.start();
  pair.run();
  EXPECT_EQ(pair.responder->state(), State::kFailed);
  EXPECT_THAT(std::string(pair.initiator->error()), HasSubstr("no open invitation"));
  EXPECT_EQ(handler.asked, 0);
  EXPECT_EQ(asker.requests, 0);
}

TEST_F(DtlsJoinTest, AStrangerWhoWantsASessionIsRefusedHoweverOpenTheDeskIs) {
  pair.initiators.setJoinAsker(nullptr);
  pair.start();
  pair.run();
  EXPECT_EQ(pair.responder->state(), State::kFailed);
  EXPECT_THAT(std::string(pair.responder->error()), HasSubstr("a stranger with the pin"));
  EXPECT_EQ(handler.asked, 0);
}

TEST_F(DtlsJoinTest, NothingOfASessionComesOfIt) {
  pair.start();
  pair.run();
  EXPECT_EQ(pair.responder->secrets().initiatorSecret, (std::array<uint8_t, 32>{}));
  EXPECT_EQ(pair.responder->secrets().sessionId, 0u);
  EXPECT_EQ(pair.initiator->secrets().responderSecret, (std::array<uint8_t, 32>{}));
}

TEST_F(DtlsJoinTest, ARequestThatWaitsForItsDecisionIsRepeatedUntilItIsAnswered) {
  handler.answersFrom = 3;
  pair.start();
  pair.run();
  EXPECT_EQ(pair.initiator->state(), State::kDone);
  EXPECT_EQ(handler.asked, 3);
  EXPECT_EQ(asker.requests, 1) << "in the same words: the keys seal one message";
}

TEST_F(DtlsJoinTest, LossOfEachDatagramIsRepaired) {
  for (size_t lost = 0; lost < 9; ++lost) {
    Desk otherDesk;
    Asker otherAsker;
    DtlsPair other(DtlsPair::quick(), DtlsPair::quick(), mallory(), bob());
    other.initiators.setJoinAsker(&otherAsker);
    other.responders.setJoinHandler(&otherDesk);
    other.joins = true;
    other.passes = [&](size_t index, bool) { return index != lost; };
    other.start();
    other.run();
    EXPECT_EQ(other.initiator->state(), State::kDone) << lost;
    EXPECT_EQ(otherAsker.answer.substr(0, 3), "yes") << lost;
  }
}

TEST_F(DtlsJoinTest, TheFirstAnswerIsTheOnlyOneUnderItsKeys) {
  pair.start();
  pair.run();
  Bytes request, answer;
  for (const auto& [toResponder, bytes] : pair.seen) {
    if (isJoinBody(bytes)) (toResponder ? request : answer) = bytes;
  }
  ASSERT_FALSE(request.empty());
  pair.responder->onDatagram(request, realNow());
  EXPECT_EQ(drain(*pair.responder, pair.pool), std::vector<Bytes>{answer});
  EXPECT_EQ(handler.asked, 1) << "the handler is not asked again";
}

TEST_F(DtlsJoinTest, EachBitOfTheMessagesIsGuarded) {
  RecordProperty("rule", "join.seal");
  pair.passes = [&](size_t, bool) { return !isJoinBody(pair.seen.back().second); };
  pair.patience = 300ms;
  pair.start();
  pair.run();
  Bytes request;
  for (const auto& [toResponder, bytes] : pair.seen) {
    if (isJoinBody(bytes)) request = bytes;
  }
  ASSERT_FALSE(request.empty());
  for (size_t bit = 8; bit < 8 * 24; bit += 9) {
    Bytes changed = request;
    changed[bit / 8 % changed.size()] ^= static_cast<uint8_t>(1 << bit % 8);
    if (bit % 4 == 0) continue;  // few enough for the limit of requests
    pair.responder->onDatagram(changed, realNow());
    EXPECT_EQ(handler.asked, 0) << bit;
  }
  pair.responder->onDatagram(Bytes(request.begin(), request.begin() + 10), realNow());
  pair.responder->onDatagram(Bytes{1}, realNow());
  EXPECT_EQ(handler.asked, 0);
  pair.responder->onDatagram(request, realNow());
  EXPECT_EQ(handler.asked, 1);
}

TEST_F(DtlsJoinTest, AHandshakeLooksAtABoundedNumberOfRequests) {
  RecordProperty("rule", "join.many");
  handler.answersFrom = 1'000'000;
  pair.patience = 300ms;
  pair.passes = [&](size_t, bool) { return !isJoinBody(pair.seen.back().second); };
  pair.start();
  pair.run();
  Bytes request;
  for (const auto& [toResponder, bytes] : pair.seen) {
    if (isJoinBody(bytes)) request = bytes;
  }
  ASSERT_FALSE(request.empty());
  for (int i = 0; i < 1000; ++i) pair.responder->onDatagram(request, realNow());
  EXPECT_EQ(handler.asked, 24);
}

TEST_F(DtlsJoinTest, EndsQuietlyWhenItsTimeIsOver) {
  pair.start();
  pair.run();
  pair.responder->onTimer(realNow() + kHandshakeTimeout + 1s);
  EXPECT_EQ(pair.responder->state(), State::kClosed);
  EXPECT_EQ(pair.responder->error(), "");
}

TEST_F(DtlsJoinTest, WhoIsNotAnsweredIsToldSo) {
  handler.answersFrom = 1'000'000;
  pair.patience = 300ms;
  pair.start();
  pair.run();
  EXPECT_EQ(pair.initiator->state(), State::kRunning);
  pair.initiator->onTimer(realNow() + kHandshakeTimeout + 1s);
  EXPECT_EQ(pair.initiator->state(), State::kFailed);
  EXPECT_THAT(std::string(pair.initiator->error()), HasSubstr("has not answered"));
}

TEST(JoinChannelTest, BothSidesUnderstandEachOtherAndNobodyHimself) {
  JoinSecrets secrets;
  secrets.initiatorSecret.fill(1);
  secrets.responderSecret.fill(2);
  secrets.binding.fill(3);
  for (AeadKind kind : {AeadKind::kAes128Gcm, AeadKind::kAes256Gcm, AeadKind::kChaCha20Poly1305}) {
    secrets.aead = kind;
    JoinChannel one(secrets, JoinChannel::Side::kInitiator),
        two(secrets, JoinChannel::Side::kResponder);
    Bytes question{1, 2, 3}, answer{4};
    Bytes body = one.seal(question);
    EXPECT_EQ(two.open(body), question);
    EXPECT_EQ(one.open(body), std::nullopt) << "a reflected message";
    EXPECT_EQ(one.seal(answer), body) << "one message each way";
    EXPECT_EQ(one.open(two.seal(answer)), answer);
    EXPECT_EQ(two.binding(), secrets.binding);
  }
}

TEST(JoinChannelTest, TheLongestMessageFitsAndALongerOneIsNotSealed) {
  JoinSecrets secrets;
  JoinChannel one(secrets, JoinChannel::Side::kInitiator),
      two(secrets, JoinChannel::Side::kInitiator);
  EXPECT_EQ(one.seal(Bytes(kMaxJoinMessage, 7)).size(), kMaxHandshakeBody);
  EXPECT_TRUE(two.seal(Bytes(kMaxJoinMessage + 1, 7)).empty());
}

}  // namespace
}  // namespace braid::dtls_join_test
