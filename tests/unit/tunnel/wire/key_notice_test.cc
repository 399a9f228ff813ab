#include <gtest/gtest.h>

#include <vector>

#include "tunnel/wire/handshake_envelope.h"

namespace braid::key_notice_test {
namespace {

SessionSecrets exported() {
  SessionSecrets secrets;
  secrets.initiatorSecret.fill(1);
  secrets.responderSecret.fill(2);
  secrets.sessionId = 0x01020304;
  return secrets;
}

std::vector<uint8_t> bytes() {
  PacketPool pool(2048, 1);
  Packet packet = pool.allocate();
  writeKeyNotice(keyNoticeOf(exported()), packet);
  return {packet.view().begin(), packet.view().end()};
}

TEST(KeyNoticeTest, OtherSizesAndTypesAreNone) {
  RecordProperty("rule", "key.size");
  std::vector<uint8_t> notice = bytes();
  ASSERT_TRUE(readKeyNotice(notice));
  for (size_t n = 0; n < notice.size(); ++n)
    EXPECT_FALSE(readKeyNotice(ByteView(notice).first(n))) << n;
  notice.push_back(0);
  EXPECT_FALSE(readKeyNotice(notice));
  notice.pop_back();
  notice[0] = 0x23;
  EXPECT_FALSE(readKeyNotice(notice));
}

TEST(KeyNoticeTest, EveryBitOfItCounts) {
  RecordProperty("rule", "key.token");
  const KeyNotice made = keyNoticeOf(exported());
  for (size_t bit = 8; bit < 8 * kRestartNoticeSize; ++bit) {
    std::vector<uint8_t> notice = bytes();
    notice[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    std::optional<KeyNotice> read = readKeyNotice(notice);
    EXPECT_TRUE(read && !(*read == made)) << bit;
  }
}

TEST(KeyNoticeTest, ItsTokenIsNoneOfARestartNotice) {
  EXPECT_NE(keyNoticeOf(exported()).token, restartNoticeOf(exported()).token);
}

TEST(PresharedKeyTest, IsTheBase64OfAllItsBytesAndNothingElse) {
  PresharedKey key;
  for (uint8_t i = 0; i < 32; ++i) key.bytes[i] = i;
  const std::string text = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
  EXPECT_EQ(parsePresharedKey(text), key);
  for (const std::string& wrong :
       {std::string(), text.substr(1), text + "=", text + "\n", " " + text.substr(1),
        text.substr(0, 43) + "A", text.substr(0, 42) + "9=", "sha256:" + text})
    EXPECT_FALSE(parsePresharedKey(wrong)) << wrong;
}

}  // namespace
}  // namespace braid::key_notice_test
