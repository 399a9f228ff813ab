#include "gateway/state/initiator_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace braid::initiator_store_test {
namespace {

using testing::HasSubstr;

struct InitiatorStoreTest : testing::Test {
  std::filesystem::path folder;
  std::string path;
  void SetUp() override {
    std::string name = testing::TempDir() + "initiators_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
    path = folder / "hub.state.initiators";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  static StoredInitiator initiator(uint8_t n) {
    StoredInitiator c;
    c.pin.fill(n);
    c.notice.session = 0xfffffff0u + n;
    for (size_t i = 0; i < c.notice.token.size(); ++i)
      c.notice.token[i] = static_cast<uint8_t>(0xf7 * i + n);
    c.routes.push_back({*Endpoint::parse("0.0.0.0:4433"), *Address::parse("203.0.113.1"),
                        *Endpoint::parse("192.0.2.5:40000")});
    c.routes.push_back(
        {*Endpoint::parse("[::]:4433"), {}, *Endpoint::parse("[2001:db8::5]:40001")});
    return c;
  }
  void write(const std::string& text) const { std::ofstream(path) << text; }
  std::string text() const {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(InitiatorStoreTest, WhatWasSavedIsLoaded) {
  EXPECT_TRUE(InitiatorStore(path).load().empty()) << "there is no file";
  EXPECT_EQ(InitiatorStore(path).save({initiator(1), initiator(2)}), "");
  std::vector<StoredInitiator> loaded = InitiatorStore(path).load();
  ASSERT_EQ(loaded.size(), 2u);
  for (uint8_t n : {1, 2}) EXPECT_TRUE(loaded[n - 1u] == initiator(n)) << int{n};
}

TEST_F(InitiatorStoreTest, IsNobodyElsesToRead) {
  EXPECT_EQ(InitiatorStore(path).save({initiator(1)}), "");
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(InitiatorStoreTest, TheSameIsNotWrittenAgain) {
  InitiatorStore book(path);
  EXPECT_EQ(book.save({initiator(1)}), "");
  std::filesystem::remove(path);
  EXPECT_EQ(book.save({initiator(1)}), "");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(book.save({}), "");
  EXPECT_TRUE(InitiatorStore(path).load().empty());
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(InitiatorStoreTest, WhatIsDamagedIsRefused) {
  EXPECT_EQ(InitiatorStore(path).save({initiator(1)}), "");
  const std::string whole = text();
  for (size_t n = 1; n + 1 < whole.size(); ++n) {
    write(whole.substr(0, n));
    EXPECT_THROW(InitiatorStore(path).load(), std::runtime_error) << n;
  }
  for (const char* bad :
       {"{}", "[]", "null", "{\"initiators\": 7}", "{\"initiators\": [{}]}", "\xff"}) {
    write(bad);
    EXPECT_THROW(InitiatorStore(path).load(), std::runtime_error) << bad;
  }
  for (const char* number : {"-1", "4294967296", "1e300", "2.5", "true", "\"7\""}) {
    std::string changed = whole;
    changed.replace(changed.find("4294967281"), 10, number);
    write(changed);
    EXPECT_THROW(InitiatorStore(path).load(), std::runtime_error) << "session " << number;
  }
  for (const char* part : {"sha256:", "0.0.0.0:4433", "192.0.2.5:40000", "203.0.113.1"}) {
    std::string changed = whole;
    changed.replace(changed.find(part), 3, "?x?");
    write(changed);
    EXPECT_THROW(InitiatorStore(path).load(), std::runtime_error) << part;
  }
}

TEST_F(InitiatorStoreTest, APlaceThatCannotBeWrittenIsTold) {
  EXPECT_THAT(InitiatorStore(folder / "missing" / "book").save({initiator(1)}),
              HasSubstr("cannot write"));
}

}  // namespace
}  // namespace braid::initiator_store_test
