// braidctl fleet check: contradictions between the configurations of a folder.

#include "ctl/join/fleet.h"
#include "ctl/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ctl/verbs/verbs.h"
#include "gateway/dtls/identity.h"
#include "tests/temporary_folder.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid::fleet_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A concentrator with the edges a and b; tests change a line.
class FleetCheck : public testing::Test {
 protected:
  FleetCheck() {
    for (const char* name : {"hub", "a", "b"}) {
      fs::path keys = folder_ / "keys";
      fs::create_directory(keys);
      pins_[name] = formatPin(generateIdentity(keys / (std::string(name) + ".key"),
                                               folder_ / (std::string(name) + ".crt"), name));
    }
    fs::remove_all(folder_ / "keys");
    texts_["hub"] =
        "identity: {key: hub.key, certificate: hub.crt}\n"
        "device: {addresses: [10.99.0.1/24], networks: [10.0.0.0/24]}\n"
        "listen: ['0.0.0.0:4433']\n"
        "peers:\n"
        "  - {name: a, pin: '" +
        pins_["a"] +
        "', prefixes: [10.99.0.2/32, 10.1.0.0/24]}\n"
        "  - {name: b, pin: '" +
        pins_["b"] + "', prefixes: [10.99.0.3/32, 10.2.0.0/24]}\n";
    for (const char* edge : {"a", "b"}) {
      bool first = edge[0] == 'a';
      texts_[edge] = std::string("identity: {key: ") + edge + ".key, certificate: " + edge +
                     ".crt}\n" + "device: {addresses: [10.99.0." + (first ? "2" : "3") +
                     "/24], networks: [10." + (first ? "1" : "2") +
                     ".0.0/24]}\n"
                     "uplinks: [{interface: eth1}]\n"
                     "peers:\n"
                     "  - name: hub\n"
                     "    pin: " +
                     pins_["hub"] +
                     "\n"
                     "    endpoints: ['hub.example:4433']\n"
                     "    prefixes: [10.99.0.1/32, 10.0.0.0/24]\n";
    }
  }

  void change(const std::string& file, const std::string& from, const std::string& to) {
    std::string& text = texts_[file];
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  std::vector<std::string> findings() {
    for (const auto& [name, text] : texts_) std::ofstream(folder_ / (name + ".yaml")) << text;
    std::vector<std::string> out;
    for (const FleetFinding& f : checkFleet(readFleet(folder_))) {
      std::string line = f.toString(), path = folder_.string() + "/";
      for (size_t at; (at = line.find(path)) != std::string::npos;) line.erase(at, path.size());
      out.push_back(line);
    }
    return out;
  }
  int run(std::vector<const char*> words) {
    words.insert(words.begin(), "braidctl");
    out_.str("");
    return runBraidctl(static_cast<int>(words.size()), words.data(), out_, err_);
  }

  TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  std::map<std::string, std::string> pins_, texts_;
  std::ostringstream out_, err_;
};

TEST_F(FleetCheck, AFleetThatFitsHasNoFindings) {
  EXPECT_THAT(findings(), IsEmpty());
  EXPECT_EQ(run({"fleet", "check", folder_.c_str()}), kExitOk);
  EXPECT_EQ(out_.str(), folder_.string() + ": gateways 3, errors 0, warnings 0\n");
}

TEST_F(FleetCheck, MistakesOfAFileAreItsOwn) {
  change("a", "interface: eth1", "interface: eth1, wieght: 3");
  std::vector<std::string> found = findings();
  ASSERT_FALSE(found.empty());
  EXPECT_THAT(found[0], HasSubstr("error: a.yaml:3:29: uplinks[0].'wieght': unknown key"));
}

TEST_F(FleetCheck, APinIsThatOfTheCertificate) {
  change("a", pins_["hub"], pins_["b"]);
  EXPECT_THAT(findings(),
              testing::Contains(
                  "error: a.yaml:6:10: peers[0].pin: b.yaml does not know this gateway; add a "
                  "peer with the pin " +
                  pins_["a"] + " there"));
  change("a", pins_["b"], "sha256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
  EXPECT_THAT(
      findings(),
      testing::Contains("error: a.yaml:6:10: peers[0].pin: is not the pin of hub.yaml; write " +
                        pins_["hub"] + ", or give the peer another name"));
  change("a", "name: hub", "name: centre");
  EXPECT_THAT(
      findings(),
      testing::Contains("error: a.yaml:6:10: peers[0].pin: is the pin of no certificate in this "
                        "folder; add the configuration and the certificate of peer centre, or "
                        "remove the peer"));
}

TEST_F(FleetCheck, WithoutACertificateThereIsAWarning) {
  fs::remove(folder_ / "b.crt");
  EXPECT_THAT(findings(),
              ElementsAre("warning: b.yaml:1:37: identity.certificate: is not here, so that the "
                          "pins of this gateway "
                          "cannot be verified; put b.crt beside the file; the key stays away",
                          HasSubstr("warning: hub.yaml:6:20: peers[1].pin: is the pin of no "
                                    "certificate in this folder")));
}

TEST_F(FleetCheck, AnIdentityIsOneGateways) {
  fs::copy_file(folder_ / "a.crt", folder_ / "b.crt", fs::copy_options::overwrite_existing);
  EXPECT_THAT(
      findings(),
      testing::Contains(HasSubstr("identity.certificate: is the certificate of a.yaml as well")));
}

TEST_F(FleetCheck, AddressesInTheTunnelAreUnique) {
  change("b", "10.99.0.3/24", "10.99.0.2/24");
  change("hub", "10.99.0.3/32, ", "");
  EXPECT_THAT(findings(), ElementsAre("error: b.yaml:2:22: device.addresses[0]: 10.99.0.2 is an "
                                      "address of a.yaml as well; give each "
                                      "gateway its own address in the tunnel",
                                      HasSubstr("warning: hub.yaml:6:")))
      << "its address is not among the prefixes either";
}

TEST_F(FleetCheck, PrefixesAtAConcentratorDoNotOverlap) {
  change("hub", "10.2.0.0/24]}", "10.2.0.0/24, 10.1.0.128/25]}");
  EXPECT_THAT(findings(),
              ElementsAre(HasSubstr(
                  "peers[1].prefixes[2]: 10.1.0.128/25 is a part of 10.1.0.0/24 of peer a; "
                  "give each peer networks of its own")));
}

TEST_F(FleetCheck, EverythingIsNoOverlap) {
  change("hub", "10.2.0.0/24]}", "10.2.0.0/24, 0.0.0.0/0]}");
  EXPECT_THAT(findings(), IsEmpty());
  change("hub", "0.0.0.0/0]}", "0.0.0.0/1, 128.0.0.0/1]}");
  EXPECT_THAT(findings(), IsEmpty()) << "in halves";
}

TEST_F(FleetCheck, EndpointsLeadToWhoListens) {
  change("a", "hub.example:4433", "hub.example:4434");
  EXPECT_THAT(
      findings(),
      ElementsAre(
          "warning: a.yaml:7:16: peers[0].endpoints: name port 4434, on which hub.yaml does "
          "not listen; correct the port, if no router between them changes it"));
  change("a", "    endpoints: ['hub.example:4434']\n", "");
  change("a", "uplinks: [{interface: eth1}]\n", "listen: ['0.0.0.0:1']\n");
  EXPECT_THAT(findings(), testing::Contains(
                              HasSubstr("peers[0]: has no endpoints, and hub.yaml has none of this "
                                        "gateway either")));
}

TEST_F(FleetCheck, NetworksOfTheOtherSideAreAmongThePrefixes) {
  change("a", "10.0.0.0/24]", "10.7.0.0/24]");
  EXPECT_THAT(
      findings(),
      ElementsAre("error: a.yaml:8:15: peers[0].prefixes: do not hold 10.0.0.0/24, a network of "
                  "hub.yaml; add it, or remove it there"));
}

TEST_F(FleetCheck, SettingsThatMustAgree) {
  texts_["a"] += "streams: {enabled: on}\ntunnel: {cipher: aes-128-gcm}\n";
  texts_["hub"] += "tunnel: {cipher: chacha20-poly1305, max-subflows: 1}\n";
  change("b", "interface: eth1", "interface: eth1, subflows: 2");
  EXPECT_THAT(
      findings(),
      ElementsAre(
          HasSubstr("warning: a.yaml:9:10: streams: are on at one of this gateway and"),
          HasSubstr("error: a.yaml:10:18: tunnel.cipher: is another one than that of hub.yaml"),
          HasSubstr("error: b.yaml:5:5: peers[0]: would get 2 subflows, and hub.yaml takes 1")));
}

TEST_F(FleetCheck, ForwardedClientsMustBeAllowedAtTheEdge) {
  texts_["hub"] += "forwards: [{port: 80, to: 10.1.0.9}]\n";
  EXPECT_THAT(findings(), ElementsAre(HasSubstr(
                              "error: hub.yaml:7:12: forwards[0]: brings clients to a.yaml whose "
                              "addresses are not among the prefixes of this gateway there")));
  change("hub", "to: 10.1.0.9", "to: 10.1.0.9, source: own");
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(FleetCheck, FoldersBelowAreReadAndFragmentsAreNot) {
  findings();
  fs::create_directories(folder_ / "sites/peers.d");
  fs::rename(folder_ / "b.yaml", folder_ / "sites/b.yaml");
  fs::rename(folder_ / "b.crt", folder_ / "sites/b.crt");
  std::ofstream(folder_ / "sites/peers.d/c.yaml") << "no: configuration\n";
  Fleet fleet = readFleet(folder_);
  EXPECT_EQ(fleet.files, 3u);
  EXPECT_THAT(checkFleet(fleet), IsEmpty());
}

TEST_F(FleetCheck, ProgramsGetJson) {
  change("a", "hub.example:4433", "hub.example:4434");
  change("b", "10.0.0.0/24]", "10.7.0.0/24]");
  findings();
  EXPECT_EQ(run({"fleet", "check", "--json", folder_.c_str()}), kExitFailure);
  nlohmann::json answer = nlohmann::json::parse(out_.str());
  EXPECT_EQ(answer["ok"], false);
  EXPECT_EQ(answer["gateways"], 3);
  ASSERT_EQ(answer["findings"].size(), 2u);
  EXPECT_EQ(answer["findings"][0]["severity"], "warning");
  EXPECT_EQ(answer["findings"][1]["line"], 8);
  EXPECT_EQ(answer["findings"][1]["key"], "peers[0].prefixes");
}

TEST_F(FleetCheck, AFolderWithoutConfigurationsIsAnError) {
  EXPECT_EQ(run({"fleet", "check", (folder_ / "nowhere").c_str()}), kExitFailure);
  EXPECT_THAT(err_.str(), HasSubstr("cannot read the folder"));
  err_.str("");
  EXPECT_EQ(run({"fleet", "check", folder_.c_str()}), kExitFailure);
  EXPECT_THAT(err_.str(), HasSubstr("there is no NAME.yaml in"));
}

}  // namespace
}  // namespace braid::fleet_test
