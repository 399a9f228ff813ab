#include "gateway/join/invitation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::invitation_test {
namespace {

using testing::HasSubstr;
using testing::Not;

Invitation sample() {
  Invitation out;
  out.addresses = {{"203.0.113.1", 4433}, {"2001:db8::1", 4433}, {"gw.example.net", 5000}};
  for (size_t i = 0; i < 32; ++i) {
    out.pin[i] = static_cast<uint8_t>(255 - i);
    out.secret.bytes[i] = static_cast<uint8_t>(7 * i);
  }
  out.expires = 1795594200;
  return out;
}

std::string problemOf(std::string_view line) {
  auto parsed = parseInvitation(line);
  auto* problem = std::get_if<std::string>(&parsed);
  return problem ? *problem : "";
}

TEST(InvitationTest, ALineSaysWhatWasPutIntoIt) {
  Invitation made = sample();
  std::string line = formatInvitation(made);
  EXPECT_THAT(line,
              testing::StartsWith(
                  "braid-invitation-1/203.0.113.1:4433,[2001:db8::1]:4433,gw.example.net:5000/"));
  EXPECT_THAT(line, HasSubstr("/2026-11-25T08:10:00Z/"));
  EXPECT_THAT(line, Not(HasSubstr(" "))) << "it is one word";
  auto parsed = parseInvitation(line);
  auto* read = std::get_if<Invitation>(&parsed);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->addresses, made.addresses);
  EXPECT_EQ(read->pin, made.pin);
  EXPECT_EQ(read->secret.bytes, made.secret.bytes);
  EXPECT_EQ(read->expires, made.expires);
}

TEST(InvitationTest, WhatATerminalBrokeIntoLinesIsRead) {
  std::string line = formatInvitation(sample());
  line.insert(60, "\r\n  ");
  EXPECT_EQ(problemOf("  " + line + "\n"), "");
}

TEST(InvitationTest, EachCutAndEachChangeIsRecognised) {
  const std::string line = formatInvitation(sample());
  for (size_t size = 0; size < line.size(); ++size)
    EXPECT_NE(problemOf(line.substr(0, size)), "") << size;
  EXPECT_THAT(problemOf(line.substr(0, line.size() - 20)), HasSubstr("not whole"));
  for (size_t at = 0; at < line.size(); ++at) {
    std::string changed = line;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    EXPECT_NE(problemOf(changed), "") << at;
  }
  EXPECT_THAT(problemOf(line + "x"), HasSubstr("not whole"));
}

TEST(InvitationTest, WhatIsNoneIsNamedAsWhatItIs) {
  EXPECT_THAT(problemOf(""), HasSubstr("there is no invitation"));
  EXPECT_THAT(problemOf(" \n"), HasSubstr("there is no invitation"));
  EXPECT_THAT(problemOf("sha256:abc"), HasSubstr("is no invitation"));
  std::string line = formatInvitation(sample());
  line[line.find('1')] = '2';
  EXPECT_THAT(problemOf(line), HasSubstr("another release"));
  EXPECT_THAT(problemOf(std::string(100'000, 'a')), HasSubstr("is no invitation"));
  EXPECT_THAT(problemOf(line.substr(0, 18) + std::string(100'000, 'a')),
              HasSubstr("another release"));
}

// Printed text is shown on screens and written to installers' logs.
TEST(InvitationTest, NoProblemRepeatsAnyPartOfTheLine) {
  const std::string line = formatInvitation(sample());
  std::string secret = line.substr(line.size() - 60, 20);
  EXPECT_THAT(problemOf(line.substr(0, line.size() - 2)), Not(HasSubstr(secret.substr(0, 8))));
}

TEST(InvitationTest, SecretsDiffer) {
  EXPECT_NE(InvitationSecret::draw().bytes, InvitationSecret::draw().bytes);
}

TEST(InvitationTest, AddressesAreNumbersOrNames) {
  EXPECT_EQ(parseHostPort("192.0.2.1:4433"), (HostPort{"192.0.2.1", 4433}));
  EXPECT_EQ(parseHostPort("[2001:db8::1]:1"), (HostPort{"2001:db8::1", 1}));
  EXPECT_EQ(parseHostPort("gw:65535"), (HostPort{"gw", 65535}));
  for (const char* text :
       {"", "gw", "gw:", "gw:0", "gw:65536", ":1", "2001:db8::1:1", "g w:1", "a/b:1", "1.2.3:4"})
    EXPECT_EQ(parseHostPort(text), std::nullopt) << text;
}

}  // namespace
}  // namespace braid::invitation_test
