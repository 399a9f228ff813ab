// What a user is told whose gateway will send everything through the tunnel.

#include "ctl/join/everything.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <tuple>

#include "tests/temporary_folder.h"

namespace braid::everything_test {
namespace {

using testing::HasSubstr;

Address at(const char* text) {
  return *Address::parse(text);
}
std::vector<Prefix> networks(std::initializer_list<const char*> texts) {
  std::vector<Prefix> out;
  for (const char* text : texts) out.push_back(*Prefix::parse(text));
  return out;
}

TEST(Everything, IsToldByFamily) {
  EXPECT_THAT(everythingText(networks({"0.0.0.0/0", "::/0"})),
              HasSubstr("all IPv4 and IPv6 traffic"));
  EXPECT_THAT(everythingText(networks({"0.0.0.0/0"})), HasSubstr("all IPv4 traffic"));
  EXPECT_THAT(everythingText(networks({"::/0"})), HasSubstr("all IPv6 traffic"));
  EXPECT_EQ(everythingText(networks({"10.0.0.0/8"})), "");
}

struct Login : testing::Test {
  // A process of a folder like /proc, with that environment.
  void process(int id, int parent, const std::string& environment) {
    const std::string folder = proc.file(std::to_string(id));
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/stat") << id << " (a) b) S " << parent << " 1 1";
    std::ofstream(folder + "/environ", std::ios::binary) << environment;
  }
  TemporaryFolder proc;
};

TEST_F(Login, IsFoundAboveSudo) {
  using namespace std::string_literals;
  process(9, 8, "PATH=/bin\0NO_SSH_CONNECTION=1.1.1.1 1 1.1.1.1 1\0"s);
  process(8, 7, "");
  process(7, 1, "A=b\0SSH_CONNECTION=198.51.100.7 50000 10.0.0.1 22\0C=d\0"s);
  process(6, 5, "");
  process(5, 6, "A=b\0"s);
  process(4, 1, "SSH_CONNECTION=nonsense\0"s);
  EXPECT_EQ(sshLogin(proc.path(), 9), (SshLogin{at("198.51.100.7"), at("10.0.0.1")}));
  EXPECT_EQ(sshLogin(proc.path(), 6), std::nullopt) << "a circle of processes ends";
  EXPECT_EQ(sshLogin(proc.path(), 4), std::nullopt);
  EXPECT_EQ(sshLogin(proc.path(), 99), std::nullopt);
}

TEST_F(Login, ByAnUplinksAddressIsWarnedOf) {
  NetworkTable table;
  for (const auto& [index, name, address] :
       {std::tuple{1, "wifi0", "10.0.0.1"}, std::tuple{2, "lan0", "192.168.1.1"}}) {
    Link link;
    link.index = index;
    link.name = name;
    link.addresses.insert({at(address), 24, 0, true, false, false});
    table.setLink(link);
  }
  const std::vector<PlannedUplink> uplinks{{"wifi0"}};
  const std::vector<Prefix> all = networks({"0.0.0.0/0"});
  auto warning = [&](const char* from, const char* here, bool confirmed = true) {
    return loginWarning(SshLogin{at(from), at(here)}, all, uplinks, table, confirmed);
  };
  EXPECT_THAT(
      warning("198.51.100.7", "10.0.0.1"),
      testing::StartsWith("you are logged in from 198.51.100.7 by wifi0's address 10.0.0.1"));
  EXPECT_THAT(warning("198.51.100.7", "10.0.0.1", false), HasSubstr("Nobody will ask"));
  EXPECT_EQ(warning("192.168.1.2", "192.168.1.1"), "") << "by the LAN";
  EXPECT_EQ(warning("2001:db8::7", "10.0.0.1"), "") << "not of a family that is taken";
  EXPECT_EQ(loginWarning(std::nullopt, all, uplinks, table, true), "");
}

TEST(Confirmation, IsWaitedForOnlyWhereSomebodyIsAsked) {
  EXPECT_EQ(confirmationTime("2min", true), 2min);
  EXPECT_EQ(confirmationTime("2min", false), 0s);
  EXPECT_EQ(confirmationTime("0", true), 0s);
  for (const char* wrong : {"2h", "soon", ""})
    EXPECT_THROW(confirmationTime(wrong, false), std::runtime_error) << wrong;
}

}  // namespace
}  // namespace braid::everything_test
