// A concentrator on a fake host admits gateways that join by real handshakes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "gateway/gateway.h"
#include "gateway/join/join_messages.h"
#include "host/fake/fake_host.h"
#include "simnet/inner_packets.h"
#include "tests/unit/gateway/dtls/dtls_fixture.h"
#include "tunnel/peer/dialing.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid::join_gateway_test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const Endpoint kHub = *Endpoint::parse("203.0.113.1:4433");

/// A concentrator with a real configuration file.
struct Hub {
  explicit Hub(const FakeClock& clock) : host(clock, 2) {
    generateIdentity(folder.file("hub.key"), folder.file("hub.crt"), "hub");
    fs::create_directory(folder.file("peers.d"));
    writeConfig("");
    start();
  }
  void writeConfig(const std::string& more) const {
    std::ofstream(folder.file("hub.yaml"))
        << "identity: {key: hub.key, certificate: hub.crt}\n"
        << "device: {addresses: [10.99.0.1/24], networks: [10.1.0.0/16]}\n"
        << "listen: ['203.0.113.1:4433']\n"
        << "state: " << folder.file("hub.state") << "\n"
        << "peers-folder: " << folder.file("peers.d") << "\n"
        << "streams: {enabled: off}\nlog: {level: error}\n"
        << (more.empty() ? "peers: []\n" : more);
  }
  void start() {
    gateway.reset();
    ConfigResult result = loadConfig(folder.file("hub.yaml"));
    if (auto* errors = std::get_if<ConfigErrors>(&result))
      throw std::runtime_error(errors->at(0).toString());
    gateway = std::make_unique<Gateway>(std::get<Config>(std::move(result)), LoadOptions{}, host);
    gateway->start();
  }
  std::string invite(const std::string& name, Duration lifetime = 24h) const {
    InviteRequest request;
    request.name = name;
    request.lifetime = lifetime;
    InviteResult result = gateway->invite(request);
    EXPECT_EQ(result.problem, "");
    return result.line;
  }
  std::string fragment(const std::string& name) const {
    return readFragmentText(fragmentPath(folder.file("peers.d"), name)).value_or("");
  }
  std::string book() const {
    std::ifstream in(folder.file("hub.state.invitations"));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void writeBook(std::string text, const std::string& from, const std::string& to) const {
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    std::ofstream(folder.file("hub.state.invitations"), std::ios::trunc)
        << text.replace(at, from.size(), to);
  }
  std::vector<std::string> peers() const {
    std::vector<std::string> out;
    for (const PeerConfig& peer : gateway->config().peers) out.push_back(peer.options.name);
    return out;
  }

  TemporaryFolder folder;
  FakeHost host;
  std::unique_ptr<Gateway> gateway;
};

/// A gateway that asks to join.
class Applicant : private JoinAsker {
 public:
  Applicant(const std::string& line, const Identity& identity, std::vector<Prefix> networks = {})
      : invitation_(std::get<Invitation>(parseInvitation(line))),
        identity_(identity),
        networks_(std::move(networks)),
        id_(idOf(publicKeyOf(invitation_.secret))),
        provider_(identity, DtlsPair::quick()) {
    provider_.setJoinAsker(this);
  }
  /// Signs with another secret. Names the invitation of that secret, or the real one.
  void spoilSecret(bool alsoName) {
    invitation_.secret.bytes[3] ^= 1;
    if (alsoName) id_ = idOf(publicKeyOf(invitation_.secret));
  }

  /// Sends requests until it is answered or refused, at most for the time of a handshake.
  void run(Hub& hub, FakeClock& clock) {
    static uint16_t port = 40000;
    Endpoint own{*Address::parse("192.0.2.5"), ++port};
    ClientHandshake initiator(provider_, random_, invitation_.pin, clock.now());
    for (int round = 0; round < 3000 && !answer && error.empty(); ++round) {
      if (initiator.handshake().deadline() <= clock.now()) initiator.onTimer(clock.now());
      for (Packet p = pool_.allocate(); p && initiator.pollDatagram(p); p = pool_.allocate())
        hub.host.deliver({own, kHub, Ecn::kNotEct, {p.view().begin(), p.view().end()}});
      while (hub.gateway->runOnce()) {
      }
      if (onTurn) onTurn();
      for (const FakeDatagram& d : hub.host.takeSent()) {
        if (d.to == own) initiator.onDatagram(d.bytes, clock.now());
      }
      error = std::string(initiator.handshake().error());
      clock.advance(5ms);
    }
  }

  std::function<void()> onTurn;
  std::optional<JoinAnswer> answer;
  std::string error;

 private:
  JoinMessage request(const JoinBinding& binding) override {
    JoinMessage wish = wishOf(networks_);
    return writeRequest(
        {id_, signJoin(invitation_.secret, {binding, identity_.pin, invitation_.pin, wish}),
         networks_});
  }
  void onAnswer(ByteView bytes) override { answer = readAnswer(bytes); }

  Invitation invitation_;
  const Identity& identity_;
  std::vector<Prefix> networks_;
  InvitationId id_;
  DtlsProvider provider_;
  static inline uint64_t seed_ =
      100;  ///< a new nonce for each request, because a repeated nonce is not answered
  SecretRandom random_{knownKey(++seed_)};
  PacketPool pool_{2000, 64};
};

struct JoinGatewayTest : testing::Test {
  JoinGatewayTest() { setLogLevel("off"); }
  ~JoinGatewayTest() override { setLogLevel("info"); }

  JoinAnswer ask(const std::string& line, const Identity& identity = alice(),
                 std::vector<Prefix> networks = {}) {
    Applicant applicant(line, identity, std::move(networks));
    applicant.run(hub, clock);
    lastError = applicant.error;
    return applicant.answer.value_or(JoinAnswer{});
  }
  /// Brings up the peer's session by a session initiator and its first packet.
  void comesUp(const Identity& identity) {
    FakeHost edge(clock, 9);
    Link link;
    link.index = 2;
    link.name = "eth1";
    link.up = true;
    link.mtu = 1500;
    link.addresses.insert({*Address::parse("192.0.2.9"), 24, 0, true, false, false});
    edge.net().edit().setLink(link);
    edge.net().changed();
    Config config;
    TemporaryFolder folder;
    config.identity = {folder.file("key"), folder.file("crt")};
    writeIdentity(identity, config.identity);
    UplinkConfig& uplink = config.uplinks.emplace_back();
    uplink.name = uplink.interface = "eth1";
    uplink.gateway = UplinkConfig::Gateway::kNone;
    config.peers.emplace_back().options = {.name = "hub",
                                           .pin = hub.pinOf(),
                                           .endpoints = {kHub},
                                           .prefixes = {*Prefix::parse("10.99.0.0/24")}};
    Gateway other(config, LoadOptions{}, edge);
    other.start();
    for (int round = 0; round < 1000 && hub.gateway->peersUp() == 0; ++round) {
      while (other.runOnce() || hub.gateway->runOnce()) {
      }
      for (FakeDatagram& d : edge.takeSent()) hub.host.deliver(d);
      for (FakeDatagram& d : hub.host.takeSent()) edge.deliver(d);
      clock.advance(5ms);
    }
    EXPECT_EQ(hub.gateway->peersUp(), 1u);
    while (hub.gateway->runOnce()) {
    }
  }
  static void writeIdentity(const Identity& identity, const IdentityConfig& paths) {
    BioHandle key(BIO_new_file(paths.key.c_str(), "w")),
        certificate(BIO_new_file(paths.certificate.c_str(), "w"));
    PEM_write_bio_PKCS8PrivateKey(key.get(), identity.key.get(), nullptr, nullptr, 0, nullptr,
                                  nullptr);
    PEM_write_bio_X509(certificate.get(), identity.certificate.get());
    key.reset();
    fs::permissions(paths.key, fs::perms::owner_read | fs::perms::owner_write);
  }

  FakeClock clock;
  struct HubWithPin : Hub {
    using Hub::Hub;
    Pin pinOf() const { return readPin(folder.file("hub.crt")); }
  } hub{clock};
  std::string lastError;
};

TEST_F(JoinGatewayTest, WhoIsInvitedBecomesAPeerWithAddressesOfTheTunnel) {
  JoinAnswer answer = ask(hub.invite("van-7"), alice(), {*Prefix::parse("192.168.7.0/24")});
  ASSERT_EQ(answer.code, JoinCode::kJoined) << answer.text << lastError;
  EXPECT_EQ(answer.name, "van-7");
  EXPECT_THAT(answer.concentrator, ElementsAre(*Address::parse("10.99.0.1")));
  EXPECT_THAT(answer.edge, ElementsAre(InterfaceAddress{*Address::parse("10.99.0.2"), 24}));
  EXPECT_THAT(answer.networks, ElementsAre(*Prefix::parse("10.1.0.0/16")));
  ASSERT_THAT(hub.peers(), ElementsAre("van-7"));
  const PeerOptions& peer = hub.gateway->config().peers[0].options;
  EXPECT_EQ(peer.pin, alice().pin);
  EXPECT_THAT(peer.prefixes,
              ElementsAre(*Prefix::parse("10.99.0.2/32"), *Prefix::parse("192.168.7.0/24")));
  EXPECT_THAT(hub.host.net().configured(), Contains("route 192.168.7.0/24 dev braid0 table 6599"));
  EXPECT_THAT(hub.fragment("van-7"), HasSubstr(formatPin(alice().pin)));
}

TEST_F(JoinGatewayTest, TheNewPeerComesUpAndTheInvitationIsUsed) {
  std::string line = hub.invite("van-7");
  ASSERT_EQ(ask(line).code, JoinCode::kJoined);
  comesUp(alice());
  EXPECT_THAT(hub.book(), HasSubstr("\"used\":true"));
  EXPECT_EQ(ask(line, mallory()).code, JoinCode::kUsed) << "single use";
  EXPECT_EQ(ask(line, alice()).code, JoinCode::kUsed);
  EXPECT_THAT(hub.fragment("van-7"), HasSubstr(formatPin(alice().pin)));
}

TEST_F(JoinGatewayTest, AWrongSecretIsRefusedAndChangesNothing) {
  RecordProperty("rule", "join.proof");
  std::string line = hub.invite("van-7");
  for (bool alsoName : {false, true}) {
    Applicant applicant(line, alice());
    applicant.spoilSecret(alsoName);
    applicant.run(hub, clock);
    ASSERT_TRUE(applicant.answer);
    EXPECT_EQ(applicant.answer->code, JoinCode::kUnknown);
  }
  EXPECT_THAT(hub.peers(), IsEmpty());
  EXPECT_EQ(hub.fragment("van-7"), "");
  EXPECT_EQ(ask(line).code, JoinCode::kJoined) << "the invitation is as good as before";
}

TEST_F(JoinGatewayTest, AnExpiredInvitationIsRefusedByThatName) {
  std::string line = hub.invite("van-7");
  std::string expires = std::to_string(std::get<Invitation>(parseInvitation(line)).expires);
  hub.writeBook(hub.book(), expires, std::to_string(std::time(nullptr) - 5));
  hub.start();
  EXPECT_EQ(ask(line).code, JoinCode::kExpired);
  EXPECT_THAT(hub.peers(), IsEmpty());
}

TEST_F(JoinGatewayTest, WithoutAnyInvitationNobodyBeginsToJoin) {
  std::string line = hub.invite("van-7");
  hub.writeBook(hub.book(), hub.book(), "{\"invitations\":[]}\n");
  hub.start();
  EXPECT_EQ(ask(line).code, JoinCode::kRefused) << "no answer at all";
  EXPECT_THAT(lastError, HasSubstr("no open invitation"));
}

TEST_F(JoinGatewayTest, NetworksOfOthersAreRefusedByNameAndTheInvitationStaysGood) {
  RecordProperty("rule", "join.networks");
  std::string line = hub.invite("van-7");
  JoinAnswer answer = ask(line, alice(), {*Prefix::parse("10.1.2.0/24")});
  EXPECT_EQ(answer.code, JoinCode::kNetworks);
  EXPECT_THAT(answer.text, HasSubstr("10.1.2.0/24 overlaps 10.1.0.0/16 behind the concentrator"));
  EXPECT_THAT(hub.peers(), IsEmpty());
  EXPECT_EQ(hub.fragment("van-7"), "");
  ASSERT_EQ(ask(line, alice(), {*Prefix::parse("192.168.7.0/24")}).code, JoinCode::kJoined);
  answer = ask(hub.invite("shop"), mallory(), {*Prefix::parse("192.168.0.0/16")});
  EXPECT_EQ(answer.code, JoinCode::kNetworks);
  EXPECT_THAT(answer.text, HasSubstr("of the gateway van-7"));
  EXPECT_EQ(
      ask(hub.invite("shop"), mallory(), {*Prefix::parse("192.168.8.0/24")}).edge.at(0).address,
      *Address::parse("10.99.0.3"));
}

TEST_F(JoinGatewayTest, ATakenNameIsNotInvited) {
  ASSERT_EQ(ask(hub.invite("van-7")).code, JoinCode::kJoined);
  comesUp(alice());
  InviteRequest request;
  request.name = "van-7";
  EXPECT_THAT(hub.gateway->invite(request).problem,
              HasSubstr("there is a gateway 'van-7' already"));
  for (const char* name : {"", "-x", "a/b", "../x", "a b"}) {
    request.name = name;
    EXPECT_THAT(hub.gateway->invite(request).problem, HasSubstr("NAME must be")) << name;
  }
}

TEST_F(JoinGatewayTest, ANameThatAPersonTookMeanwhileIsLeftToThatPerson) {
  std::string line = hub.invite("van-7");
  hub.writeConfig("peers: [{name: van-7, pin: \"" + formatPin(mallory().pin) +
                  "\", prefixes: [10.99.0.2/32]}]\n");
  ASSERT_EQ(hub.gateway->reload(), "");
  JoinAnswer answer = ask(line);
  EXPECT_EQ(answer.code, JoinCode::kRefused);
  EXPECT_THAT(answer.text, HasSubstr("was given to another gateway"));
  EXPECT_EQ(hub.gateway->config().peers.at(0).options.pin, mallory().pin);
}

// The edge's braidctl was killed after the concentrator had admitted it, and its key is lost.
TEST_F(JoinGatewayTest, WhoBeginsAnewAfterAnEndInTheMiddleTakesItsOwnPlace) {
  std::string line = hub.invite("van-7");
  ASSERT_EQ(ask(line, alice()).code, JoinCode::kJoined);
  hub.start();
  JoinAnswer again = ask(line, mallory(), {*Prefix::parse("192.168.7.0/24")});
  ASSERT_EQ(again.code, JoinCode::kJoined) << again.text;
  EXPECT_THAT(again.edge, ElementsAre(InterfaceAddress{*Address::parse("10.99.0.2"), 24}));
  ASSERT_THAT(hub.peers(), ElementsAre("van-7"));
  EXPECT_EQ(hub.gateway->config().peers[0].options.pin, mallory().pin);
}

TEST_F(JoinGatewayTest, TheConcentratorMayRestartBetweenTheRequestAndItsAnswer) {
  Applicant applicant(hub.invite("van-7"), alice());
  bool restarted = false;
  applicant.onTurn = [&] {
    if (restarted || hub.fragment("van-7").empty()) return;
    restarted = true;
    hub.host.takeSent();
    hub.start();
  };
  applicant.run(hub, clock);
  EXPECT_TRUE(restarted);
  if (!applicant.answer) {
    EXPECT_THAT(applicant.error, HasSubstr("has not answered"));
    applicant.error.clear();
    applicant.run(hub, clock);
  }
  ASSERT_TRUE(applicant.answer);
  EXPECT_EQ(applicant.answer->code, JoinCode::kJoined);
  EXPECT_THAT(hub.peers(), ElementsAre("van-7"));
}

TEST_F(JoinGatewayTest, WhoNeverComesIsForgottenAndTheInvitationIsOpenAgain) {
  std::string line = hub.invite("van-7");
  ASSERT_EQ(ask(line).code, JoinCode::kJoined);
  hub.start();
  EXPECT_THAT(hub.peers(), ElementsAre("van-7"));
  clock.advance(JoinService::kGrace - 1s);
  hub.gateway->runOnce();
  EXPECT_THAT(hub.peers(), ElementsAre("van-7"));
  clock.advance(11s);
  hub.gateway->runOnce();
  EXPECT_THAT(hub.peers(), IsEmpty());
  EXPECT_EQ(hub.fragment("van-7"), "");
  EXPECT_EQ(ask(line, mallory()).code, JoinCode::kJoined);
}

// An operator has saved half of an edit, which would take networks and peers away.
TEST_F(JoinGatewayTest, WhatAPersonHasNotAppliedStaysSo) {
  std::string line = hub.invite("van-7"), other = hub.invite("van-8");
  hub.writeConfig("peers: [{name: half, pin: \"" + formatPin(mallory().pin) +
                  "\", prefixes: [10.99.0.9/32]}]\n");
  JoinAnswer answer = ask(line);
  ASSERT_EQ(answer.code, JoinCode::kJoined) << answer.text << lastError;
  EXPECT_THAT(answer.text, HasSubstr("not applied yet"));
  EXPECT_THAT(hub.peers(), ElementsAre("van-7"));
  InviteRequest request;
  request.name = "van-9";
  EXPECT_THAT(hub.gateway->invite(request).note, HasSubstr("hub.yaml or"));
  hub.writeConfig("peers: [{name: x}]\n");  // nor does a mistake matter
  answer = ask(other, bob());
  ASSERT_EQ(answer.code, JoinCode::kJoined) << answer.text << lastError;
  EXPECT_THAT(answer.text, HasSubstr("not applied yet"));
  EXPECT_THAT(hub.peers(), ElementsAre("van-7", "van-8"));
  EXPECT_THAT(hub.gateway->invite(request).note, HasSubstr("hub.yaml:"));
  EXPECT_THAT(hub.gateway->reload(), HasSubstr("hub.yaml:"));
  hub.writeConfig("peers: [{name: half, pin: \"" + formatPin(mallory().pin) +
                  "\", prefixes: [10.99.0.9/32]}]\n");
  ASSERT_EQ(hub.gateway->reload(), "");
  EXPECT_THAT(hub.peers(), ElementsAre("half", "van-7", "van-8"));
  EXPECT_THAT(hub.gateway->invite(request).note, Not(HasSubstr("hub.yaml")));
}

// Fragments are edited by hand, too: one is taken away and one is changed.
TEST_F(JoinGatewayTest, WhoIsForgottenTakesNoEditsOfOtherFragmentsAlong) {
  ASSERT_EQ(ask(hub.invite("van-7")).code, JoinCode::kJoined);
  comesUp(alice());
  ASSERT_EQ(ask(hub.invite("van-8"), bob()).code, JoinCode::kJoined);
  fs::remove(fragmentPath(hub.folder.file("peers.d"), "van-7"));
  clock.advance(JoinService::kGrace + 11s);
  hub.gateway->runOnce();
  EXPECT_THAT(hub.peers(), ElementsAre("van-7"));
  EXPECT_EQ(hub.fragment("van-8"), "");
  ASSERT_EQ(hub.gateway->reload(), "");
  EXPECT_THAT(hub.peers(), IsEmpty());
}

TEST_F(JoinGatewayTest, AFileThatAPersonHasNotAppliedIsNotReplaced) {
  std::string line = hub.invite("van-7");
  const std::string file = fragmentPath(hub.folder.file("peers.d"), "van-7"), mine = "# mine\n";
  std::ofstream(file) << mine;
  JoinAnswer answer = ask(line);
  EXPECT_EQ(answer.code, JoinCode::kRefused);
  EXPECT_THAT(answer.text, HasSubstr("which was not applied"));
  EXPECT_EQ(hub.fragment("van-7"), mine);
  fs::remove(file);
  EXPECT_EQ(ask(line).code, JoinCode::kJoined);
}

TEST_F(JoinGatewayTest, WhatTheHostRefusesRefusesTheJoinAndLeavesNothing) {
  std::string line = hub.invite("van-7");
  hub.host.net().refuse(true);
  JoinAnswer answer = ask(line, alice(), {*Prefix::parse("192.168.7.0/24")});
  EXPECT_EQ(answer.code, JoinCode::kRefused);
  EXPECT_THAT(answer.text, HasSubstr("could not change its configuration"));
  EXPECT_EQ(hub.fragment("van-7"), "");
  EXPECT_THAT(hub.peers(), IsEmpty());
  hub.host.net().refuse(false);
  EXPECT_EQ(ask(line).code, JoinCode::kJoined);
}

TEST_F(JoinGatewayTest, AGatewayJoinsUnderOneName) {
  ASSERT_EQ(ask(hub.invite("van-7")).code, JoinCode::kJoined);
  JoinAnswer answer = ask(hub.invite("van-8"));
  EXPECT_EQ(answer.code, JoinCode::kRefused);
  EXPECT_THAT(answer.text, HasSubstr("has joined as 'van-7' before"));
}

TEST_F(JoinGatewayTest, NoSecretIsInTheStateFilesOrFragments) {
  std::string line = hub.invite("van-7");
  ASSERT_EQ(ask(line).code, JoinCode::kJoined);
  std::vector<std::string> parts;
  for (size_t at = 0, end; at < line.size(); at = end + 1) {
    end = std::min(line.find('/', at), line.size());
    parts.push_back(line.substr(at, end - at));
  }
  ASSERT_THAT(parts, SizeIs(6));
  for (const auto& entry : fs::recursive_directory_iterator(hub.folder.file("."))) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_THAT(text, Not(HasSubstr(parts[3]))) << entry.path();
  }
}

TEST_F(JoinGatewayTest, AGatewayThatNobodyCanComeToInvitesNobody) {
  FakeHost host(clock, 7);
  Config config;
  TemporaryFolder folder;
  config.identity = {folder.file("key"), folder.file("crt")};
  writeIdentity(alice(), config.identity);
  Gateway edge(config, LoadOptions{}, host);
  InviteRequest request;
  request.name = "x";
  EXPECT_THAT(edge.invite(request).problem, HasSubstr("no 'listen'"));
}

}  // namespace
}  // namespace braid::join_gateway_test
