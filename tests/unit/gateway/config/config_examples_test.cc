// The files of conf/: as they are, each placeholder is reported; filled in, they load.

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/unit/gateway/config/config_fixture.h"

namespace braid::config_examples_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::string example(const std::string& name) {
  std::ifstream file(std::filesystem::path(BRAID_CONF) / name);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

std::string filled(std::string text, const std::map<std::string, std::string>& values) {
  for (const auto& [token, value] : values) {
    size_t at = text.find(token);
    EXPECT_NE(at, std::string::npos) << token;
    for (; at != std::string::npos; at = text.find(token, at + value.size()))
      text.replace(at, token.size(), value);
  }
  return text;
}

// Placeholders outside of comments.
size_t placeholders(const std::string& text) {
  size_t count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::string code = line.substr(0, line.find('#'));
    for (size_t at = code.find("CHANGE_ME"); at != std::string::npos;
         at = code.find("CHANGE_ME", at + 1))
      ++count;
  }
  return count;
}

// The commented section `name`, without its comment signs.
std::string uncommented(const std::string& text, const std::string& name) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    bool in = !out.empty() && line.starts_with("# ");
    if (in || line == "# " + name + ":") out += line.substr(2) + "\n";
    if (!out.empty() && line.empty()) break;
  }
  EXPECT_FALSE(out.empty()) << name;
  return out;
}

TEST(ConfigExamples, RecoveryInCommentsIsRight) {
  for (const char* name : {"edge.yaml", "concentrator.yaml", "rack.yaml"}) {
    Config c = configOf(edgeText() + uncommented(example(name), "recovery"));
    EXPECT_EQ(c.tunnel.recovery, TunnelOptions{}.recovery)
        << name << ": what it shows is the default";
    EXPECT_EQ(c.tunnel.decodeBuffer, TunnelOptions{}.decodeBuffer) << name;
    ASSERT_EQ(c.tunnel.recoveryClasses.size(), 2u) << name;
    EXPECT_EQ(c.tunnel.recoveryClasses[0].policy, "redundant") << name;
    EXPECT_EQ(c.tunnel.recoveryClasses[1].policy, "none") << name;
  }
}

TEST(ConfigExamples, EveryPlaceholderIsReportedAndNothingElse) {
  for (const char* name : {"edge.yaml", "concentrator.yaml", "rack.yaml"}) {
    std::string text = example(name);
    EXPECT_GE(placeholders(text), 3u) << name;
    EXPECT_EQ(errorsOf(text).size(), placeholders(text)) << name;
    EXPECT_THAT(errorsOf(text), Each(HasSubstr(": still holds the placeholder CHANGE_ME_")))
        << name;
  }
}

TEST(ConfigExamples, Edge) {
  Config c = configOf(
      filled(example("edge.yaml"), {{"CHANGE_ME_REMOTE_NETWORK", "10.1.0.0/16, fd00:1::/32"},
                                    {"CHANGE_ME_FIRST_INTERFACE", "wlan0"},
                                    {"CHANGE_ME_SECOND_INTERFACE", "wwan0"},
                                    {"CHANGE_ME_PEER_PIN", kPinA},
                                    {"CHANGE_ME_PEER_ADDRESS", "vpn.example.net"}}));
  EXPECT_EQ(c.uplinks.size(), 2u);
  EXPECT_EQ(c.device.routes.size(), 2u);
  EXPECT_THAT(c.peers.at(0).hosts, ElementsAre(HostPort{"vpn.example.net", 4433}));
}

TEST(ConfigExamples, EdgeThatSendsEverythingThroughTheTunnel) {
  configOf(filled(example("edge.yaml"), {{"CHANGE_ME_REMOTE_NETWORK", "0.0.0.0/0"},
                                         {"CHANGE_ME_FIRST_INTERFACE", "wlan0"},
                                         {"CHANGE_ME_SECOND_INTERFACE", "wwan0"},
                                         {"CHANGE_ME_PEER_PIN", kPinA},
                                         {"CHANGE_ME_PEER_ADDRESS", "192.0.2.1"}}));
}

TEST(ConfigExamples, Concentrator) {
  Config c =
      configOf(filled(example("concentrator.yaml"), {{"CHANGE_ME_EDGE_NETWORK", "192.168.7.0/24"},
                                                     {"CHANGE_ME_PEER_PIN", kPinA}}));
  EXPECT_EQ(c.listen.size(), 2u);
  EXPECT_EQ(c.peers.at(0).options.prefixes.size(), 2u);
}

TEST(ConfigExamples, Rack) {
  Config c =
      configOf(filled(example("rack.yaml"), {{"CHANGE_ME_OWN_TUNNEL_ADDRESS", "10.99.0.1/30"},
                                             {"CHANGE_ME_REMOTE_NETWORK", "10.2.0.0/16"},
                                             {"CHANGE_ME_FABRIC_INTERFACE", "eth0"},
                                             {"CHANGE_ME_PEER_PIN", kPinA},
                                             {"CHANGE_ME_PEER_ADDRESS", "10.200.0.2"}}));
  EXPECT_EQ(c.uplinks.at(0).subflows, 8u);
  EXPECT_EQ(c.tunnel.codelTarget, 500us);
}

}  // namespace
}  // namespace braid::config_examples_test
