// What strangers get before they have shown a cookie, and from whom the handshake must not take less than it
// asks.

#include <gmock/gmock.h>

#include "base/random.h"
#include "gateway/dtls/dtls_cookie.h"
#include "tests/unit/gateway/dtls/dtls_fixture.h"
#include "tunnel/wire/pin.h"

namespace braid::dtls_stranger_test {
namespace {

using State = Handshake::State;
using testing::HasSubstr;

class DtlsStranger : public testing::Test {
 protected:
  DtlsStranger() { responders.setAcceptedPins({alice().pin}); }

  struct Answer {
    std::unique_ptr<Handshake> accepted;
    Bytes reply;
  };
  Answer hello(const Endpoint& from, const Bytes& bytes, Time at) {
    Packet out = pool.allocate();
    HelloAnswer answer = responders.onHello(from, bytes, out, at);
    Answer result;
    result.accepted = std::move(answer.accepted);
    if (answer.reply) result.reply.assign(out.view().begin(), out.view().end());
    return result;
  }
  Bytes only(Handshake& handshake) {
    std::vector<Bytes> all = drain(handshake, pool);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Bytes{} : all[0];
  }
  // The hello with the cookie that `from` was given at `now`.
  Bytes helloWithCookie(const Endpoint& from) {
    initiator = initiators.initiate(bob().pin, now);
    Answer answer = hello(from, only(*initiator), now);
    EXPECT_FALSE(answer.accepted);
    EXPECT_FALSE(answer.reply.empty());
    initiator->onDatagram(answer.reply, now);
    return only(*initiator);
  }

  PacketPool pool{2000, 64};
  Time now = Time(1h);
  Endpoint here = endpointOf(1, 4000);
  DtlsProvider initiators{alice()}, responders{bob()};
  std::unique_ptr<Handshake> initiator;
};

TEST_F(DtlsStranger, theReplyIsNotLongerThanTheQuestion) {
  initiator = initiators.initiate(bob().pin, now);
  Bytes question = only(*initiator);
  Answer answer = hello(here, question, now);
  EXPECT_FALSE(answer.accepted);
  ASSERT_FALSE(answer.reply.empty());
  EXPECT_LE(answer.reply.size(), question.size());
  EXPECT_EQ(answer.reply[13], 3);  // HelloVerifyRequest
}

// The shortest hello that OpenSSL parses: one cipher suite, no extensions.
TEST_F(DtlsStranger, theReplyToTheShortestHelloIsNotLonger) {
  Bytes body(34, 1);
  body[0] = 0xfe;
  body[1] = 0xfd;
  for (uint8_t b : {0, 0, 0, 2, 0xc0, 0x2b, 1, 0}) body.push_back(b);
  Bytes packet{22, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(12 + body.size())};
  uint8_t size = static_cast<uint8_t>(body.size());
  for (uint8_t b : {uint8_t{1}, uint8_t{0}, uint8_t{0}, size, uint8_t{0}, uint8_t{0}, uint8_t{0}, uint8_t{0},
                    uint8_t{0}, uint8_t{0}, uint8_t{0}, size})
    packet.push_back(b);
  packet.insert(packet.end(), body.begin(), body.end());
  Answer answer = hello(here, packet, now);
  ASSERT_FALSE(answer.reply.empty());
  EXPECT_LE(answer.reply.size(), packet.size());
}

TEST_F(DtlsStranger, theCookieOpensTheDoor) {
  Bytes bytes = helloWithCookie(here);
  EXPECT_TRUE(hello(here, bytes, now).accepted);
}

TEST_F(DtlsStranger, aCookieCountsOnlyFromItsAddressAndPort) {
  Bytes bytes = helloWithCookie(here);
  Endpoint v6 = here;
  v6.address.family = Address::Family::kV6;
  for (const Endpoint& from : {endpointOf(2, 4000), endpointOf(1, 4001), v6}) {
    Answer answer = hello(from, bytes, now);
    EXPECT_FALSE(answer.accepted) << from.port;
    EXPECT_FALSE(answer.reply.empty());
    EXPECT_LE(answer.reply.size(), bytes.size());
  }
  EXPECT_TRUE(hello(here, bytes, now).accepted);
}

TEST_F(DtlsStranger, aCookieLivesForOneToTwoMinutes) {
  Bytes bytes = helloWithCookie(here);
  Endpoint other = endpointOf(9, 9);
  initiators.setAcceptedPins({});
  auto probe = initiators.initiate(bob().pin, now);
  Bytes noise = only(*probe);
  hello(other, noise, now + 60s);  // a rotation
  EXPECT_TRUE(hello(here, bytes, now + 119s).accepted);
  hello(other, noise, now + 120s);
  EXPECT_FALSE(hello(here, bytes, now + 121s).accepted);
}

TEST_F(DtlsStranger, aCookieDoesNotOutliveAQuietTime) {
  Bytes bytes = helloWithCookie(here);
  EXPECT_FALSE(hello(here, bytes, now + 1h).accepted);
}

TEST_F(DtlsStranger, everyFlippedBitOfTheCookieIsRefused) {
  Bytes bytes = helloWithCookie(here);
  const size_t cookie = 13 + 12 + 34 + 1 + 1;  // headers, version and random, empty session id, length
  ASSERT_EQ(bytes[cookie - 1], 32);
  for (size_t bit = 0; bit < 32 * 8; ++bit) {
    Bytes bad = bytes;
    bad[cookie + bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    ASSERT_FALSE(hello(here, bad, now).accepted) << bit;
  }
  EXPECT_TRUE(hello(here, bytes, now).accepted);
}

TEST_F(DtlsStranger, garbageGetsNothing) {
  const uint64_t seed = 3;
  Random random(seed);
  SCOPED_TRACE(seed);
  for (int i = 0; i < 3000; ++i) {
    Bytes bytes(random.below(300));
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.next());
    if (!bytes.empty()) bytes[0] = static_cast<uint8_t>(20 + random.below(44));
    if (bytes.size() > 14 && random.chance(0.5))
      std::copy_n("\x16\xfe\xfd\0\0\0\0\0\0\0\0", 11, bytes.begin());
    if (bytes.size() > 14 && random.chance(0.5)) bytes[13] = 1;
    Answer answer = hello(here, bytes, now);
    ASSERT_FALSE(answer.accepted) << i;
    ASSERT_LE(answer.reply.size(), bytes.size()) << i;
  }
  EXPECT_TRUE(hello(here, helloWithCookie(here), now).accepted);  // and the door still works
}

// Every other handshake message and record type without a cookie.
TEST_F(DtlsStranger, laterFlightsMakeNoState) {
  DtlsPair pair;
  pair.start();
  pair.run();
  ASSERT_TRUE(pair.done());
  for (size_t i = 0; i < pair.seen.size(); ++i) {
    Answer answer = hello(here, pair.seen[i].second, now);
    EXPECT_FALSE(answer.accepted) << i;
    EXPECT_LE(answer.reply.size(), pair.seen[i].second.size()) << i;
  }
}

TEST_F(DtlsStranger, manyDoNotMixWithOneAnother) {
  struct Guest {
    Endpoint at;
    std::unique_ptr<Handshake> handshake;
  };
  std::vector<Guest> guests;
  for (uint8_t i = 0; i < 20; ++i)
    guests.push_back({endpointOf(i, 1000 + i), initiators.initiate(bob().pin, now)});
  for (Guest& g : guests) {
    Answer answer = hello(g.at, only(*g.handshake), now);
    g.handshake->onDatagram(answer.reply, now);
  }
  for (Guest& g : guests) EXPECT_TRUE(hello(g.at, only(*g.handshake), now).accepted);
}

// An OpenSSL client that is not ours, to leave out what ours always has.
class ForeignClient {
 public:
  explicit ForeignClient(const std::function<void(SSL_CTX*)>& configure)
      : context_(SSL_CTX_new(DTLS_method())) {
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_NONE, nullptr);
    configure(context_.get());
    ssl_.reset(SSL_new(context_.get()));
    BIO* bio = pipe_.makeBio().release();
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_mtu(ssl_.get(), 1200);
    SSL_set_connect_state(ssl_.get());
  }
  void step(ByteView in) {
    pipe_.openInput(in);
    SSL_do_handshake(ssl_.get());
    pipe_.closeInput();
  }
  std::deque<Bytes>& out() { return pipe_.output(); }

 private:
  DatagramPipe pipe_;
  SslContextHandle context_;
  SslHandle ssl_;
};

std::string errorAgainst(DtlsProvider& responders, ForeignClient& client) {
  PacketPool pool(2000, 16);
  std::unique_ptr<Handshake> responder;
  client.step({});
  for (int i = 0; i < 50 && !client.out().empty(); ++i) {
    Bytes bytes = client.out().front();
    client.out().pop_front();
    if (!responder) {
      Packet reply = pool.allocate();
      HelloAnswer answer = responders.onHello(endpointOf(1, 1), bytes, reply, realNow());
      if (answer.reply) client.step(reply.view());
      responder = std::move(answer.accepted);
    } else {
      responder->onDatagram(bytes, realNow());
    }
    if (responder)
      for (const Bytes& answer : drain(*responder, pool)) client.step(answer);
  }
  if (!responder) return "not accepted";
  return responder->state() == State::kFailed ? std::string(responder->error()) : "not failed";
}

void setProtocol(SSL_CTX* context) {
  SSL_CTX_set_alpn_protos(context,
                          reinterpret_cast<const unsigned char*>("\x07"
                                                                 "braid/1"),
                          8);
}

void setAlice(SSL_CTX* context) {
  SSL_CTX_use_certificate(context, alice().certificate.get());
  SSL_CTX_use_PrivateKey(context, alice().key.get());
}

TEST_F(DtlsStranger, withoutCertificateIsRefused) {
  ForeignClient client(setProtocol);
  EXPECT_THAT(errorAgainst(responders, client), HasSubstr("no certificate"));
}

TEST_F(DtlsStranger, withoutProtocolIsRefused) {
  ForeignClient client(setAlice);
  EXPECT_THAT(errorAgainst(responders, client), HasSubstr("names no protocol"));
}

TEST_F(DtlsStranger, withoutExtendedMasterSecretIsRefused) {
  ForeignClient client([](SSL_CTX* context) {
    setAlice(context);
    setProtocol(context);
    SSL_CTX_set_options(context, SSL_OP_NO_EXTENDED_MASTER_SECRET);
  });
  EXPECT_THAT(errorAgainst(responders, client), HasSubstr("extended master secret"));
}

TEST_F(DtlsStranger, dtls10IsRefused) {
  ForeignClient client([](SSL_CTX* context) {
    setAlice(context);
    setProtocol(context);
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_min_proto_version(context, DTLS1_VERSION);
    SSL_CTX_set_max_proto_version(context, DTLS1_VERSION);
    SSL_CTX_set_cipher_list(context, "ALL");
  });
  EXPECT_THAT(errorAgainst(responders, client), HasSubstr("unsupported protocol"));
}

TEST_F(DtlsStranger, otherSuitesAreRefused) {
  ForeignClient client([](SSL_CTX* context) {
    setAlice(context);
    setProtocol(context);
    SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-GCM-SHA256");
  });
  EXPECT_THAT(errorAgainst(responders, client), HasSubstr("no cipher in common"));
}

}  // namespace
}  // namespace braid::dtls_stranger_test
