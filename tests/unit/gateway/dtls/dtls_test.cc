#include "gateway/dtls/dtls.h"

#include <gmock/gmock.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "tests/unit/gateway/dtls/dtls_fixture.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid::dtls_test {
namespace {

using State = Handshake::State;
using testing::HasSubstr;

std::string errorOf(const std::unique_ptr<Handshake>& h) {
  return std::string(h->error());
}

TEST(Dtls, bothSidesGetTheSameSecrets) {
  DtlsPair pair;
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.done()) << pair.initiator->error();
  const SessionSecrets &a = pair.initiator->secrets(), &b = pair.responder->secrets();
  EXPECT_EQ(a.initiatorSecret, b.initiatorSecret);
  EXPECT_EQ(a.responderSecret, b.responderSecret);
  EXPECT_NE(a.initiatorSecret, a.responderSecret);
  EXPECT_EQ(a.sessionId, b.sessionId);
  EXPECT_NE(a.sessionId, 0u);
  EXPECT_EQ(a.aead, b.aead);
  EXPECT_EQ(a.peer, bob().pin);
  EXPECT_EQ(b.peer, alice().pin);
  EXPECT_EQ(pair.initiator->deadline(), kNever);
  EXPECT_EQ(pair.responder->deadline(), kNever);
  EXPECT_EQ(pair.pool.inUse(), 0u);
}

unsigned reseedsOf(EVP_RAND_CTX* generator) {
  unsigned count = 0;
  OSSL_PARAM wanted[] = {OSSL_PARAM_construct_uint(OSSL_DRBG_PARAM_RESEED_COUNTER, &count),
                         OSSL_PARAM_construct_end()};
  EXPECT_EQ(EVP_RAND_CTX_get_params(generator, wanted), 1);
  return count;
}

TEST(Dtls, freshRandomnessReachesTheGeneratorsInUse) {
  std::array<uint8_t, 16> drawn;
  ASSERT_EQ(RAND_bytes(drawn.data(), drawn.size()), 1);
  EVP_RAND_CTX* const primary = RAND_get0_primary(nullptr);
  EVP_RAND_CTX* const own = RAND_get0_public(nullptr);
  const unsigned before = reseedsOf(primary), ownBefore = reseedsOf(own);
  renewOpensslRandomness({});
  EXPECT_GT(reseedsOf(primary), before);
  ASSERT_EQ(RAND_bytes(drawn.data(), drawn.size()), 1);
  EXPECT_GT(reseedsOf(own), ownBefore);
}

TEST(Dtls, theSecretsAreErasedWhenTheyHaveBeenTaken) {
  DtlsPair pair;
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.done());
  const SessionSecrets& kept = pair.responder->secrets();
  EXPECT_NE(kept.initiatorSecret, decltype(kept.initiatorSecret){});
  pair.responder->forgetSecrets();
  EXPECT_EQ(kept.initiatorSecret, decltype(kept.initiatorSecret){});
  EXPECT_EQ(kept.responderSecret, decltype(kept.responderSecret){});
  EXPECT_TRUE(pair.done()) << "it answers on";
}

TEST(Dtls, eachHandshakeGivesNewSecrets) {
  DtlsPair one, two;
  for (DtlsPair* pair : {&one, &two}) {
    pair->start();
    pair->run();
    ASSERT_TRUE(pair->done());
  }
  EXPECT_NE(one.initiator->secrets().initiatorSecret, two.initiator->secrets().initiatorSecret);
  EXPECT_NE(one.initiator->secrets().sessionId, two.initiator->secrets().sessionId);
}

TEST(Dtls, datagramsFitTheirEnvelope) {
  DtlsPair pair;
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.done());
  for (const auto& [toResponder, bytes] : pair.seen) {
    EXPECT_LE(bytes.size(), kMaxHandshakeBody);
  }
}

// The loss of any one datagram, in either direction, is repaired.
TEST(Dtls, survivesTheLossOfEachDatagram) {
  // on a slow machine even a handshake without loss would have retransmissions
  DtlsOptions patient;
  patient.retransmit = 60s;
  DtlsPair whole(patient, patient);
  whole.start();
  whole.run();
  ASSERT_TRUE(whole.done());
  ASSERT_GE(whole.seen.size(), 4u);
  for (size_t lost = 0; lost < whole.seen.size(); ++lost) {
    SCOPED_TRACE(lost);
    DtlsPair pair;
    pair.passes = [&](size_t index, bool) { return index != lost; };
    pair.start();
    pair.run();
    ASSERT_TRUE(pair.done()) << pair.initiator->error();
    EXPECT_EQ(pair.initiator->secrets().initiatorSecret, pair.responder->secrets().initiatorSecret);
    EXPECT_GT(pair.seen.size(), whole.seen.size());
  }
}

TEST(Dtls, survivesHeavyLoss) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    DtlsPair pair;
    pair.passes = [&](size_t, bool) { return !random.chance(0.3); };
    pair.start();
    pair.run();
    EXPECT_TRUE(pair.done()) << pair.initiator->error();
  }
}

TEST(Dtls, survivesReorderingAndDuplication) {
  DtlsPair pair;
  pair.reversed = pair.duplicated = true;
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.done()) << pair.initiator->error();
  EXPECT_EQ(pair.initiator->secrets().sessionId, pair.responder->secrets().sessionId);
}

// Sends each record in a separate datagram, in reverse order within a flight.
TEST(Dtls, survivesRecordsInReverseOrder) {
  DtlsPair pair;
  pair.start();
  Time end = realNow() + 3s;
  while (!(pair.responder && pair.done()) && realNow() < end) {
    for (bool toResponder : {true, false}) {
      Handshake* from = toResponder ? pair.initiator.get() : pair.responder.get();
      if (!from) continue;
      from->onTimer(realNow());
      std::vector<Bytes> records;
      for (const Bytes& datagram : drain(*from, pair.pool))
        for (size_t at = 0; at + 13 <= datagram.size();) {
          size_t size = 13 + load16(&datagram[at + 11]);
          records.emplace_back(datagram.begin() + at, datagram.begin() + at + size);
          at += size;
        }
      for (size_t i = records.size(); i-- > 0;) pair.deliver(toResponder, records[i]);
    }
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_TRUE(pair.done()) << pair.initiator->error();
}

TEST(Dtls, initiatorRefusesAnotherPin) {
  DtlsPair pair;
  pair.start(mallory().pin);
  pair.run();
  EXPECT_EQ(pair.initiator->state(), State::kFailed);
  EXPECT_THAT(errorOf(pair.initiator), HasSubstr(formatPin(bob().pin)));
  EXPECT_THAT(errorOf(pair.initiator), HasSubstr(formatPin(mallory().pin)));
  ASSERT_TRUE(pair.responder);
  EXPECT_EQ(pair.responder->state(), State::kFailed);
  EXPECT_THAT(errorOf(pair.responder),
              HasSubstr(formatPin(bob().pin)));  // the pin to configure at the other side
}

TEST(Dtls, responderRefusesAStranger) {
  DtlsPair pair(DtlsPair::quick(), DtlsPair::quick(), mallory(), bob());
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.responder);
  EXPECT_EQ(pair.responder->state(), State::kFailed);
  EXPECT_THAT(errorOf(pair.responder), HasSubstr(formatPin(mallory().pin)));
  EXPECT_EQ(pair.initiator->state(), State::kFailed);
  EXPECT_THAT(errorOf(pair.initiator), HasSubstr(formatPin(mallory().pin)));
}

TEST(Dtls, acceptedPinsMayChange) {
  DtlsPair pair;
  pair.responders.setAcceptedPins({});
  pair.start();
  pair.run();
  EXPECT_FALSE(pair.done());
  pair.responder.reset();
  pair.responders.setAcceptedPins({mallory().pin, alice().pin, bob().pin});
  pair.start();
  pair.run();
  EXPECT_TRUE(pair.done()) << pair.initiator->error();
}

TEST(Dtls, otherProtocolVersionIsAClearError) {
  RecordProperty("rule", "handshake.version");
  DtlsOptions newer = DtlsPair::quick();
  newer.versions = {9};
  DtlsPair pair(newer, DtlsPair::quick());
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.responder);
  EXPECT_EQ(pair.responder->state(), State::kFailed);
  EXPECT_THAT(errorOf(pair.responder), HasSubstr("braid/9"));
  EXPECT_THAT(errorOf(pair.responder), HasSubstr("braid/2"));
  EXPECT_EQ(pair.initiator->state(), State::kFailed);
  EXPECT_THAT(errorOf(pair.initiator), HasSubstr("another version"));
}

// A later release, which supports one more protocol version.
DtlsOptions newerBuild() {
  DtlsOptions newer = DtlsPair::quick();
  newer.versions = {2, 3};
  return newer;
}

TEST(Dtls, anOldAndANewBuildSpeakTheVersionOfTheOld) {
  for (bool newInitiates : {true, false}) {
    SCOPED_TRACE(newInitiates);
    DtlsPair pair(newInitiates ? newerBuild() : DtlsPair::quick(),
                  newInitiates ? DtlsPair::quick() : newerBuild());
    pair.start();
    pair.run();
    ASSERT_TRUE(pair.done()) << pair.initiator->error();
    EXPECT_EQ(pair.initiator->secrets().version, 2);
    EXPECT_EQ(pair.responder->secrets().version, 2);
    EXPECT_EQ(pair.initiator->secrets().initiatorSecret, pair.responder->secrets().initiatorSecret);
  }
}

TEST(Dtls, twoNewBuildsSpeakTheNewVersion) {
  DtlsOptions other = newerBuild();
  other.versions = {3, 2};
  DtlsPair pair(newerBuild(), other);
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.done()) << pair.initiator->error();
  EXPECT_EQ(pair.initiator->secrets().version, 3) << "whatever the order in which they are named";
  EXPECT_EQ(pair.responder->secrets().version, 3);
  EXPECT_EQ(pair.initiator->secrets().initiatorSecret, pair.responder->secrets().initiatorSecret);
}

// As in RFC 8701, an unknown name is offered, so that a responder that cannot handle unknown names
// is found now.
TEST(Dtls, aHelloOffersANameWithoutAMeaning) {
  const std::string own =
      "\x07"
      "braid/2";
  PacketPool pool(2000, 8);
  DtlsProvider provider(alice());
  size_t before = 0, behind = 0;
  for (int i = 0; i < 64; ++i) {
    auto handshake = provider.initiate(bob().pin, realNow());
    Bytes hello = drain(*handshake, pool).at(0);
    auto at = std::search(hello.begin(), hello.end(), own.begin(), own.end());
    ASSERT_GE(hello.end() - at, static_cast<ptrdiff_t>(own.size()));
    auto isGrease = [&](ptrdiff_t from) {
      if (from < 0 || from + 3 > static_cast<ptrdiff_t>(hello.size())) return false;
      const uint8_t* name = &hello[static_cast<size_t>(from)];
      return name[0] == 2 && name[1] == name[2] && (name[1] & 0x0f) == 0x0a;
    };
    bool isBefore = isGrease(at - hello.begin() - 3);
    before += isBefore;
    behind += !isBefore && isGrease(at - hello.begin() + static_cast<ptrdiff_t>(own.size()));
  }
  EXPECT_EQ(before + behind, 64u);
  EXPECT_GT(before, 0u);
  EXPECT_GT(behind, 0u);
}

struct CipherCase {
  std::optional<AeadKind> initiatorCipher, responderCipher;
  bool initiatorAes, responderAes;
  AeadKind expected;
};

class DtlsCipher : public testing::TestWithParam<CipherCase> {};
using enum AeadKind;
INSTANTIATE_TEST_SUITE_P(
    Choices, DtlsCipher,
    testing::Values(CipherCase{{}, {}, true, true, kAes128Gcm},
                    CipherCase{{}, {}, false, true, kChaCha20Poly1305},
                    CipherCase{{}, {}, true, false, kChaCha20Poly1305},
                    CipherCase{{}, {}, false, false, kChaCha20Poly1305},
                    CipherCase{kAes256Gcm, {}, true, true, kAes256Gcm},
                    CipherCase{{}, kAes256Gcm, true, true, kAes256Gcm},
                    CipherCase{{}, kAes128Gcm, false, false, kAes128Gcm},
                    CipherCase{kChaCha20Poly1305, {}, true, true, kChaCha20Poly1305}));

TEST_P(DtlsCipher, isTheOneThatSuitsBoth) {
  DtlsOptions one = DtlsPair::quick(), two = DtlsPair::quick();
  one.cipher = GetParam().initiatorCipher;
  two.cipher = GetParam().responderCipher;
  one.hasAes = GetParam().initiatorAes;
  two.hasAes = GetParam().responderAes;
  DtlsPair pair(one, two);
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.done()) << pair.initiator->error();
  EXPECT_EQ(pair.initiator->secrets().aead, GetParam().expected);
  EXPECT_EQ(pair.responder->secrets().aead, GetParam().expected);
}

TEST(Dtls, noCipherInCommonFailsBothSides) {
  DtlsOptions one = DtlsPair::quick(), two = DtlsPair::quick();
  one.cipher = kAes128Gcm;
  two.cipher = kChaCha20Poly1305;
  DtlsPair pair(one, two);
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.responder);
  EXPECT_THAT(errorOf(pair.responder), HasSubstr("no cipher in common"));
  EXPECT_THAT(errorOf(pair.initiator), HasSubstr("no cipher in common"));
}

// The initiator misses the responder's last flight and retransmits. The responder has finished long
// ago but must still answer.
TEST(Dtls, aFinishedResponderAnswersARetransmittedFlight) {
  DtlsPair pair;
  pair.start();
  Time end = realNow() + 3s;
  for (int answers = 0; answers < 3; std::this_thread::sleep_for(2ms)) {
    ASSERT_LT(realNow(), end) << "the responder did not answer";
    for (const Bytes& bytes : drain(*pair.initiator, pair.pool)) pair.deliver(true, bytes);
    if (pair.responder) {
      bool finished = pair.responder->state() == State::kDone;
      std::vector<Bytes> flight = drain(*pair.responder, pair.pool);
      if (finished && !flight.empty()) ++answers;
      if (finished && answers < 3) flight.clear();  // lost
      for (const Bytes& bytes : flight) pair.deliver(false, bytes);
    }
    pair.initiator->onTimer(realNow());
  }
  EXPECT_TRUE(pair.done());
}

// A real retransmission has new record numbers. The same bytes again are a replay.
TEST(Dtls, aFinishedResponderIgnoresAReplayedFlight) {
  DtlsPair pair;
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.done());
  for (const auto& [toResponder, bytes] : pair.seen)
    if (toResponder) pair.responder->onDatagram(bytes, realNow());
  EXPECT_TRUE(drain(*pair.responder, pair.pool).empty());
  EXPECT_TRUE(pair.done());
}

TEST(Dtls, nothingHarmsAFinishedHandshake) {
  DtlsPair pair;
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.done());
  const uint64_t seed = 5;
  Random random(seed);
  SCOPED_TRACE(seed);
  const uint32_t id = pair.responder->secrets().sessionId;
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = pair.seen[random.below(pair.seen.size())].second;
    for (uint64_t flips = random.below(4); flips-- > 0;)
      bytes[random.below(bytes.size())] ^= static_cast<uint8_t>(1 << random.below(8));
    pair.initiator->onDatagram(bytes, realNow());
    pair.responder->onDatagram(bytes, realNow());
  }
  EXPECT_TRUE(pair.done());
  EXPECT_EQ(pair.responder->secrets().sessionId, id);
}

TEST(Dtls, givesUpAfterTheTimeLimit) {
  DtlsProvider provider(alice());
  Time start = realNow();
  auto handshake = provider.initiate(bob().pin, start);
  EXPECT_LE(handshake->deadline(), start + 400ms);
  EXPECT_GT(handshake->deadline(), start + 300ms);
  handshake->onTimer(start + kHandshakeTimeout);
  EXPECT_EQ(handshake->state(), State::kFailed);
  EXPECT_THAT(errorOf(handshake), HasSubstr("no answer"));
  EXPECT_EQ(handshake->deadline(), kNever);
}

TEST(Dtls, waitsForASlowPeerThatHasAnswered) {
  DtlsProvider provider(alice());
  Time start = realNow();
  auto handshake = provider.initiate(bob().pin, start);
  handshake->onFirstAnswer(1200ms, 4s, start + 4s);
  handshake->onTimer(start + kHandshakeTimeout);
  EXPECT_EQ(handshake->state(), State::kRunning);
  handshake->onTimer(start + 36s);
  EXPECT_EQ(handshake->state(), State::kFailed);
}

TEST(Dtls, anEarlyTimerDoesNothing) {
  PacketPool pool(2000, 8);
  DtlsProvider provider(alice());
  auto handshake = provider.initiate(bob().pin, realNow());
  EXPECT_EQ(drain(*handshake, pool).size(), 1u);
  handshake->onTimer(realNow());
  EXPECT_TRUE(drain(*handshake, pool).empty());
}

TEST(Dtls, retransmissionsSlowDown) {
  PacketPool pool(2000, 8);
  DtlsOptions options;
  options.retransmit = 20ms;
  DtlsProvider provider(alice(), options);
  auto handshake = provider.initiate(bob().pin, realNow());
  Duration last{};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(drain(*handshake, pool).size(), 1u) << i;
    Duration wait = handshake->deadline() - realNow();
    EXPECT_GT(wait, last) << i;
    last = wait;
    // OpenSSL treats a timer as expired 15 ms early; the deadline accounts for that.
    std::this_thread::sleep_for(std::max<Duration>(wait, 0ns) + 20ms);
    handshake->onTimer(realNow());
  }
}

}  // namespace
}  // namespace braid::dtls_test
