#include "gateway/join/invitation.h"

#include <gtest/gtest.h>

#include <functional>

namespace braid::join_proof_test {
namespace {

InvitationSecret secretOf(uint8_t n) {
  InvitationSecret out;
  out.bytes.fill(n);
  return out;
}

struct JoinProofTest : testing::Test {
  JoinProofTest() {
    statement.binding.fill(1);
    statement.edge.fill(2);
    statement.concentrator.fill(3);
    statement.wish = wish;
  }
  std::vector<uint8_t> wish{1, 4, 10, 0, 0, 0, 8};
  JoinStatement statement;
  InvitationSecret secret = secretOf(9);
  InvitationKey key = publicKeyOf(secret);
};

TEST_F(JoinProofTest, TheSecretsOwnSignatureHolds) {
  EXPECT_TRUE(verifyJoin(key, signJoin(secret, statement), statement));
}

TEST_F(JoinProofTest, AnotherSecretProvesNothing) {
  EXPECT_FALSE(verifyJoin(key, signJoin(secretOf(8), statement), statement));
  EXPECT_FALSE(verifyJoin(publicKeyOf(secretOf(8)), signJoin(secret, statement), statement));
}

TEST_F(JoinProofTest, ItIsWorthNothingInAnotherHandshakeOrForOtherPinsOrWishes) {
  JoinSignature signature = signJoin(secret, statement);
  std::vector<uint8_t> otherWish{1, 4, 10, 0, 0, 0, 9};
  const std::function<void(JoinStatement&)> changes[] = {
      [](JoinStatement& s) { s.binding[31] ^= 1; }, [](JoinStatement& s) { s.edge[0] ^= 1; },
      [](JoinStatement& s) { s.concentrator[5] ^= 0x80; },
      [&](JoinStatement& s) { s.wish = otherWish; }};
  for (const auto& change : changes) {
    JoinStatement other = statement;
    change(other);
    EXPECT_FALSE(verifyJoin(key, signature, other));
  }
}

TEST_F(JoinProofTest, EachBitOfTheSignatureCounts) {
  JoinSignature signature = signJoin(secret, statement);
  for (size_t bit = 0; bit < 8 * signature.size(); ++bit) {
    JoinSignature changed = signature;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_FALSE(verifyJoin(key, changed, statement)) << bit;
  }
}

TEST_F(JoinProofTest, ThePublicHalfIsNotTheSecret) {
  EXPECT_NE(key, secret.bytes);
  EXPECT_NE(idOf(key), idOf(publicKeyOf(secretOf(8))));
  InvitationSecret stolen;
  stolen.bytes = key;
  EXPECT_FALSE(verifyJoin(key, signJoin(stolen, statement), statement))
      << "who reads the file cannot join";
}

}  // namespace
}  // namespace braid::join_proof_test
