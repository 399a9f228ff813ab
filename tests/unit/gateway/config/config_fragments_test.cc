// Peers in files of their own.

#include "gateway/config/config_fragments.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gateway/join/join_messages.h"
#include "tests/unit/gateway/config/config_fixture.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid::config_fragments_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class ConfigFragmentsTest : public testing::Test {
 protected:
  ConfigFragmentsTest() {
    std::string name = (fs::temp_directory_path() / "braid-fragments-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    peers_ = folder_ / "hub.peers.d";
    fs::create_directory(peers_);
    options_.checkIdentity = false;
    write(
        "hub.yaml",
        "identity: {key: a, certificate: b}\nlisten: ['0.0.0.0:4433']\npeers: []\npeers-folder: " +
            peers_.string() + "\ndevice: {addresses: [10.99.0.1/24], routes: [10.5.0.0/16]}\n");
  }
  ~ConfigFragmentsTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  void fragment(const std::string& name, const std::string& text) {
    std::ofstream(peers_ / name) << text;
  }
  ConfigResult load() { return loadConfig(folder_ / "hub.yaml", options_); }
  std::string at(const std::string& name) { return (peers_ / name).string(); }
  static std::string peer(const char* name, const char* pin, const char* prefixes) {
    return std::string("name: ") + name + "\npin: " + pin + "\nprefixes: [" + prefixes + "]\n";
  }

  fs::path folder_, peers_;
  LoadOptions options_;
};

TEST_F(ConfigFragmentsTest, BringPeersAndRoutes) {
  fragment("b.yaml", peer("b", kPinB, "10.5.0.0/16"));
  fragment("a.yaml", peer("a", kPinA, "10.99.0.2/32, 192.168.7.0/24") +
                         "routes: [192.168.7.0/24]\nkeepalive: 2s\n");
  fragment(".c.yaml.new", "not read");
  fragment("README", "not read");
  ConfigResult result = load();
  ASSERT_THAT(errorsOf(result), ElementsAre());
  const Config& config = std::get<Config>(result);
  ASSERT_EQ(config.peers.size(), 2u);
  EXPECT_EQ(config.peers[0].options.name, "a");
  EXPECT_EQ(config.peers[0].options.keepalive, 2s);
  EXPECT_EQ(config.peers[0].file, at("a.yaml"));
  EXPECT_EQ(config.peers[1].options.name, "b");
  EXPECT_THAT(config.device.routes,
              ElementsAre(*Prefix::parse("10.5.0.0/16"), *Prefix::parse("192.168.7.0/24")));
}

TEST_F(ConfigFragmentsTest, AGroupOnABridgeIsNamedByItsOwnFile) {
  write("hub.yaml",
        "identity: {key: a, certificate: b}\nlisten: ['0.0.0.0:4433']\npeers: []\npeers-folder: " +
            peers_.string() + "\ndevice: {mode: tap}\n");
  fragment("a.yaml", peer("a", kPinA, "10.5.0.0/16") + "group: hubs\n");
  EXPECT_THAT(errorsOf(load()),
              ElementsAre(testing::StartsWith(at("a.yaml") + ":4:8: group: is for packets")));
}

TEST_F(ConfigFragmentsTest, AFolderThatIsNotThereHasNone) {
  fs::remove_all(peers_);
  write("hub.yaml",
        "identity: {key: a, certificate: b}\nlisten: ['0.0.0.0:4433']\npeers: []\npeers-folder: " +
            peers_.string() + "\n");
  EXPECT_THAT(errorsOf(load()), ElementsAre());
}

TEST_F(ConfigFragmentsTest, MistakesAreNamedByTheirOwnFileAndLine) {
  fragment("a.yaml",
           "name: a\npins: x\npin: " + std::string(kPinA) + "\nprefixes: [10.5.0.0/33]\n");
  fragment("b.yaml", "name: [\n");
  fragment("c.yaml", "- name: c\n");
  std::vector<std::string> errors = errorsOf(load());
  ASSERT_EQ(errors.size(), 4u);
  EXPECT_THAT(errors[0],
              HasSubstr(at("a.yaml") + ":2:1: 'pins': unknown key; did you mean 'pin'?"));
  EXPECT_THAT(errors[1],
              HasSubstr(at("a.yaml") + ":4:12: prefixes[0]: '10.5.0.0/33' is no network"));
  EXPECT_THAT(errors[2], HasSubstr(at("b.yaml") + ":"));
  EXPECT_THAT(errors[3], HasSubstr(at("c.yaml") + ":1:1: is a list and must be a mapping"));
}

TEST_F(ConfigFragmentsTest, WhatMustDifferDiffersAcrossFiles) {
  fragment("a.yaml", peer("a", kPinA, "10.5.0.0/16"));
  fragment("b.yaml", peer("a", kPinA, "10.5.0.0/16"));
  EXPECT_THAT(errorsOf(load()),
              ElementsAre(HasSubstr(at("b.yaml") + ":1:7: name: 'a' is given in " + at("a.yaml") +
                                    ": name already"),
                          HasSubstr(at("b.yaml") + ":2:6: pin: "),
                          HasSubstr(at("b.yaml") + ":3:12: prefixes[0]: ")));
}

TEST_F(ConfigFragmentsTest, ChecksBetweenThePartsNameTheFragment) {
  fragment("a.yaml", peer("a", kPinA, "10.5.0.0/16") + "routes: [172.16.0.0/12]\n");
  EXPECT_THAT(
      errorsOf(load()),
      ElementsAre(HasSubstr(at("a.yaml") + ":4:10: routes[0]: 172.16.0.0/12 is in no peer's")));
  fragment("a.yaml", "name: a\npin: " + std::string(kPinA) +
                         "\nendpoints: [192.0.2.1:4433]\nprefixes: [10.5.0.0/16]\n");
  EXPECT_THAT(
      errorsOf(load()),
      ElementsAre(HasSubstr(at("a.yaml") + ":1:1: has endpoints, and there are no uplinks")));
}

// The daemon may write there, and root reads it.
TEST_F(ConfigFragmentsTest, ASymbolicLinkIsRefused) {
  write("secret", "root:x:0:0\n");
  fs::create_symlink(folder_ / "secret", peers_ / "a.yaml");
  std::vector<std::string> errors = errorsOf(load());
  ASSERT_FALSE(errors.empty());
  EXPECT_THAT(errors, testing::Contains(HasSubstr(at("a.yaml") + ": is a symbolic link")));
  EXPECT_THAT(errors, testing::Each(testing::Not(HasSubstr("root:x"))));
}

TEST_F(ConfigFragmentsTest, ALargeFileIsRefused) {
  fragment("a.yaml", std::string(kMaxFragmentBytes + 1, '#'));
  EXPECT_THAT(errorsOf(load()),
              testing::Contains(HasSubstr(at("a.yaml") + ": is larger than 64 KiB")));
}

TEST_F(ConfigFragmentsTest, AGatewayThatListensMayWaitForPeers) {
  write("hub.yaml", "identity: {key: a, certificate: b}\nlisten: ['0.0.0.0:4433']\npeers: []\n");
  EXPECT_THAT(errorsOf(load()), ElementsAre());
  write("hub.yaml",
        "identity: {key: a, certificate: b}\nuplinks: [{interface: eth0}]\npeers: []\n");
  EXPECT_THAT(errorsOf(load()), testing::Contains(HasSubstr("peers: is empty")));
}

TEST_F(ConfigFragmentsTest, TheFolderIsACompletePathNamedAfterTheFile) {
  EXPECT_EQ(configOf(edgeText()).peersFolder, "/var/lib/braid/e.peers.d");
  EXPECT_EQ(configOf(edgeText() + "peers-folder: /etc/braid/peers.d\n").peersFolder,
            "/etc/braid/peers.d");
  EXPECT_THAT(errorsOf(edgeText() + "peers-folder: here\n"),
              ElementsAre("e.yaml:12:15: peers-folder: is no complete path; write one such as "
                          "/var/lib/braid/edge.peers.d"));
}

TEST_F(ConfigFragmentsTest, WhatTheWriterWritesIsRead) {
  PeerFragment made{"van-7",
                    {},
                    {*Prefix::parse("10.99.0.2/32"), *Prefix::parse("fd00:7::/64")},
                    {*Prefix::parse("fd00:7::/64")},
                    "Joined."};
  made.pin = *parsePin(kPinB);
  std::string path = fragmentPath(peers_ / "deeper", made.name);
  EXPECT_EQ(writeFragment(path, formatFragment(made)), "") << "the folder is made";
  EXPECT_EQ(readFragmentText(path), formatFragment(made));
  write("hub.yaml",
        "identity: {key: a, certificate: b}\nlisten: ['0.0.0.0:4433']\npeers: []\npeers-folder: " +
            (peers_ / "deeper").string() + "\n");
  ConfigResult result = load();
  ASSERT_THAT(errorsOf(result), ElementsAre());
  const Config& config = std::get<Config>(result);
  EXPECT_EQ(config.peers.at(0).options.name, made.name);
  EXPECT_EQ(config.peers.at(0).options.pin, made.pin);
  EXPECT_EQ(config.peers.at(0).options.prefixes, made.prefixes);
  EXPECT_EQ(config.device.routes, made.routes);
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0007, 0u);
  removeFragment(path);
  EXPECT_EQ(readFragmentText(path), std::nullopt);
  EXPECT_THAT(writeFragment("/proc/none/x.yaml", "x"), HasSubstr("cannot make the folder"));
}

}  // namespace
}  // namespace braid::config_fragments_test
