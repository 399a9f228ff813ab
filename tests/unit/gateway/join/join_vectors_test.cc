// Recomputes the test vector for joining in docs/protocol.md.

#include <gtest/gtest.h>

#include "gateway/join/join_messages.h"
#include "tests/unit/tunnel/wire/document_vector.h"

namespace braid::join_vectors_test {
namespace {

using test::arrayOf;
using Octets = std::vector<uint8_t>;

TEST(JoinVectors, Joining) {
  test::Vector v("V9");
  Octets exporter = v["exporter"];
  JoinSecrets secrets;
  std::copy_n(exporter.begin(), 32, secrets.initiatorSecret.begin());
  std::copy_n(exporter.begin() + 32, 32, secrets.responderSecret.begin());
  std::copy_n(exporter.begin() + 64, 32, secrets.binding.begin());
  InvitationSecret secret;
  secret.bytes = arrayOf<32>(v["secret"]);
  InvitationKey key = publicKeyOf(secret);
  EXPECT_EQ(key, arrayOf<32>(v["public_key"]));
  EXPECT_EQ(idOf(key), arrayOf<8>(v["invitation"]));

  std::vector<Prefix> networks{*Prefix::parse("192.168.7.0/24"), *Prefix::parse("fd00:0:0:7::/64")};
  JoinMessage wish = wishOf(networks);
  EXPECT_EQ(wish, v["networks"]);
  JoinStatement statement{secrets.binding, arrayOf<32>(v["edge_pin"]), arrayOf<32>(v["own_pin"]),
                          wish};
  JoinSignature signature = signJoin(secret, statement);
  EXPECT_EQ(signature, arrayOf<64>(v["signature"]));
  EXPECT_TRUE(verifyJoin(key, arrayOf<64>(v["signature"]), statement));
  JoinMessage request = writeRequest({idOf(key), signature, networks});
  EXPECT_EQ(request, v["request"]);
  EXPECT_TRUE(readRequest(v["request"]));
  secrets.aead = AeadKind::kChaCha20Poly1305;
  EXPECT_EQ(JoinChannel(secrets, JoinChannel::Side::kInitiator).seal(request),
            v["request_chacha20"]);
  secrets.aead = AeadKind::kAes128Gcm;
  EXPECT_EQ(JoinChannel(secrets, JoinChannel::Side::kInitiator).seal(request), v["request_aes128"]);

  JoinAnswer answer;
  answer.code = JoinCode::kJoined;
  answer.name = "van";
  answer.concentrator = {*Address::parse("10.99.0.1")};
  answer.edge = {{*Address::parse("10.99.0.2"), 24}};
  answer.networks = {*Prefix::parse("10.1.0.0/16")};
  EXPECT_EQ(writeAnswer(answer), v["answer"]);
  EXPECT_EQ(JoinChannel(secrets, JoinChannel::Side::kResponder).seal(v["answer"]),
            v["answer_aes128"]);
}

}  // namespace
}  // namespace braid::join_vectors_test
