// The AEADs against vectors of Project Wycheproof (tests/vectors), and the libraries against each
// other. The vectors have tags, nonces and lengths at which implementations were wrong.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/wire/vector_file.h"
#include "tunnel/wire/aead.h"

namespace braid::wycheproof_test {
namespace {

using Bytes = std::vector<uint8_t>;
using Make = std::unique_ptr<AeadCipher> (*)(AeadKind, AeadUse, ByteView);

std::unique_ptr<AeadCipher> withIpsecMb(AeadKind kind, AeadUse, ByteView key) {
  return makeIpsecMbCipher(kind, key);
}

AeadNonce nonceOf(const Bytes& bytes) {
  AeadNonce out{};
  EXPECT_EQ(bytes.size(), out.size());
  std::copy_n(bytes.begin(), std::min(bytes.size(), out.size()), out.begin());
  return out;
}

Bytes sealed(AeadCipher& cipher, const AeadNonce& nonce, const Bytes& header,
             std::span<const ByteView> pieces) {
  size_t size = kTagSize;
  for (ByteView piece : pieces) size += piece.size();
  Bytes out(size);
  EXPECT_TRUE(cipher.seal(nonce, header, pieces, out.data()));
  return out;
}

/// The plaintext; nullopt when the tag is wrong.
std::optional<Bytes> opened(AeadCipher& cipher, const AeadNonce& nonce, const Bytes& header,
                            Bytes box) {
  if (!cipher.open(nonce, header, ByteSpan(box).first(box.size() - kTagSize))) return std::nullopt;
  box.resize(box.size() - kTagSize);
  return box;
}

/// Whether a library seals to the vector's bytes and opens them, or refuses them.
bool agrees(const test::VectorRow& row, AeadCipher& seals, AeadCipher& opens) {
  const AeadNonce nonce = nonceOf(row.values[1]);
  const Bytes &header = row.values[2], &plain = row.values[3];
  Bytes box = row.values[4];
  box.insert(box.end(), row.values[5].begin(), row.values[5].end());
  const std::optional<Bytes> text = opened(opens, nonce, header, box);
  if (!row.isValid) return !text;
  const ByteView piece = plain;
  return text == plain && sealed(seals, nonce, header, {&piece, 1}) == box;
}

void checkVectors(const std::string& file, bool isAes, Make make) {
  int compared = 0, differ = 0;
  for (const test::VectorRow& row : test::vectorRows(file, 6)) {
    const Bytes& key = row.values[0];
    const AeadKind kind = !isAes             ? AeadKind::kChaCha20Poly1305
                          : key.size() == 16 ? AeadKind::kAes128Gcm
                                             : AeadKind::kAes256Gcm;
    ASSERT_EQ(key.size(), aeadKeySize(kind));
    const std::unique_ptr<AeadCipher> seals = make(kind, AeadUse::kSeal, key);
    const std::unique_ptr<AeadCipher> opens = make(kind, AeadUse::kOpen, key);
    if (!seals || !opens) GTEST_SKIP() << "this library does not have it on this machine";
    ++compared;
    if (agrees(row, *seals, *opens)) continue;
    ++differ;
    ADD_FAILURE() << file << ": vector " << row.number;
  }
  EXPECT_GT(compared, 100);
  testing::Test::RecordProperty("compared", compared);
  testing::Test::RecordProperty("differ", differ);
}

TEST(Wycheproof, AesGcmOfOpenSsl) {
  checkVectors("aes_gcm.txt", true, &makeOpenSslCipher);
}
TEST(Wycheproof, AesGcmOfIpsecMb) {
  checkVectors("aes_gcm.txt", true, &withIpsecMb);
}
TEST(Wycheproof, ChaCha20Poly1305OfOpenSsl) {
  checkVectors("chacha20_poly1305.txt", false, &makeOpenSslCipher);
}

Bytes randomBytes(Random& random, size_t size) {
  Bytes out(size);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random.next());
  return out;
}

/// The text cut into up to 8 pieces, among them empty ones.
std::vector<ByteView> cut(Random& random, const Bytes& text) {
  std::vector<ByteView> out;
  ByteView rest = text;
  for (uint64_t pieces = random.below(8); pieces > 0; --pieces) {
    const size_t size = random.below(rest.size() + 1);
    out.push_back(rest.first(size));
    rest = rest.subspan(size);
  }
  out.push_back(rest);
  return out;
}

class LibrariesTest : public testing::TestWithParam<AeadKind> {};
INSTANTIATE_TEST_SUITE_P(AesGcm, LibrariesTest,
                         testing::Values(AeadKind::kAes128Gcm, AeadKind::kAes256Gcm),
                         [](const auto& p) {
                           return p.param == AeadKind::kAes128Gcm ? "Aes128" : "Aes256";
                         });

// The bytes that one library seals in pieces are those of the other in other pieces, and each opens
// what the other sealed, at every offset in memory. A bit that changes makes both refuse.
TEST_P(LibrariesTest, DifferInNothingHoweverTheTextIsCut) {
  constexpr int kRuns = 2000;
  int differ = 0;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    Random random(seed);
    const Bytes key = randomBytes(random, aeadKeySize(GetParam()));
    const auto ours = makeIpsecMbCipher(GetParam(), key);
    if (!ours) GTEST_SKIP() << "ipsec-mb does not have it on this machine";
    const auto seals = makeOpenSslCipher(GetParam(), AeadUse::kSeal, key);
    const auto opens = makeOpenSslCipher(GetParam(), AeadUse::kOpen, key);
    const AeadNonce nonce = nonceOf(randomBytes(random, AeadNonce().size()));
    const Bytes header = randomBytes(random, random.below(40));
    const Bytes plain = randomBytes(random, random.below(seed % 10 == 0 ? 9001 : 1501));
    Bytes box = sealed(*ours, nonce, header, cut(random, plain));
    const bool sameBytes = box == sealed(*seals, nonce, header, cut(random, plain));
    const bool bothOpen =
        opened(*ours, nonce, header, box) == plain && opened(*opens, nonce, header, box) == plain;
    box[random.below(box.size())] ^= static_cast<uint8_t>(1u << random.below(8));
    const bool bothRefuse =
        !opened(*ours, nonce, header, box) && !opened(*opens, nonce, header, box);
    if (sameBytes && bothOpen && bothRefuse) continue;
    ++differ;
    ADD_FAILURE() << "seed " << seed;
  }
  RecordProperty("compared", kRuns);
  RecordProperty("differ", differ);
}

}  // namespace
}  // namespace braid::wycheproof_test
