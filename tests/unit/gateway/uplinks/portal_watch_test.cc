// How captive portals are found, and who reaches their pages.

#include "gateway/uplinks/portal_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/fake/fake_host.h"

namespace braid::portal_watch_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Address address(const char* text) {
  return *Address::parse(text);
}

struct PortalWatchTest : testing::Test {
  PortalWatchTest() { watch.follow(shut, false); }

  PortalWatch::Candidate candidate(const std::string& uplink) const {
    PortalWatch::Candidate out;
    out.way.uplink = uplink;
    out.way.interface = uplink + "0";
    out.way.v4 = address("10.0.0.9");
    return out;
  }
  void pass(Duration time) {
    for (Time end = clock.now() + time; clock.now() < end;) {
      clock.advance(1s);
      if (watch.deadline() <= clock.now()) watch.turn();
    }
  }
  std::vector<Address> asked() const {
    std::vector<Address> out;
    for (const auto& [way, server] : host.pages()) out.push_back(server);
    return out;
  }
  std::vector<std::string> notes() {
    std::vector<std::string> out;
    for (const auto& [uplink, text] : watch.takeNotes()) out.push_back(uplink + ": " + text);
    return out;
  }

  FakeClock clock;
  FakeHost host{clock, 1};
  int changes = 0;
  PortalWatch watch{host, [this] { ++changes; }};
  std::vector<PortalWatch::Candidate> shut{candidate("wifi")};
};

TEST_F(PortalWatchTest, AnUplinkThatWorksIsNotAsked) {
  pass(3s);
  EXPECT_THAT(asked(), IsEmpty()) << "a handshake may be on its way";
  watch.follow({}, false);
  pass(60s);
  EXPECT_THAT(asked(), IsEmpty());
  EXPECT_EQ(watch.deadline(), kNever);
}

TEST_F(PortalWatchTest, NobodyButAPortalAnswersForAnAddressThatNobodyHas) {
  pass(PortalWatch::kPatience);
  ASSERT_THAT(asked(), ElementsAre(PortalWatch::nobodyV4()));
  host.answerPage("wifi", 302, "http://10.66.66.66:8080/login");
  ASSERT_EQ(watch.portals().size(), 1u);
  EXPECT_EQ(watch.portals()[0].interface, "wifi0");
  EXPECT_EQ(watch.portals()[0].url, "http://10.66.66.66:8080/login");
  EXPECT_THAT(watch.portals()[0].addresses,
              ElementsAre(address("10.66.66.66"), PortalWatch::nobodyV4()));
  EXPECT_FALSE(watch.portals()[0].isShut);
  EXPECT_EQ(changes, 1);
  EXPECT_THAT(notes(), ElementsAre(AllOf(HasSubstr("wifi: uplink wifi: a captive portal waits"),
                                         HasSubstr("http://10.66.66.66:8080/login"))));
  pass(PortalWatch::kPause);
  host.answerPage("wifi", 302, "http://10.66.66.66:8080/login");
  EXPECT_EQ(changes, 1) << "nothing is new";
  EXPECT_THAT(notes(), IsEmpty());
  watch.follow({}, false);
  EXPECT_THAT(watch.portals(), IsEmpty()) << "a peer is reached by it";
  EXPECT_EQ(changes, 2);
  EXPECT_THAT(notes(), ElementsAre(HasSubstr("no captive portal is at uplink wifi any more")));
}

TEST_F(PortalWatchTest, APageWithoutARedirectionIsReachedByTheAddressThatWasAsked) {
  pass(PortalWatch::kPatience);
  host.answerPage("wifi", 200);
  ASSERT_EQ(watch.portals().size(), 1u);
  EXPECT_EQ(watch.portals()[0].url, "http://192.0.2.1/");
  EXPECT_THAT(watch.portals()[0].addresses, ElementsAre(PortalWatch::nobodyV4()));
}

TEST_F(PortalWatchTest, ThePrivateAddressOfAPeersNameIsAskedInTurn) {
  shut[0].suspects = {address("10.66.66.66"), address("fd00::66")};
  watch.follow(shut, false);
  pass(PortalWatch::kPatience);
  EXPECT_THAT(asked(), ElementsAre(PortalWatch::nobodyV4()));
  host.answerPage("wifi", 0);
  EXPECT_THAT(watch.portals(), IsEmpty());
  pass(2 * PortalWatch::kPause);
  ASSERT_THAT(asked(), ElementsAre(address("10.66.66.66"))) << "the uplink has no IPv6";
  host.answerPage("wifi", 302, "/login");
  ASSERT_EQ(watch.portals().size(), 1u);
  EXPECT_EQ(watch.portals()[0].url, "http://10.66.66.66/");
  pass(PortalWatch::kPause);
  EXPECT_THAT(asked(), ElementsAre(address("10.66.66.66"))) << "the same again, while it stands";
}

TEST_F(PortalWatchTest, TheServerOfAPageIsLookedUpOverTheUplink) {
  pass(PortalWatch::kPatience);
  host.answerPage("wifi", 302, "https://login.example/");
  EXPECT_THAT(watch.portals()[0].addresses, ElementsAre(PortalWatch::nobodyV4()));
  const HostPort server{"login.example", 443};
  ASSERT_THAT(host.askedOver(server), ElementsAre("wifi"));
  host.answer("wifi", server, {{address("10.66.66.66"), 443}});
  EXPECT_THAT(watch.portals()[0].addresses,
              ElementsAre(address("10.66.66.66"), PortalWatch::nobodyV4()));
  EXPECT_EQ(changes, 2);
  pass(PortalWatch::kPause);
  host.answerPage("wifi", 302, "https://login.example/");
  EXPECT_EQ(changes, 2) << "its address stays while it is looked up again";
}

TEST_F(PortalWatchTest, APublicAddressIsNotLetOutUnlessAllAre) {
  pass(PortalWatch::kPatience);
  host.answerPage("wifi", 302, "http://198.51.100.7/login");
  EXPECT_THAT(watch.portals()[0].addresses, ElementsAre(PortalWatch::nobodyV4()));
  EXPECT_TRUE(watch.portals()[0].isShut);
  EXPECT_THAT(notes(), ElementsAre(HasSubstr("'portal-check: any'")));
  watch.follow(shut, true);
  EXPECT_THAT(watch.portals()[0].addresses,
              ElementsAre(PortalWatch::nobodyV4(), address("198.51.100.7")));
}

TEST_F(PortalWatchTest, APortalThatDoesNotAnswerTwiceIsOver) {
  pass(PortalWatch::kPatience);
  host.answerPage("wifi", 200);
  pass(PortalWatch::kPause);
  host.answerPage("wifi", 0);
  EXPECT_EQ(watch.portals().size(), 1u) << "a packet may be lost";
  pass(2 * PortalWatch::kPause);
  host.answerPage("wifi", 0);
  EXPECT_THAT(watch.portals(), IsEmpty());
}

TEST_F(PortalWatchTest, WhoNeverAnswersIsAskedLessOften) {
  int requests = 0;
  for (int i = 0; i < 600; ++i) {
    pass(1s);
    if (host.pages().empty()) continue;
    ++requests;
    host.answerPage("wifi", 0);
  }
  EXPECT_GE(requests, 9);
  EXPECT_LE(requests, 14);
}

TEST_F(PortalWatchTest, AnotherInterfaceBeginsAnew) {
  pass(PortalWatch::kPatience);
  host.answerPage("wifi", 200);
  shut[0].way.interface = "wlan1";
  watch.follow(shut, false);
  EXPECT_THAT(watch.portals(), IsEmpty());
}

}  // namespace
}  // namespace braid::portal_watch_test
