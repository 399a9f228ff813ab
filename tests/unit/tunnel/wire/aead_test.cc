#include "tunnel/wire/aead.h"

#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/wire/hex.h"

namespace braid::aead_test {
namespace {

// OpenSSL accepts memory functions only before its first allocation, so they are installed before
// main().
std::atomic<uint64_t> allocations{0};
const bool kCountsAllocations = CRYPTO_set_mem_functions(
    [](size_t n, const char*, int) { return ++allocations, std::malloc(n); },
    [](void* p, size_t n, const char*, int) { return ++allocations, std::realloc(p, n); },
    [](void* p, const char*, int) { std::free(p); });

using Bytes = std::vector<uint8_t>;
using test::fromHex;

Bytes text(std::string_view s) {
  return {s.begin(), s.end()};
}

Bytes counting(size_t n, uint8_t first = 0) {
  Bytes b(n);
  std::iota(b.begin(), b.end(), first);
  return b;
}

Bytes random(Random& r, size_t n) {
  Bytes b(n);
  for (uint8_t& x : b) x = static_cast<uint8_t>(r.next());
  return b;
}

Bytes sealed(Aead& aead, uint32_t subflow, uint64_t pn, const Bytes& header, const Bytes& plain) {
  Bytes out(plain.size() + kTagSize);
  ByteView piece = plain;
  EXPECT_TRUE(aead.seal(subflow, pn, header, {&piece, 1}, out.data()));
  return out;
}

enum class Library { kOpenSsl, kIpsecMb };

// Every kind of cipher, with every library that supports it.
class AeadTest : public testing::TestWithParam<std::tuple<AeadKind, Library>> {
 protected:
  void SetUp() override {
    if (!cipher(Aead::Use::kSeal)) GTEST_SKIP() << "this library does not have it on this machine";
    seal = make(Aead::Use::kSeal);
    open = make(Aead::Use::kOpen);
  }
  std::unique_ptr<AeadCipher> cipher(Aead::Use use) const {
    return library == Library::kOpenSsl ? makeOpenSslCipher(kind, use, key)
                                        : makeIpsecMbCipher(kind, key);
  }
  Aead make(Aead::Use use) const { return Aead(cipher(use), use, iv); }

  AeadKind kind = std::get<0>(GetParam());
  Library library = std::get<1>(GetParam());
  Bytes key = counting(aeadKeySize(kind));
  Bytes iv = counting(Aead::kIvSize, 0x40);
  Aead seal, open;
  Bytes header = fromHex("4000000107");
};

INSTANTIATE_TEST_SUITE_P(Ciphers, AeadTest,
                         testing::Values(std::tuple(AeadKind::kAes128Gcm, Library::kOpenSsl),
                                         std::tuple(AeadKind::kAes256Gcm, Library::kOpenSsl),
                                         std::tuple(AeadKind::kChaCha20Poly1305, Library::kOpenSsl),
                                         std::tuple(AeadKind::kAes128Gcm, Library::kIpsecMb),
                                         std::tuple(AeadKind::kAes256Gcm, Library::kIpsecMb)),
                         [](const auto& p) {
                           AeadKind kind = std::get<0>(p.param);
                           std::string name = kind == AeadKind::kAes128Gcm   ? "Aes128"
                                              : kind == AeadKind::kAes256Gcm ? "Aes256"
                                                                             : "ChaCha20";
                           return name + (std::get<1>(p.param) == Library::kOpenSsl ? "OpenSsl"
                                                                                    : "IpsecMb");
                         });

// Each library must open what the other seals, because peers may use different libraries.
TEST_P(AeadTest, theOtherLibraryOpensIt) {
  std::unique_ptr<AeadCipher> other = library == Library::kIpsecMb
                                          ? makeOpenSslCipher(kind, Aead::Use::kOpen, key)
                                          : makeIpsecMbCipher(kind, key);
  if (!other) GTEST_SKIP() << "there is no other one";
  Aead opens(std::move(other), Aead::Use::kOpen, iv);
  Random r(3);
  for (size_t size = 0; size < 300; ++size) {
    Bytes plain = random(r, size), box = sealed(seal, 9, size, header, plain);
    ASSERT_TRUE(opens.open(9, size, header, box)) << size;
    box.resize(size);
    ASSERT_EQ(box, plain);
  }
}

TEST_P(AeadTest, aDamagedBoxDoesNotOpenAndTheNextOneDoes) {
  Bytes plain = counting(1400);
  Bytes box = sealed(seal, 3, 5, header, plain), damaged = box;
  damaged[7] ^= 1;
  ASSERT_FALSE(open.open(3, 5, header, damaged));
  ASSERT_TRUE(open.open(3, 5, header, box));
  box.resize(plain.size());
  ASSERT_EQ(box, plain);
}

// Computed independently of this code (Python's cryptography), nonce = IV XOR (00000003
// 000000123456789a).
TEST_P(AeadTest, givesTheReferenceCiphertext) {
  const char* expected = kind == AeadKind::kAes128Gcm
                             ? "2387c27913ba900ba88092943057b55fe205741e2effc32b14120ecfff3d9f63"
                               "faac1636fda573262b45d1f21e5e91f962ef64b7c7c444fb024a97"
                         : kind == AeadKind::kAes256Gcm
                             ? "63114ce91ba08c36f22a8452296722c63656c0d26767f7f8c0f3a1e46ba41a14"
                               "d653bc89ef71258c4117fddffe081d4e9a9923b5a1727a08b8de5b"
                             : "74eca5a7525068d1f0c638340bbd806b1965dde1ac6cd2b8fcbe5a384b5d3cf5"
                               "65c30b97af37e0e85de0b52dd84a00a3170891a1fcee981b5a9811";
  EXPECT_EQ(
      sealed(seal, 3, 0x123456789a, header, text("the quick brown fox jumps over the lazy dog")),
      fromHex(expected));
}

TEST_P(AeadTest, opensWhatItSealed) {
  const uint64_t seed = 7;
  Random r(seed);
  SCOPED_TRACE(seed);
  for (size_t size : {0, 1, 15, 16, 17, 64, 1200, 1472, 9000}) {
    Bytes plain = random(r, size), aad = random(r, r.below(40));
    uint32_t subflow = static_cast<uint32_t>(r.next());
    uint64_t pn = r.next();
    Bytes box = sealed(seal, subflow, pn, aad, plain);
    ASSERT_TRUE(open.open(subflow, pn, aad, box)) << size;
    box.resize(size);
    EXPECT_EQ(box, plain);
  }
}

TEST_P(AeadTest, piecesGiveTheSameAsOneBuffer) {
  const uint64_t seed = 11;
  Random r(seed);
  SCOPED_TRACE(seed);
  for (int round = 0; round < 200; ++round) {
    Bytes plain = random(r, r.below(300));
    std::vector<ByteView> pieces;
    for (ByteView rest = plain; !rest.empty();) {
      size_t n = r.below(rest.size() + 1);  // empty pieces too
      pieces.push_back(rest.first(n));
      rest = rest.subspan(n);
    }
    Bytes out(plain.size() + kTagSize);
    ASSERT_TRUE(seal.seal(1, round, header, pieces, out.data()));
    ASSERT_EQ(out, sealed(seal, 1, round, header, plain)) << round;
  }
}

TEST_P(AeadTest, sealsInPlace) {
  Bytes plain = counting(100), box = plain;
  box.resize(plain.size() + kTagSize);
  ByteView piece = ByteView(box).first(plain.size());
  ASSERT_TRUE(seal.seal(1, 2, header, {&piece, 1}, box.data()));
  EXPECT_EQ(box, sealed(seal, 1, 2, header, plain));
}

TEST_P(AeadTest, everyFlippedBitFails) {
  const Bytes box = sealed(seal, 1, 2, header, counting(33));
  for (size_t bit = 0; bit < box.size() * 8; ++bit) {
    Bytes bad = box;
    bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    ASSERT_FALSE(open.open(1, 2, header, bad)) << bit;
  }
  for (size_t bit = 0; bit < header.size() * 8; ++bit) {
    Bytes badHeader = header, copy = box;
    badHeader[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    ASSERT_FALSE(open.open(1, 2, badHeader, copy)) << bit;
  }
  Bytes good = box;
  EXPECT_TRUE(open.open(1, 2, header, good));
}

TEST_P(AeadTest, everyBitOfSubflowAndPacketNumberCounts) {
  const Bytes box = sealed(seal, 5, 77, header, counting(20));
  for (int bit = 0; bit < 32; ++bit) {
    Bytes copy = box;
    ASSERT_FALSE(open.open(5 ^ (uint32_t{1} << bit), 77, header, copy)) << bit;
  }
  for (int bit = 0; bit < 64; ++bit) {
    Bytes copy = box;
    ASSERT_FALSE(open.open(5, 77 ^ (uint64_t{1} << bit), header, copy)) << bit;
  }
}

TEST_P(AeadTest, cutOrLengthenedFails) {
  const Bytes box = sealed(seal, 1, 2, header, counting(20));
  for (size_t n = 0; n < box.size(); ++n) {
    Bytes cut(box.begin(), box.begin() + static_cast<ptrdiff_t>(n));
    ASSERT_FALSE(open.open(1, 2, header, cut)) << n;
  }
  Bytes longer = box;
  longer.push_back(0);
  EXPECT_FALSE(open.open(1, 2, header, longer));
}

TEST_P(AeadTest, aFailureLeavesNoTrace) {
  Bytes first = sealed(seal, 1, 1, header, counting(20)),
        second = sealed(seal, 1, 2, header, counting(20));
  first[0] ^= 1;
  EXPECT_FALSE(open.open(1, 1, header, first));
  EXPECT_TRUE(open.open(1, 2, header, second));
}

TEST_P(AeadTest, eachObjectServesOneDirection) {
  Bytes box = sealed(seal, 1, 1, header, counting(20));
  ByteView piece = box;
  Bytes out(64);
  EXPECT_FALSE(seal.open(1, 1, header, box));
  EXPECT_FALSE(open.seal(1, 1, header, {&piece, 1}, out.data()));
  EXPECT_TRUE(open.open(1, 1, header, box));
}

TEST_P(AeadTest, movedFromIsEmpty) {
  Bytes box = sealed(seal, 1, 1, header, counting(20));
  Aead other = std::move(open);
  EXPECT_FALSE(open);
  EXPECT_FALSE(open.open(1, 1, header, box));
  EXPECT_TRUE(other.open(1, 1, header, box));
  other = Aead();
  EXPECT_FALSE(other);
}

TEST_P(AeadTest, noAllocationPerPacket) {
  ASSERT_TRUE(kCountsAllocations);
  Bytes box(1400 + kTagSize);
  ByteView pieces[] = {ByteView(box).first(1400)};
  uint64_t before = allocations;
  for (uint64_t pn = 0; pn < 100; ++pn) {
    ASSERT_TRUE(seal.seal(1, pn, header, pieces, box.data()));
    ASSERT_TRUE(open.open(1, pn, header, box));
  }
  EXPECT_EQ(allocations, before);
}

TEST_P(AeadTest, wrongKeySizeIsAnError) {
  Bytes shortKey = counting(15);
  EXPECT_THROW(Aead(kind, Aead::Use::kSeal, shortKey, iv), std::runtime_error);
  EXPECT_THROW(Aead(kind, Aead::Use::kSeal, key, shortKey), std::runtime_error);
}

// The GCM specification (McGrew, Viega), test cases 2 and 4 with the first 96-bit IV.
TEST(AeadVectors, gcmSpecification) {
  Bytes zeros(16), iv(12), none;
  Aead zeroKey(AeadKind::kAes128Gcm, Aead::Use::kSeal, zeros, iv);
  EXPECT_EQ(sealed(zeroKey, 0, 0, none, zeros),
            fromHex("0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"));
  Aead case4(AeadKind::kAes128Gcm, Aead::Use::kSeal, fromHex("feffe9928665731c6d6a8f9467308308"),
             fromHex("cafebabefacedbaddecaf888"));
  EXPECT_EQ(sealed(case4, 0, 0, fromHex("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
                   fromHex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                           "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39")),
            fromHex("42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
                    "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e0915bc94fbc3221a5db94fae9"
                    "5ae7121a47"));
}

// RFC 8439 section 2.8.2; its nonce 07000000 4041424344454647 is the IV for subflow 0, packet 0.
TEST(AeadVectors, chaChaOfRfc8439) {
  Bytes key = counting(32, 0x80);
  Aead aead(AeadKind::kChaCha20Poly1305, Aead::Use::kSeal, key,
            fromHex("070000004041424344454647"));
  Bytes plain = text(
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
      "sunscreen would be it.");
  Bytes box = sealed(aead, 0, 0, fromHex("50515253c0c1c2c3c4c5c6c7"), plain);
  EXPECT_EQ(Bytes(box.begin(), box.begin() + 16), fromHex("d31a8d34648e60db7b86afbc53ef7ec2"));
  EXPECT_EQ(Bytes(box.end() - 16, box.end()), fromHex("1ae10b594f09e26a7e902ecbd0600691"));
}

// A cipher that fails once, at its second call.
class FailingCipher final : public AeadCipher {
 public:
  bool seal(const AeadNonce&, ByteView, std::span<const ByteView>, uint8_t*) override {
    return ++calls_ != 2;
  }
  bool open(const AeadNonce&, ByteView, ByteSpan) override { return false; }

 private:
  int calls_ = 0;
};

TEST(Aead, AFailureToSealStaysKnown) {
  Bytes iv = counting(Aead::kIvSize), out(kTagSize);
  Aead aead(std::make_unique<FailingCipher>(), Aead::Use::kSeal, iv);
  EXPECT_TRUE(aead.seal(1, 1, {}, {}, out.data()));
  EXPECT_FALSE(aead.isBroken());
  EXPECT_FALSE(aead.seal(1, 2, {}, {}, out.data()));
  EXPECT_TRUE(aead.seal(1, 3, {}, {}, out.data()));
  EXPECT_TRUE(aead.isBroken());
  Aead moved = std::move(aead);
  EXPECT_TRUE(moved.isBroken());
}

TEST(Aead, WhatDoesNotOpenBreaksNothing) {
  Bytes iv = counting(Aead::kIvSize), box(100);
  Aead aead(std::make_unique<FailingCipher>(), Aead::Use::kOpen, iv);
  EXPECT_FALSE(aead.open(1, 1, {}, box));
  EXPECT_FALSE(aead.isBroken()) << "anybody can send such ones";
}

}  // namespace
}  // namespace braid::aead_test
