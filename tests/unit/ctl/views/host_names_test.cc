#include "ctl/views/host_names.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "tests/temporary_folder.h"

namespace braid::host_names_test {
namespace {

using Format = HostNames::Format;

struct HostNamesTest : testing::Test {
  // The name of an address in a file with that text.
  std::string nameOf(Format format, const std::string& text, const char* address) {
    folder.write("leases", text);
    HostNames names({{format, folder.file("leases")}});
    names.refresh();
    return names.of(*Address::parse(address));
  }
  TemporaryFolder folder;
};

TEST_F(HostNamesTest, HostsFileGivesItsFirstName) {
  const std::string text =
      "# 192.168.1.9 commented\n127.0.0.1\tlocalhost\n192.168.1.5  printer printer.lan # floor "
      "2\r\n"
      "fd00::5 printer6\n192.168.1.7\n";
  EXPECT_EQ(nameOf(Format::kHosts, text, "192.168.1.5"), "printer");
  EXPECT_EQ(nameOf(Format::kHosts, text, "fd00:0::5"), "printer6");
  for (const char* unnamed : {"127.0.0.1", "192.168.1.7", "192.168.1.9"})
    EXPECT_EQ(nameOf(Format::kHosts, text, unnamed), "") << unnamed;
}

TEST_F(HostNamesTest, LeasesOfEachServerGiveTheHostsName) {
  const std::string dnsmasq =
      "1800000000 02:00:00:00:00:07 192.168.1.7 laptop 01:02\n"
      "1800000000 02:00:00:00:00:08 192.168.1.8 * *\nduid 00:01\n"
      "1800000000 7 fd00::7 laptop6 00:01:00\n";
  EXPECT_EQ(nameOf(Format::kDnsmasq, dnsmasq, "192.168.1.7"), "laptop");
  EXPECT_EQ(nameOf(Format::kDnsmasq, dnsmasq, "fd00::7"), "laptop6");
  EXPECT_EQ(nameOf(Format::kDnsmasq, dnsmasq, "192.168.1.8"), "");
  const std::string dhcpd =
      "lease 192.168.1.7 {\n  starts 1 2026/01/01;\n  client-hostname \"old\";\n}\n"
      "lease 192.168.1.8 {\n  client-hostname \"other\";\n}\n"
      "lease 192.168.1.7 {\n  client-hostname \"laptop\";\n}\n"
      "lease 192.168.1.8 {\n  binding state free;\n}\n";
  EXPECT_EQ(nameOf(Format::kDhcpd, dhcpd, "192.168.1.7"), "laptop");
  EXPECT_EQ(nameOf(Format::kDhcpd, dhcpd, "192.168.1.8"), "") << "its last lease has no name";
  const std::string kea =
      "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state\n"
      "192.168.1.7,02:07,,3600,1800000000,1,0,0,old,0\n"
      "192.168.1.7,02:07,,3600,1800000000,1,0,0,laptop.lan,0\n192.168.1.8,02:08\n";
  EXPECT_EQ(nameOf(Format::kKea, kea, "192.168.1.7"), "laptop.lan");
  EXPECT_EQ(nameOf(Format::kKea, kea, "192.168.1.8"), "");
}

// A host chooses the name in its lease.
TEST_F(HostNamesTest, ANameThatIsNoneIsNotShown) {
  for (const char* name : {"\x1b[2J", "<script>", "a\"b", "caf\xc3\xa9", "\xc2\x9b", "8.8.8.8",
                           "1-2", "a:443", "a>b", "\x7f"})
    EXPECT_EQ(nameOf(Format::kDnsmasq, std::string("1 02:07 192.168.1.7 ") + name + " *\n",
                     "192.168.1.7"),
              "")
        << name;
  EXPECT_EQ(nameOf(Format::kDnsmasq, "1 02:07 192.168.1.7 " + std::string(300, 'x') + " *\n",
                   "192.168.1.7"),
            std::string(HostNames::kLongest, 'x'));
}

TEST_F(HostNamesTest, FilesAndNamesAreBounded) {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += "10.1." + std::to_string(i / 250) + "." + std::to_string(i % 250) + " h\n";
  EXPECT_EQ(nameOf(Format::kHosts, text, "10.1.16.95"), "h");
  EXPECT_EQ(nameOf(Format::kHosts, text, "10.1.16.96"), "") << "the 4097th";
  text = std::string(HostNames::kMostBytes, '#') + "\n10.1.1.1 h\n";
  EXPECT_EQ(nameOf(Format::kHosts, text, "10.1.1.1"), "");
}

TEST_F(HostNamesTest, WhatCannotBeReadIsLeftOutAndDoesNotWait) {
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  folder.write("hosts/b", "10.0.0.1 second\n10.0.0.2 two\n");
  folder.write("hosts/a", "10.0.0.1 first\n");
  HostNames names({{Format::kHosts, folder.file("pipe")},
                   {Format::kHosts, folder.file("missing")},
                   {Format::kHosts, folder.file("hosts")}});
  names.refresh();
  EXPECT_EQ(names.of(*Address::parse("10.0.0.1")), "first");
  EXPECT_EQ(names.of(*Address::parse("10.0.0.2")), "two");
}

TEST_F(HostNamesTest, AChangedFileIsReadAgain) {
  folder.write("leases", "10.0.0.1 before\n");
  HostNames names({{Format::kHosts, folder.file("leases")}});
  names.refresh();
  folder.write("leases", "10.0.0.1 and-after\n");
  names.refresh();
  EXPECT_EQ(names.of(*Address::parse("10.0.0.1")), "and-after");
}

TEST_F(HostNamesTest, FlowsAreToldWithNames) {
  folder.write("leases", "10.0.0.1 laptop\nfd00::1 laptop6\n");
  HostNames names({{Format::kHosts, folder.file("leases")}});
  names.refresh();
  EXPECT_EQ(names.inFlow("tcp 10.0.0.1:443 > 10.0.0.2:5000"), "tcp laptop:443 > 10.0.0.2:5000");
  EXPECT_EQ(names.inFlow("udp [fd00::2]:53 > [fd00::1]:5000"), "udp [fd00::2]:53 > laptop6:5000");
  EXPECT_EQ(names.inFlow("icmp 10.0.0.1 > 10.0.0.2"), "icmp laptop > 10.0.0.2");
  for (const char* other : {"", "x", "tcp  > ", "-", "tcp 10.0.0.3:1 > 10.0.0.2:1"})
    EXPECT_EQ(names.inFlow(other), other);
}

}  // namespace
}  // namespace braid::host_names_test
