// The record of what `braidctl firewall allow` changed.

#include "ctl/firewall/firewall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/temporary_folder.h"

namespace braid::firewall_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct FirewallRecordTest : testing::Test {
  void write(const std::string& path, const std::string& text) const {
    std::ofstream(path) << text;
  }
  std::string key() const { return root.file("key"); }

  TemporaryFolder root;
  std::string file = root.file("edge.yaml"), record = firewallRecord(file);
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
