// Handshakes with unknown peers: the memory that OpenSSL holds for a peer that has not shown a
// certificate yet, and the requirements that a peer must not be able to evade.

#include <gmock/gmock.h>
#include <malloc.h>
#include <openssl/err.h>

#include "base/random.h"
#include "gateway/dtls/dtls.h"
#include "tests/unit/gateway/dtls/dtls_fixture.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid::dtls_stranger_test {
namespace {

using State = Handshake::State;
using testing::HasSubstr;

// A DTLS 1.2 record (RFC 6347 section 4.1).
Bytes record(uint8_t type, uint16_t epoch, const Bytes& body) {
  Bytes bytes{type, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  store16(&bytes[3], epoch);
  store16(&bytes[11], static_cast<uint16_t>(body.size()));
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}
// The first fragment of a handshake message of that length.
Bytes message(uint8_t type, uint32_t length, size_t fragment) {
  Bytes body(12 + fragment);
  store32(&body[0], uint32_t{type} << 24 | length);
  store32(&body[8], static_cast<uint32_t>(fragment));
  body[6] = 0;
  return body;
}
Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(DtlsFilter, SplitsADatagramWhereItsEncryptedRecordsBegin) {
  Bytes clear = record(22, 0, message(16, 10, 10)) + record(20, 0, {1}),
        sealed = record(22, 1, Bytes(48));
  Bytes whole = clear + sealed;
  DtlsFilter::Parts parts = DtlsFilter::split(whole);
  EXPECT_TRUE(std::ranges::equal(parts.clear, clear));
  EXPECT_TRUE(std::ranges::equal(parts.sealed, sealed));
  parts = DtlsFilter::split(sealed);
  EXPECT_TRUE(parts.clear.empty());
  EXPECT_TRUE(std::ranges::equal(parts.sealed, sealed));
}

TEST(DtlsFilter, CutsOffWhatMayNotPass) {
  RecordProperty("rule", "handshake.message handshake.early");
  Bytes good = record(20, 0, {1});
  for (const Bytes& bad :
       {record(22, 0, message(11, DtlsFilter::kMaxMessage + 1, 20)),
        record(22, 0, message(11, 20, 20) + message(11, DtlsFilter::kMaxMessage + 1, 20)),
        record(22, 0, Bytes(5))}) {
    Bytes bytes = good + bad + good;
    EXPECT_TRUE(std::ranges::equal(DtlsFilter::split(bytes).clear, good));
  }
  Bytes cut = good + record(22, 0, message(11, 20, 20));
  cut.pop_back();
  EXPECT_TRUE(std::ranges::equal(DtlsFilter::split(cut).clear, good));
  Bytes behind = record(23, 1, Bytes(20)) + good;
  EXPECT_TRUE(DtlsFilter::split(behind).clear.empty());
  Bytes many = record(23, 1, Bytes(DtlsFilter::kMaxSealed));
  EXPECT_TRUE(DtlsFilter::split(many).sealed.empty());
  EXPECT_TRUE(DtlsFilter::split({}).clear.empty());
}

class DtlsStranger : public testing::Test {
 protected:
  DtlsStranger() { responders.setAcceptedPins({alice().pin}); }

  PacketPool pool{2000, 64};
  DtlsProvider initiators{alice()}, responders{bob()};
};

TEST_F(DtlsStranger, garbageGetsNowhere) {
  const uint64_t seed = 3;
  Random random(seed);
  SCOPED_TRACE(seed);
  for (int i = 0; i < 1000; ++i) {
    std::unique_ptr<Handshake> responder = responders.accept(realNow());
    for (int n = 0; n < 4; ++n) {
      Bytes bytes(random.below(300));
      for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.next());
      if (bytes.size() > 14 && random.chance(0.7))
        std::copy_n("\x16\xfe\xfd\0\0\0\0\0\0\0\0", 11, bytes.begin());
      if (bytes.size() > 14 && random.chance(0.5))
        store16(&bytes[11], static_cast<uint16_t>(bytes.size() - 13));
      if (bytes.size() > 14 && random.chance(0.5)) bytes[13] = 1;
      responder->onDatagram(bytes, realNow());
    }
    ASSERT_NE(responder->state(), State::kDone) << i;
    while (!drain(*responder, pool).empty()) {
    }
  }
}

// 768 handshakes with 100 encrypted records each took 200 MB, 16 KB for each record.
TEST_F(DtlsStranger, earlyRecordsAndAnnouncedMessagesTakeNoMemory) {
  constexpr int kHandshakes = 20;
  std::vector<std::unique_ptr<Handshake>> all;
  auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  auto begin = [&](bool stuffed) {
    std::unique_ptr<Handshake> initiator = initiators.initiate(bob().pin, realNow());
    all.push_back(responders.accept(realNow()));
    for (const Bytes& hello : drain(*initiator, pool)) all.back()->onDatagram(hello, realNow());
    for (uint16_t i = 0; stuffed && i < 100; ++i) {
      Bytes early = record(22, 1, Bytes(100));
      store16(&early[9], i);
      all.back()->onDatagram(early, realNow());
      Bytes announced = message(11, 16000, 20);
      store16(&announced[4], static_cast<uint16_t>(1 + i % 10));
      announced = record(22, 0, announced);
      store16(&announced[9], static_cast<uint16_t>(10 + i));
      all.back()->onDatagram(announced, realNow());
    }
    drain(*all.back(), pool);
  };
  begin(true);
  size_t before = used();
  for (int i = 0; i < kHandshakes; ++i) begin(false);
  size_t plain = used() - before;
  before = used();
  for (int i = 0; i < kHandshakes; ++i) begin(true);
  size_t stuffed = used() - before;
  EXPECT_LT(stuffed, plain + kHandshakes * 2048u);
  EXPECT_LT(plain, kHandshakes * (96u << 10));
}

TEST_F(DtlsStranger, aFinishedHandshakeTakesLittle) {
  auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  DtlsPair warm;
  warm.start();
  warm.run();
  size_t before = used();
  std::vector<std::unique_ptr<Handshake>> done;
  for (int i = 0; i < 10; ++i) {
    DtlsPair pair;
    pair.start();
    pair.run();
    ASSERT_TRUE(pair.done());
    done.push_back(std::move(pair.responder));
  }
  EXPECT_LT(used() - before, 10 * (48u << 10)) << "each keeps its provider's context here, too";
}

// A plain OpenSSL client, which can leave out things that Braid's own client always has.
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
  void beServer() { SSL_set_accept_state(ssl_.get()); }
  /// The received alert (RFC 5246 section 7.2); 0: none.
  int alert() const { return alert_; }
  void step(ByteView in) {
    pipe_.openInput(in);
    ERR_clear_error();
    SSL_do_handshake(ssl_.get());
    int reason = ERR_GET_REASON(ERR_peek_last_error());
    if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
      alert_ = reason - SSL_AD_REASON_OFFSET;
    pipe_.closeInput();
  }
  std::deque<Bytes>& out() { return pipe_.output(); }

 private:
  DatagramPipe pipe_;
  SslContextHandle context_;
  SslHandle ssl_;
  int alert_ = 0;
};

std::string errorAgainst(DtlsProvider& responders, ForeignClient& client) {
  PacketPool pool(2000, 16);
  std::unique_ptr<Handshake> responder = responders.accept(realNow());
  client.step({});
  for (int i = 0; i < 50 && !client.out().empty(); ++i) {
    Bytes bytes = client.out().front();
    client.out().pop_front();
    responder->onDatagram(bytes, realNow());
    for (const Bytes& answer : drain(*responder, pool)) client.step(answer);
  }
  return responder->state() == State::kFailed ? std::string(responder->error()) : "not failed";
}

void setProtocol(SSL_CTX* context) {
  SSL_CTX_set_alpn_protos(context,
                          reinterpret_cast<const unsigned char*>("\x07"
                                                                 "braid/2"),
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
  RecordProperty("rule", "handshake.secret");
  ForeignClient client([](SSL_CTX* context) {
    setAlice(context);
    setProtocol(context);
    SSL_CTX_set_options(context, SSL_OP_NO_EXTENDED_MASTER_SECRET);
  });
  EXPECT_THAT(errorAgainst(responders, client), HasSubstr("extended master secret"));
  EXPECT_EQ(client.alert(), SSL_AD_HANDSHAKE_FAILURE) << "it is told, and waits for no session";
}

// Found by the review of docs/protocol.md: both sides finished the handshake, but one had no
// session and no error.
TEST_F(DtlsStranger, aResponderWithoutExtendedMasterSecretIsRefused) {
  ForeignClient server([](SSL_CTX* context) {
    SSL_CTX_use_certificate(context, bob().certificate.get());
    SSL_CTX_use_PrivateKey(context, bob().key.get());
    SSL_CTX_set_options(context, SSL_OP_NO_EXTENDED_MASTER_SECRET);
    SSL_CTX_set_alpn_select_cb(
        context,
        [](SSL*, const unsigned char** out, unsigned char* size, const unsigned char*, unsigned,
           void*) {
          *out = reinterpret_cast<const unsigned char*>("braid/2");
          *size = 7;
          return SSL_TLSEXT_ERR_OK;
        },
        nullptr);
  });
  server.beServer();
  DtlsProvider provider(alice());
  std::unique_ptr<Handshake> initiator = provider.initiate(bob().pin, realNow());
  for (int i = 0; i < 10; ++i) {
    for (const Bytes& bytes : drain(*initiator, pool)) server.step(bytes);
    for (; !server.out().empty(); server.out().pop_front())
      initiator->onDatagram(server.out().front(), realNow());
  }
  EXPECT_EQ(initiator->state(), State::kFailed);
  EXPECT_THAT(std::string(initiator->error()), HasSubstr("extended master secret"));
  EXPECT_EQ(server.alert(), SSL_AD_HANDSHAKE_FAILURE);
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
