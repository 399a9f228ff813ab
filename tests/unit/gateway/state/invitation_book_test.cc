#include "gateway/state/invitations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "tests/unit/gateway/dtls/dtls_fixture.h"

namespace braid::invitation_book_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kNow = 1'800'000'000;

KeptInvitation kept(const std::string& name, int64_t expires = kNow + 100) {
  KeptInvitation out;
  out.name = name;
  out.key.fill(static_cast<uint8_t>(name.size() + static_cast<unsigned char>(name.back())));
  out.expires = expires;
  out.networks = {*Prefix::parse("10.1.0.0/16"), *Prefix::parse("::/0")};
  return out;
}

struct InvitationBookTest : testing::Test {
  TemporaryFolder folder;
  std::string path = folder.file("hub.state.invitations");
};

TEST_F(InvitationBookTest, SurvivesARestart) {
  InvitationStore book(path);
  book.load();
  EXPECT_TRUE(book.all().empty()) << "there is no file";
  KeptInvitation joined = kept("b");
  joined.joined.emplace().fill(9);
  joined.joinedAt = kNow;
  joined.used = true;
  ASSERT_TRUE(book.add(kept("a"), kNow));
  ASSERT_TRUE(book.add(joined, kNow));
  EXPECT_EQ(book.save(), "");
  InvitationStore next(path);
  next.load();
  EXPECT_EQ(next.all(), book.all());
}

TEST_F(InvitationBookTest, HoldsNoSecretAndIsNobodyElsesToRead) {
  InvitationSecret secret = InvitationSecret::draw();
  KeptInvitation one = kept("a");
  one.key = publicKeyOf(secret);
  InvitationStore book(path);
  ASSERT_TRUE(book.add(one, kNow));
  ASSERT_EQ(book.save(), "");
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  std::string bytes(secret.bytes.begin(), secret.bytes.end()), hex;
  for (uint8_t byte : secret.bytes) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  Invitation line;
  line.addresses = {{"gw", 1}};
  line.secret = secret;
  std::string base64 = formatInvitation(line).substr(18 + 5 + 44, 43);
  for (const std::string& plain : {bytes, hex, base64}) EXPECT_THAT(text, Not(HasSubstr(plain)));
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(InvitationBookTest, AnotherInvitationOfANameTakesThePlaceOfTheFirst) {
  InvitationStore book(path);
  ASSERT_TRUE(book.add(kept("a"), kNow));
  InvitationId first = book.all()[0].id();
  KeptInvitation again = kept("a");
  again.key.fill(77);
  ASSERT_TRUE(book.add(again, kNow));
  EXPECT_EQ(book.all().size(), 1u);
  EXPECT_EQ(book.find(first), nullptr);
  EXPECT_EQ(book.find(again.id())->name, "a");
}

TEST_F(InvitationBookTest, IsOpenForADayLongerThanItsInvitationsAre) {
  InvitationStore book(path);
  EXPECT_FALSE(book.isOpen(kNow)) << "without any nobody begins";
  ASSERT_TRUE(book.add(kept("a", kNow + 100), kNow));
  EXPECT_TRUE(book.isOpen(kNow));
  EXPECT_TRUE(book.isOpen(kNow + 100 + InvitationStore::kRemember - 1))
      << "to say that it has expired";
  EXPECT_FALSE(book.isOpen(kNow + 100 + InvitationStore::kRemember));
  KeptInvitation used = kept("b", kNow + 30 * InvitationStore::kRemember);
  used.joined.emplace();
  used.joinedAt = kNow;
  used.used = true;
  ASSERT_TRUE(book.add(used, kNow));
  EXPECT_FALSE(book.isOpen(kNow + 100 + InvitationStore::kRemember))
      << "a used one counts from its use";
}

TEST_F(InvitationBookTest, IsBoundedAndThoseThatAreOverMakeRoom) {
  InvitationStore book(path);
  for (size_t i = 0; i < InvitationStore::kMost; ++i)
    ASSERT_TRUE(book.add(kept("n" + std::to_string(i)), kNow)) << i;
  EXPECT_FALSE(book.add(kept("one-more"), kNow));
  EXPECT_EQ(book.all().size(), InvitationStore::kMost);
  EXPECT_TRUE(book.add(kept("one-more", kNow + 1000), kNow + 100)) << "the others have expired";
}

TEST_F(InvitationBookTest, WhoHasJoinedAndNotComeIsNotForgottenBeforeItsFragmentIs) {
  InvitationStore book(path);
  KeptInvitation joined = kept("joined", kNow + 1);
  joined.joined.emplace();
  ASSERT_TRUE(book.add(joined, kNow));
  for (size_t i = 1; i < InvitationStore::kMost; ++i)
    ASSERT_TRUE(book.add(kept("n" + std::to_string(i)), kNow)) << i;
  EXPECT_FALSE(book.add(kept("one-more"), kNow + 50)) << "none makes room";
  EXPECT_TRUE(book.add(kept("later", kNow + 9 * InvitationStore::kRemember),
                       kNow + 8 * InvitationStore::kRemember));
  EXPECT_EQ(std::ranges::count(book.all(), "joined", &KeptInvitation::name), 1);
}

TEST_F(InvitationBookTest, AnotherFileIsRefusedByName) {
  for (const char* text :
       {"x", "{}", R"({"invitations":[{}]})", R"({"invitations":[{"name":"a","key":"zz"}]})"}) {
    std::ofstream(path, std::ios::trunc) << text;
    InvitationStore book(path);
    EXPECT_THROW(book.load(), std::runtime_error) << text;
    EXPECT_TRUE(book.all().empty());
  }
}

}  // namespace
}  // namespace braid::invitation_book_test
