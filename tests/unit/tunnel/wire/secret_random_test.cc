#include "tunnel/wire/secrets.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/random.h"
#include "tests/splitmix.h"

namespace braid::secret_random_test {
namespace {

// RFC 8439 appendix A.1, test vectors 1 and 2.
TEST(SecretRandom, IsTheKeyStreamOfChaCha20) {
  SecretRandom random(RandomKey{});
  EXPECT_EQ(random.next(), 0x76b8e0ada0f13d90u);
  EXPECT_EQ(random.next(), 0x405d6ae55386bd28u);
  for (int i = 2; i < 8; ++i) random.next();
  EXPECT_EQ(random.next(), 0x9f07e7be5551387au);
}

TEST(SecretRandom, TheSameKeyGivesTheSameNumbersAndAnotherOthers) {
  SecretRandom one(knownKey(1)), again(knownKey(1)), other(knownKey(2));
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    uint64_t number = one.next();
    EXPECT_EQ(number, again.next());
    seen.insert(number);
    seen.insert(other.next());
  }
  EXPECT_EQ(seen.size(), 2000u);
}

TEST(SecretRandom, StaysBelowItsBound) {
  SecretRandom random(knownKey(3));
  EXPECT_EQ(random.below(0), 0u);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    uint64_t number = random.below(10);
    EXPECT_LT(number, 10u);
    seen.insert(number);
  }
  EXPECT_EQ(seen.size(), 10u);
}

TEST(SecretRandom, FillsBytesWithWhatComesNextInWholeNumbers) {
  SecretRandom filled(knownKey(4)), numbers(knownKey(4));
  for (size_t size : {0, 8, 12, 1, 500}) {  // 500: beyond the end of one generated block
    std::vector<uint8_t> bytes(size, 0);
    filled.fill(bytes);
    std::vector<uint8_t> expected((size + 7) / 8 * 8);
    for (size_t at = 0; at < expected.size(); at += 8) store64(&expected[at], numbers.next());
    expected.resize(size);
    EXPECT_EQ(bytes, expected);
  }
  EXPECT_EQ(filled.next(), numbers.next());
}

// The old generator of tokens: from one token an attacker could compute all later ones.
TEST(SecretRandom, OneNumberTellsAllOfSplitMixAndNothingHere) {
  Random old(7);
  SecretRandom random(knownKey(7));
  for (int i = 0; i < 1000; ++i) {
    test::SplitMix guess = test::SplitMix::after(old.next());
    EXPECT_EQ(guess.next(), old.next());
    guess = test::SplitMix::after(random.next());
    EXPECT_NE(guess.next(), random.next());
  }
}

// From a SplitMix output an attacker can also compute all earlier outputs, and from the first
// output the seed.
TEST(SecretRandom, SplitMixIsInvertedBackToItsSeed) {
  for (uint64_t seed : {0ull, 1ull, 0xffffffffffffffffull, 0x0123456789abcdefull})
    EXPECT_EQ(test::SplitMix::seedOf(Random(seed).next()), seed);
}

}  // namespace
}  // namespace braid::secret_random_test
