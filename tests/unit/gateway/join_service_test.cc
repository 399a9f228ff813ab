// JoinService, which decides on invitations, without a gateway around it.

#include "gateway/join_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "gateway/join/join_messages.h"
#include "host/system.h"
#include "tests/unit/gateway/dtls/dtls_fixture.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid::join_keeper_test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct JoinKeeperTest : testing::Test {
  JoinKeeperTest() {
    config.listen = {*Endpoint::parse("0.0.0.0:4433")};
    config.state = folder.file("hub.state");
    config.peersFolder = folder.file("peers.d");
    config.device.addresses = {{*Address::parse("10.99.0.1"), 24}};
    keeper.begin(now);
  }
  Invitation invite(const std::string& name) {
    InviteRequest request;
    request.name = name;
    return std::get<Invitation>(keeper.invite(request, {{"192.0.2.1", 4433}}));
  }
  /// Sends a join request in a separate handshake.
  std::optional<JoinMessage> ask(const Invitation& invitation, uint16_t handshake,
                                 bool rightly = true) {
    JoinBinding binding{};
    store16(binding.data(), handshake);
    JoinMessage wish = wishOf({});
    JoinStatement statement{binding, pin, rightly ? own : pin, wish};
    JoinMessage request = writeRequest(
        {idOf(publicKeyOf(invitation.secret)), signJoin(invitation.secret, statement), {}});
    return keeper.onRequest(pin, binding, request, now);
  }
  JoinCode join(const Invitation& invitation, uint16_t handshake) {
    ask(invitation, handshake);
    keeper.turn(now);
    return codeOf(ask(invitation, handshake));
  }
  std::string fragment() const {
    return readFragmentText(fragmentPath(config.peersFolder, "van")).value_or("");
  }
  std::string book() const {
    std::ifstream in(config.state + ".invitations");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Makes rewriting this file fail, as on a full disk.
  void block(const std::string& path, bool on = true) const {
    std::filesystem::path place(path),
        fresh = place.parent_path() / ("." + place.filename().string() + ".new");
    on ? std::filesystem::create_directories(fresh) : std::filesystem::remove(fresh);
  }
  static JoinCode codeOf(const std::optional<JoinMessage>& answer) {
    return answer ? readAnswer(*answer)->code : JoinCode::kRefused;
  }

  TemporaryFolder folder;
  Config config;
  Pin own{1}, pin{2};
  LogLimiter log;
  int changes = 0;
  std::function<std::string()> onChange;
  std::function<std::vector<Prefix>()> reached = [] { return std::vector<Prefix>{}; };
  int64_t wall = 1'800'000'000;
  Time now{1h};
  std::string unapplied;
  JoinService keeper{
      config,
      own,
      log,
      {.apply = [this](const std::string&,
                       const auto&) { return ++changes, onChange ? onChange() : std::string(); },
       .unapplied = [this] { return unapplied; },
       .wall = [this] { return wall; },
       .reached = [this] { return reached(); }}};
};

TEST_F(JoinKeeperTest, DecidesBetweenTwoTurnsAndAnswersTheRepeatedRequest) {
  Invitation invitation = invite("van");
  EXPECT_EQ(ask(invitation, 1), std::nullopt);
  EXPECT_EQ(changes, 0) << "nothing changes from inside of the tunnel";
  EXPECT_LE(keeper.deadline(), now);
  keeper.turn(now);
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(codeOf(ask(invitation, 1)), JoinCode::kJoined);
  keeper.turn(now);
  EXPECT_EQ(changes, 1) << "the answer is kept";
  EXPECT_THAT(readFragmentText(fragmentPath(config.peersFolder, "van")).value_or(""),
              HasSubstr("10.99.0.2/32"));
}

TEST_F(JoinKeeperTest, LooksAtABoundedNumberOfProofsOfAnInvitationASecond) {
  Invitation invitation = invite("van");
  for (uint16_t i = 0; i < 16; ++i)
    EXPECT_EQ(codeOf(ask(invitation, i, false)), JoinCode::kUnknown) << i;
  EXPECT_EQ(ask(invitation, 16, false), std::nullopt);
  EXPECT_EQ(ask(invitation, 17), std::nullopt);
  keeper.turn(now);
  EXPECT_EQ(changes, 0) << "nor at a good one";
  now += 1s;
  EXPECT_EQ(ask(invitation, 17), std::nullopt);
  keeper.turn(now);
  EXPECT_EQ(codeOf(ask(invitation, 17)), JoinCode::kJoined);
}

TEST_F(JoinKeeperTest, ChangesTheConfigurationAtABoundedRate) {
  Invitation invitation = invite("van");
  auto try10 = [&](uint16_t first) {
    for (uint16_t i = 0; i < 10; ++i) {
      ask(invitation, static_cast<uint16_t>(first + i));
      keeper.turn(now);
    }
  };
  try10(0);
  EXPECT_EQ(changes, 4);
  now += 8s;
  try10(100);
  EXPECT_EQ(changes, 5);
}

// The handshakes of strangers are rationed by their networks (HandshakeLimiter), so that these are
// as many as all networks together, or as a known host, may begin. Each asks once.
TEST_F(JoinKeeperTest, StrangersWithoutAnInvitationKeepNobodyOut) {
  Invitation invitation = invite("van"), unknown = invitation;
  uint16_t handshake = 0;
  auto flood = [&](Duration time) {
    for (Time end = now + time; now < end; now += 1ms) {
      unknown.secret = InvitationSecret::draw();
      EXPECT_EQ(codeOf(ask(unknown, ++handshake)), JoinCode::kUnknown);
      keeper.turn(now);
    }
  };
  flood(5s);
  const Time begun = now;
  ASSERT_EQ(ask(invitation, 60000), std::nullopt);
  flood(100ms);  // until the request is repeated
  EXPECT_EQ(codeOf(ask(invitation, 60000)), JoinCode::kJoined);
  EXPECT_LE(now - begun, 101ms);
  EXPECT_EQ(changes, 1);
}

// Each holder alternates between two keys, so that each request changes the configuration.
TEST_F(JoinKeeperTest, HoldersOfOtherInvitationsKeepNobodyOut) {
  std::vector<Invitation> hostile;
  for (int i = 0; i < 40; ++i) hostile.push_back(invite("hostile" + std::to_string(i)));
  Invitation invitation = invite("van");
  const Pin honest = pin;
  uint16_t handshake = 0;
  auto flood = [&](Duration time) {
    for (Time end = now + time; now < end; now += 2ms) {
      pin = Pin{static_cast<uint8_t>(3 + handshake / hostile.size() % 2)};
      ask(hostile[handshake % hostile.size()], handshake);
      ++handshake;
      keeper.turn(now);
    }
    pin = honest;
  };
  flood(21s);
  const int before = changes;
  EXPECT_LE(before, 40 + 8 + 10) << "one of each, and the ration of all together";
  ASSERT_EQ(ask(invitation, 60000), std::nullopt);
  keeper.turn(now);
  EXPECT_EQ(changes, before + 1);
  flood(1s);  // until the request is repeated, if not before
  EXPECT_EQ(codeOf(ask(invitation, 60000)), JoinCode::kJoined);
}

TEST_F(JoinKeeperTest, AnInvitationEndsAtItsTime) {
  Invitation invitation = invite("van");
  EXPECT_EQ(invitation.expires, wall + 24 * 3600);
  wall = invitation.expires;
  EXPECT_EQ(codeOf(ask(invitation, 1)), JoinCode::kExpired);
  EXPECT_EQ(codeOf(ask(invitation, 2, false)), JoinCode::kUnknown) << "only its owner is told";
  EXPECT_TRUE(keeper.isOpen());
  wall += InvitationStore::kRemember;
  EXPECT_FALSE(keeper.isOpen());
}

TEST_F(JoinKeeperTest, AnInvitationIsUsedWhenItsPeerIsUp) {
  Invitation invitation = invite("van");
  ask(invitation, 1);
  keeper.turn(now);
  keeper.onPeers({"other"});
  EXPECT_EQ(ask(invitation, 2), std::nullopt) << "good still";
  keeper.turn(now);
  keeper.onPeers({"van"});
  EXPECT_EQ(codeOf(ask(invitation, 3)), JoinCode::kUsed);
  EXPECT_EQ(codeOf(ask(invitation, 2)), JoinCode::kJoined) << "what was answered is answered again";
}

TEST_F(JoinKeeperTest, NetworksAndAddressesOfAnInvitationAreChecked) {
  InviteRequest request;
  request.name = "van";
  auto problem = [&] {
    auto made = keeper.invite(request, {{"192.0.2.1", 4433}});
    return std::holds_alternative<std::string>(made) ? std::get<std::string>(made) : "";
  };
  EXPECT_EQ(problem(), "");
  request.networks = {"10.1.0.1/16"};
  EXPECT_THAT(problem(), HasSubstr("is no network"));
  request.networks = {"0.0.0.0/0"};
  EXPECT_EQ(problem(), "");
  request.addresses = {"gw"};
  EXPECT_THAT(problem(), HasSubstr("is no HOST:PORT"));
  request.addresses.assign(9, "gw:1");
  EXPECT_THAT(problem(), HasSubstr("more than 8 addresses"));
  request.addresses.clear();
  request.lifetime = 1s;
  EXPECT_THAT(problem(), HasSubstr("one minute to 30 days"));
  request.lifetime = 1h;
  auto made = keeper.invite(request, {});
  EXPECT_THAT(std::get<std::string>(made), HasSubstr("--address"));
}

TEST_F(JoinKeeperTest, WhoJoinsIsInTheBookBeforeThereIsAFragment) {
  Invitation invitation = invite("van");
  std::string known;
  onChange = [&] { return known = book(), std::string(); };
  ASSERT_EQ(join(invitation, 1), JoinCode::kJoined);
  EXPECT_THAT(known, HasSubstr(formatPin(pin)))
      << "killed here, the next daemon knows whose the fragment is";
}

TEST_F(JoinKeeperTest, ABookThatCannotBeWrittenRefusesAndLeavesNothing) {
  Invitation invitation = invite("van");
  block(config.state + ".invitations");
  EXPECT_EQ(join(invitation, 1), JoinCode::kRefused);
  EXPECT_EQ(changes, 0);
  EXPECT_EQ(fragment(), "");
  block(config.state + ".invitations", false);
  EXPECT_EQ(join(invitation, 2), JoinCode::kJoined);
}

TEST_F(JoinKeeperTest, AFragmentThatCannotBeWrittenRefusesAndLeavesTheOneBefore) {
  Invitation invitation = invite("van");
  ASSERT_EQ(join(invitation, 1), JoinCode::kJoined);
  std::string before = fragment();
  block(fragmentPath(config.peersFolder, "van"));
  pin = Pin{7};
  EXPECT_EQ(join(invitation, 2), JoinCode::kRefused);
  EXPECT_EQ(fragment(), before);
  EXPECT_THAT(book(), HasSubstr(formatPin(Pin{2})));
}

TEST_F(JoinKeeperTest, WhatDoesNotHoldAndCannotBeTakenBackGoes) {
  Invitation invitation = invite("van");
  ASSERT_EQ(join(invitation, 1), JoinCode::kJoined);
  pin = Pin{7};
  onChange = [&] { return block(fragmentPath(config.peersFolder, "van")), std::string("no"); };
  EXPECT_EQ(join(invitation, 2), JoinCode::kRefused);
  EXPECT_EQ(fragment(), "") << "else no daemon would start any more";
}

TEST_F(JoinKeeperTest, ThatAnInvitationIsUsedIsWrittenOnceTheDiskHasRoom) {
  ASSERT_EQ(join(invite("van"), 1), JoinCode::kJoined);
  block(config.state + ".invitations");
  keeper.onPeers({"van"});
  keeper.turn(now += JoinService::kTick);
  EXPECT_THAT(book(), HasSubstr("\"used\":false"));
  block(config.state + ".invitations", false);
  ASSERT_LE(keeper.deadline(), now + JoinService::kTick);
  keeper.turn(now += JoinService::kTick);
  EXPECT_THAT(book(), HasSubstr("\"used\":true"));
  EXPECT_EQ(keeper.deadline(), kNever);
}

TEST_F(JoinKeeperTest, AClockThatIsSetForgetsNobodyWhoJoins) {
  ASSERT_EQ(join(invite("van"), 1), JoinCode::kJoined);
  wall += 20 * 365 * 24 * 3600LL;
  keeper.turn(now += JoinService::kTick);
  EXPECT_NE(fragment(), "");
  wall -= 40 * 365 * 24 * 3600LL;
  keeper.turn(now += JoinService::kGrace);
  EXPECT_EQ(fragment(), "") << "nor does it keep who never comes";
}

TEST_F(JoinKeeperTest, ADaemonThatStartsGivesTimeToCome) {
  ASSERT_EQ(join(invite("van"), 1), JoinCode::kJoined);
  wall += 3600;
  now += 1h;
  keeper.begin(now);
  keeper.turn(now += JoinService::kTick);
  EXPECT_NE(fragment(), "") << "while none ran, nobody could come";
  keeper.onPeers({"van"});
  keeper.turn(now += JoinService::kGrace);
  EXPECT_NE(fragment(), "");
}

TEST_F(JoinKeeperTest, AnInvitationStaysGoodWhenItsPeerCannotBeRemovedForAnotherOne) {
  Invitation invitation = invite("van");
  ASSERT_EQ(join(invitation, 1), JoinCode::kJoined);
  onChange = [] { return std::string("refused route"); };
  InviteRequest request;
  request.name = "van";
  auto made = keeper.invite(request, {{"192.0.2.1", 4433}});
  ASSERT_TRUE(std::holds_alternative<std::string>(made));
  EXPECT_THAT(std::get<std::string>(made), HasSubstr("refused route"));
  onChange = nullptr;
  EXPECT_EQ(join(invitation, 2), JoinCode::kJoined);
}

TEST_F(JoinKeeperTest, WhoJoinsIsToldOfEditsThatAreNotApplied) {
  Invitation invitation = invite("van");
  unapplied = "/etc/braid/secret.yaml was edited since it was read";
  ASSERT_EQ(join(invitation, 1), JoinCode::kJoined);
  EXPECT_THAT(readAnswer(*ask(invitation, 1))->text, HasSubstr("is not applied yet"));
  EXPECT_THAT(readAnswer(*ask(invitation, 1))->text, Not(HasSubstr("secret.yaml")));
}

TEST_F(JoinKeeperTest, NobodyJoinsWhileTheHostsOwnNetworksCannotBeRead) {
  Invitation invitation = invite("van");
  reached = []() -> std::vector<Prefix> { throw SystemError(ENOBUFS, "netlink dump failed"); };
  EXPECT_EQ(join(invitation, 1), JoinCode::kRefused);
  EXPECT_EQ(fragment(), "");
}

}  // namespace
}  // namespace braid::join_keeper_test
