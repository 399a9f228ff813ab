// A session that hands out unsealed datagrams, which its driver seals later.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/tunnel/session/kept_packets.h"
#include "tests/unit/tunnel/session/raw_peer_test.h"

namespace braid::session_sealing_test {
namespace {

struct SessionSealing : test::RawPeerTest {
  std::vector<uint8_t> ping = test::framesOf(PingFrame{});

  SessionSealing() {
    options.sealLater = true;
    start();
    prove();
  }
  /// The session's answer to two datagrams.
  Datagram answer() {
    say(ping);
    say(ping);
    Datagram out;
    EXPECT_TRUE(hub->pollDatagram(out, now));
    return out;
  }
};

TEST_F(SessionSealing, ADatagramIsOpenAndHasRoomUntilItIsSealed) {
  Datagram out = answer();
  std::vector<uint8_t> before(out.bytes.view().begin(), out.bytes.view().end());
  ASSERT_TRUE(out.unsealed);
  EXPECT_FALSE(peer->open(out, now));
  out.bytes.setSize(0);
  std::copy(before.begin(), before.end(), out.bytes.append(before.size()));
  out.unsealed.seal(out.bytes.span(), 0);
  EXPECT_TRUE(out.unsealed.good);
  EXPECT_TRUE(peer->open(out, now));
}

TEST_F(SessionSealing, ACipherThatFailsEndsTheSession) {
  Datagram out = answer();
  std::vector<uint8_t> key(aeadKeySize(AeadKind::kAes128Gcm)), iv(Aead::kIvSize);
  *out.unsealed.keys =
      Aead(AeadKind::kAes128Gcm, Aead::Use::kOpen, key, iv);  // as if OpenSSL failed
  out.unsealed.seal(out.bytes.span(), 0);
  EXPECT_FALSE(out.unsealed.good);
  EXPECT_FALSE(hub->over()) << "nobody has told it";
  EXPECT_EQ(say(ping), Drop::kBadSeal);
  EXPECT_TRUE(hub->over());
}

}  // namespace
}  // namespace braid::session_sealing_test
