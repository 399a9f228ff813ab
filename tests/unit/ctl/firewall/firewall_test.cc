// The record of what `braidctl firewall allow` changed.

#include "ctl/firewall/firewall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace braid::firewall_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct FirewallRecordTest : testing::Test {
  FirewallRecordTest() {
    std::string name = (fs::temp_directory_path() / "braid-record-XXXXXX").string();
    root = mkdtemp(name.data());
    file = (root / "edge.yaml").string();
    record = firewallRecord(file);
  }
  ~FirewallRecordTest() override { fs::remove_all(root); }

  void write(const std::string& path, const std::string& text) const { std::ofstream(path) << text; }
  std::string key() const { return (root / "key").string(); }

  fs::path root;
  std::string file, record;
};

TEST_F(FirewallRecordTest, WithoutOneNothingIsTakenBack) {
  EXPECT_FALSE(removeFromFirewall(file));
}

TEST_F(FirewallRecordTest, WhatCannotBeTakenBackStaysUntilItCan) {
  write(record, R"([{"undo": ["sh", "-c", "test -e )" + key() + R"( || exit 252"]}])");
  EXPECT_THAT([&] { removeFromFirewall(file); },
              ThrowsMessage<std::runtime_error>(HasSubstr("edge.firewall")));
  EXPECT_TRUE(fs::exists(record));
  write(key(), "");
  EXPECT_TRUE(removeFromFirewall(file));
  EXPECT_FALSE(fs::exists(record));
}

TEST_F(FirewallRecordTest, OneThatCannotBeReadIsAnErrorAndStays) {
  for (const char* text : {"[{\"undo\": [\"ufw\"", "{}", ""}) {
    write(record, text);
    EXPECT_THAT([&] { removeFromFirewall(file); },
                ThrowsMessage<std::runtime_error>(HasSubstr("is no record")))
        << text;
    EXPECT_TRUE(fs::exists(record));
  }
}

}  // namespace
}  // namespace braid::firewall_test
