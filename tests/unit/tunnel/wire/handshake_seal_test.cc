#include "tunnel/wire/handshake_seal.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"

namespace braid::handshake_seal_test {
namespace {

using Side = HandshakeSeal::Side;
using Bytes = std::vector<uint8_t>;

// docs/protocol.md, appendix: made by another implementation (Python's cryptography).
constexpr const char* kInitiators =
    "20a0a1a2a3a4a5a6a7b0b1b2b3b4b5b6b7b8b9babbc0c1c2c3c4c5c6c7c8c9cacbcccdcecf7040f1"
    "85aefa29d734aaa0bfdb79fd6b9f409c7fef";
constexpr const char* kResponders =
    "21a0a1a2a3a4a5a6a7b0b1b2b3b4b5b6b7b8b9babb0b2a94c9691d3ac46b5ae535f1cad7727825cf"
    "6292";
constexpr const char* kRequest =
    "22a0a1a2a3a4a5a6a7b0b1b2b3b4b5b6b7b8b9babba38e3a66c2b31ddb24ffa4f1a93b093d1a7e31"
    "f582a30043d842f965f29079de";

Pin vectorPin() {
  Pin pin;
  for (size_t i = 0; i < pin.size(); ++i) pin[i] = static_cast<uint8_t>(i);
  return pin;
}
HandshakeHeader vectorHeader(HandshakeKind kind) {
  HandshakeHeader header;
  header.kind = kind;
  for (size_t i = 0; i < header.id.size(); ++i) header.id[i] = static_cast<uint8_t>(0xa0 + i);
  for (size_t i = 0; i < header.nonce.size(); ++i) header.nonce[i] = static_cast<uint8_t>(0xb0 + i);
  for (size_t i = 0; i < header.cookie.size(); ++i) header.cookie[i] = static_cast<uint8_t>(0xc0 + i);
  return header;
}
std::string hex(ByteView bytes) {
  std::string text;
  for (uint8_t b : bytes) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

struct HandshakeSealTest : testing::Test {
  PacketPool pool{2048, 8};
  HandshakeSeal initiator{Side::kInitiator, vectorPin()}, responder{Side::kResponder, vectorPin()};

  Bytes sealed(HandshakeSeal& seal, HandshakeKind kind, ByteView body) {
    Packet packet = pool.copy(body);
    EXPECT_TRUE(seal.seal(vectorHeader(kind), packet));
    return {packet.view().begin(), packet.view().end()};
  }
  static Bytes hello() { return {'h', 'e', 'l', 'l', 'o'}; }
};

TEST_F(HandshakeSealTest, MakesTheBytesOfTheTestVectors) {
  EXPECT_EQ(hex(sealed(initiator, HandshakeKind::kInitiator, hello())), kInitiators);
  EXPECT_EQ(hex(sealed(responder, HandshakeKind::kResponder, hello())), kResponders);
  EXPECT_EQ(
      hex(sealed(responder, HandshakeKind::kCookieRequest, vectorHeader(HandshakeKind::kInitiator).cookie)),
      kRequest);
}

TEST_F(HandshakeSealTest, TheDocumentHasTheSameVectors) {
  std::ifstream file(std::string(BRAID_DOCS) + "/protocol.md");
  std::stringstream text;
  std::string line;
  while (std::getline(file, line)) text << (line.starts_with("    ") ? line.substr(4) : "\n");
  for (const char* vector : {kInitiators, kResponders, kRequest})
    EXPECT_NE(text.str().find(vector), std::string::npos) << vector;
}

TEST_F(HandshakeSealTest, OpensOnlyAtTheOtherSide) {
  Bytes bytes = sealed(initiator, HandshakeKind::kInitiator, hello());
  Bytes copy = bytes;
  auto opened = responder.open(copy);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->header.kind, HandshakeKind::kInitiator);
  EXPECT_EQ(opened->header.id, vectorHeader(HandshakeKind::kInitiator).id);
  EXPECT_EQ(opened->header.cookie, vectorHeader(HandshakeKind::kInitiator).cookie);
  EXPECT_TRUE(std::ranges::equal(opened->body, hello()));
  copy = bytes;
  EXPECT_FALSE(initiator.open(copy)) << "reflected";
  HandshakeSeal other(Side::kResponder, Pin{1});
  copy = bytes;
  EXPECT_FALSE(other.open(copy));
}

TEST_F(HandshakeSealTest, EveryBitIsGuarded) {
  for (Bytes bytes : {sealed(initiator, HandshakeKind::kInitiator, hello())}) {
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      Bytes bad = bytes;
      bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      EXPECT_FALSE(responder.open(bad)) << bit;
    }
    for (size_t size = 0; size < bytes.size(); ++size) {
      Bytes cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_FALSE(responder.open(cut)) << size;
    }
  }
  Bytes large(kMaxHandshakeDatagram + 1, 0x20);
  EXPECT_FALSE(responder.open(large));
}

}  // namespace
}  // namespace braid::handshake_seal_test
