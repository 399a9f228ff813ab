#include "tunnel/wire/handshake_envelope.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace braid::restart_notice_test {
namespace {

SessionSecrets secretsOf(uint8_t n) {
  SessionSecrets secrets;
  secrets.initiatorSecret.fill(n);
  secrets.responderSecret.fill(static_cast<uint8_t>(n + 1));
  secrets.sessionId = 0x01020300u + n;
  return secrets;
}

std::vector<uint8_t> bytesOf(const RestartNotice& call) {
  PacketPool pool(2048, 1);
  Packet packet = pool.allocate();
  writeRestartNotice(call, packet);
  return {packet.view().begin(), packet.view().end()};
}

TEST(RestartNoticeTest, BothEndsDeriveTheSameAndOtherSessionsAnother) {
  RestartNotice call = restartNoticeOf(secretsOf(1));
  EXPECT_EQ(call, restartNoticeOf(secretsOf(1)));
  EXPECT_EQ(call.session, 0x01020301u);
  EXPECT_NE(call.token, restartNoticeOf(secretsOf(2)).token);
  SessionSecrets sameId = secretsOf(2);
  sameId.sessionId = call.session;
  EXPECT_FALSE(call == restartNoticeOf(sameId)) << "a session of the same id in other times";
}

TEST(RestartNoticeTest, ComesBackAsItWasWritten) {
  RestartNotice call = restartNoticeOf(secretsOf(7));
  std::vector<uint8_t> bytes = bytesOf(call);
  EXPECT_TRUE(isRestartNotice(bytes));
  std::optional<RestartNotice> read = readRestartNotice(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, call);
}

TEST(RestartNoticeTest, OtherSizesAndTypesAreNone) {
  RecordProperty("rule", "call.size");
  std::vector<uint8_t> bytes = bytesOf(restartNoticeOf(secretsOf(7)));
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(readRestartNotice(ByteView(bytes).first(n))) << n;
  bytes.push_back(0);
  EXPECT_FALSE(readRestartNotice(bytes));
  bytes.pop_back();
  bytes[0] = 0x22;
  EXPECT_FALSE(readRestartNotice(bytes));
}

TEST(RestartNoticeTest, EveryBitOfItCounts) {
  RestartNotice call = restartNoticeOf(secretsOf(7));
  const std::vector<uint8_t> bytes = bytesOf(call);
  for (size_t bit = 8; bit < bytes.size() * 8; ++bit) {
    std::vector<uint8_t> changed = bytes;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_FALSE(readRestartNotice(changed).value() == call) << bit;
  }
}

}  // namespace
}  // namespace braid::restart_notice_test
