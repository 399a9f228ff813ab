#include "gateway/join/join_messages.h"

#include <gtest/gtest.h>

namespace braid::join_messages_test {
namespace {

JoinRequest sampleRequest() {
  JoinRequest out;
  out.id.fill(0x11);
  out.signature.fill(0x22);
  out.networks = {*Prefix::parse("192.168.7.0/24"), *Prefix::parse("fd00:7::/64")};
  return out;
}

JoinAnswer sampleAnswer() {
  JoinAnswer out;
  out.code = JoinCode::kJoined;
  out.name = "van-7";
  out.concentrator = {*Address::parse("10.99.0.1"), *Address::parse("fd99::1")};
  out.edge = {{*Address::parse("10.99.0.2"), 24}, {*Address::parse("fd99::2"), 64}};
  out.networks = {*Prefix::parse("10.1.0.0/16")};
  return out;
}

TEST(JoinMessagesTest, ARequestIsReadAsItWasWritten) {
  std::optional<JoinRequest> read = readRequest(writeRequest(sampleRequest()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, sampleRequest().id);
  EXPECT_EQ(read->signature, sampleRequest().signature);
  EXPECT_EQ(read->networks, sampleRequest().networks);
}

// The other side, as root, writes the name into a comment of its configuration.
TEST(JoinMessagesTest, ANameThatIsMoreThanANameIsMalformed) {
  for (const char* name : {"", "x\nforwarding: on\n#", "a b", "../x", ".x", "-x", "a/b"}) {
    JoinAnswer answer = sampleAnswer();
    answer.name = name;
    EXPECT_FALSE(readAnswer(writeAnswer(answer)).has_value()) << name;
  }
}

TEST(JoinMessagesTest, TextsOfOthersMoveNoCursor) {
  JoinAnswer answer;
  answer.code = JoinCode::kRefused;
  answer.text = "no\x1b[2J\n \u009b2J \u202egnp\u202c";
  EXPECT_EQ(readAnswer(writeAnswer(answer))->text, "no?[2J? ?2J ?gnp?");
}

TEST(JoinMessagesTest, AnAnswerIsReadAsItWasWritten) {
  std::optional<JoinAnswer> read = readAnswer(writeAnswer(sampleAnswer()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->code, JoinCode::kJoined);
  EXPECT_EQ(read->name, "van-7");
  EXPECT_EQ(read->concentrator, sampleAnswer().concentrator);
  EXPECT_EQ(read->edge, sampleAnswer().edge);
  EXPECT_EQ(read->networks, sampleAnswer().networks);
  JoinAnswer refused;
  refused.code = JoinCode::kNetworks;
  refused.text = std::string(1000, 'x');
  read = readAnswer(writeAnswer(refused));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->code, JoinCode::kNetworks);
  EXPECT_EQ(read->text, std::string(kMaxJoinText, 'x'));
}

TEST(JoinMessagesTest, TheLargestFitADatagram) {
  JoinRequest request = sampleRequest();
  request.networks.assign(kMaxJoinNetworks, *Prefix::parse("fd00:7::/64"));
  EXPECT_TRUE(readRequest(writeRequest(request)));
  JoinAnswer answer = sampleAnswer();
  answer.text = std::string(kMaxJoinText, 't');
  answer.name = std::string(32, 'n');
  answer.networks = request.networks;
  answer.concentrator.assign(kMaxJoinAddresses, *Address::parse("fd99::1"));
  answer.edge.assign(kMaxJoinAddresses, {*Address::parse("fd99::2"), 64});
  EXPECT_TRUE(readAnswer(writeAnswer(answer)));
}

TEST(JoinMessagesTest, WhatIsCutLongerOrOutOfRangeIsRefused) {
  RecordProperty("rule", "join.format");
  JoinMessage request = writeRequest(sampleRequest()), answer = writeAnswer(sampleAnswer());
  for (size_t size = 0; size < request.size(); ++size)
    EXPECT_FALSE(readRequest(ByteView(request).first(size))) << size;
  for (size_t size = 0; size < answer.size(); ++size)
    EXPECT_FALSE(readAnswer(ByteView(answer).first(size))) << size;
  JoinMessage longer = request;
  longer.push_back(0);
  EXPECT_FALSE(readRequest(longer));
  JoinMessage otherFormat = request;
  otherFormat[0] = 2;
  EXPECT_FALSE(readRequest(otherFormat));
  JoinMessage hostBits = request;
  hostBits[1 + 8 + 64 + 1 + 1 + 3] = 1;  // 192.168.7.1/24
  EXPECT_FALSE(readRequest(hostBits));
  JoinMessage tooLong = request;
  tooLong[1 + 8 + 64 + 1 + 1 + 4] = 33;  // 192.168.7.0/33
  EXPECT_FALSE(readRequest(tooLong));
  JoinMessage tooMany = request;
  tooMany[1 + 8 + 64] = kMaxJoinNetworks + 1;
  EXPECT_FALSE(readRequest(tooMany));
  JoinMessage unknownCode = answer;
  unknownCode[1] = 77;
  EXPECT_EQ(readAnswer(unknownCode)->code, JoinCode::kRefused)
      << "a later release may have further reasons";
}

}  // namespace
}  // namespace braid::join_messages_test
