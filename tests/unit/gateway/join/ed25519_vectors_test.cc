// Signatures by Ed25519 against the vectors of Project Wycheproof (tests/vectors): wrong ones that
// implementations took, and right ones that they refused.

#include <gtest/gtest.h>

#include <algorithm>

#include "gateway/join/invitation.h"
#include "tests/unit/tunnel/wire/vector_file.h"

namespace braid::ed25519_vectors_test {
namespace {

TEST(Ed25519, TakesTheSignaturesThatAreValidAndNoOthers) {
  int compared = 0, differ = 0;
  for (const test::VectorRow& row : test::vectorRows("ed25519.txt", 3)) {
    InvitationKey key{};
    JoinSignature signature{};
    ASSERT_EQ(row.values[0].size(), key.size());
    // A message of joining cannot hold a signature of another length.
    const bool fits = row.values[2].size() == signature.size();
    if (fits) {
      std::ranges::copy(row.values[0], key.begin());
      std::ranges::copy(row.values[2], signature.begin());
    }
    ++compared;
    if ((fits && verifyEd25519(key, signature, row.values[1])) == row.isValid) continue;
    ++differ;
    ADD_FAILURE() << "vector " << row.number;
  }
  EXPECT_GT(compared, 100);
  RecordProperty("compared", compared);
  RecordProperty("differ", differ);
}

}  // namespace
}  // namespace braid::ed25519_vectors_test
