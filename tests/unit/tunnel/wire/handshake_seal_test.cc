#include "tunnel/wire/handshake_envelope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace braid::handshake_seal_test {
namespace {

using Side = HandshakeEnvelope::Side;
using Bytes = std::vector<uint8_t>;

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
  for (size_t i = 0; i < header.cookie.size(); ++i)
    header.cookie[i] = static_cast<uint8_t>(0xc0 + i);
  return header;
}
struct HandshakeSealTest : testing::Test {
  PacketPool pool{2048, 8};
  HandshakeEnvelope initiator{Side::kInitiator, vectorPin()},
      responder{Side::kResponder, vectorPin()};

  Bytes sealed(HandshakeEnvelope& seal, HandshakeKind kind, ByteView body) {
    Packet packet = pool.copy(body);
    EXPECT_TRUE(seal.seal(vectorHeader(kind), packet));
    return {packet.view().begin(), packet.view().end()};
  }
  static Bytes hello() { return {'h', 'e', 'l', 'l', 'o'}; }
};

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
  HandshakeEnvelope other(Side::kResponder, Pin{1});
  copy = bytes;
  EXPECT_FALSE(other.open(copy));
}

TEST_F(HandshakeSealTest, EveryBitIsGuarded) {
  RecordProperty("rule", "handshake.size handshake.seal");
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
