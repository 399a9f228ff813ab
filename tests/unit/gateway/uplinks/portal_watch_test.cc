// How captive portals are found.

#include "gateway/uplinks/portal_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/fake/fake_host.h"

namespace braid::portal_watch_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Address address(const char* text) {
  return *Address::parse(text);
}

struct PortalWatchTest : testing::Test {
  PortalWatchTest() {
    setLogLevel("error");
    watch.follow(shut, true);
  }
  ~PortalWatchTest() override { setLogLevel("info"); }

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
  void answer(unsigned status, const std::string& location = {}) {
    host.answerPage("wifi", nobodyV4, status, location);
  }
  std::vector<std::string> notes() {
    std::vector<std::string> out;
    for (const auto& [uplink, text] : watch.takeNotes()) out.push_back(uplink + ": " + text);
    return out;
  }

  const Address nobodyV4 = address("192.0.2.1"), nobodyV6 = address("3fff::1");
  FakeClock clock;
  FakeHost host{clock, 1};
  LogLimiter log;
  PortalWatch watch{host, log};
  std::vector<PortalWatch::Candidate> shut{candidate("wifi")};
};

TEST_F(PortalWatchTest, AnUplinkThatWorksIsNotAsked) {
  pass(3s);
  EXPECT_THAT(asked(), IsEmpty()) << "a handshake may be on its way";
  watch.follow({}, true);
  pass(60s);
  EXPECT_THAT(asked(), IsEmpty());
  EXPECT_EQ(watch.deadline(), kNever);
}

TEST_F(PortalWatchTest, WhoAnswersForAnAddressThatNobodyHasIsAPortal) {
  pass(PortalWatch::kPatience);
  ASSERT_THAT(asked(), ElementsAre(nobodyV4));
  answer(302, "http://10.66.66.66:8080/login");
  ASSERT_THAT(watch.portals(), SizeIs(1));
  EXPECT_EQ(watch.portals()[0].url, "http://10.66.66.66:8080/login");
  EXPECT_EQ(watch.portals()[0].port, 8080);
  EXPECT_THAT(watch.portals()[0].addresses, ElementsAre(address("10.66.66.66")));
  EXPECT_TRUE(watch.takeChange());
  EXPECT_THAT(notes(), ElementsAre(AllOf(HasSubstr("wifi: uplink wifi: a captive portal waits"),
                                         HasSubstr("http://10.66.66.66:8080/login"))));
  pass(PortalWatch::kPause);
  answer(302, "http://10.66.66.66:8080/login");
  EXPECT_FALSE(watch.takeChange()) << "nothing is new";
  EXPECT_THAT(notes(), IsEmpty());
  watch.follow({}, true);
  EXPECT_THAT(watch.portals(), IsEmpty()) << "a peer is reached by it";
  EXPECT_TRUE(watch.takeChange());
  EXPECT_THAT(notes(), ElementsAre(HasSubstr("wifi: uplink wifi: no captive portal any more")));
}

TEST_F(PortalWatchTest, APageWithoutARedirectionIsThatOfTheAddressThatWasAsked) {
  for (unsigned status : {200u, 511u}) {
    watch.follow({}, true);
    watch.follow(shut, true);
    pass(PortalWatch::kPatience);
    answer(status);
    ASSERT_THAT(watch.portals(), SizeIs(1)) << status;
    EXPECT_EQ(watch.portals()[0].url, "http://192.0.2.1/");
    EXPECT_THAT(watch.portals()[0].addresses, ElementsAre(nobodyV4));
  }
}

// Found by review: a provider's transparent proxy says 502 or 504 of an address that nobody has.
TEST_F(PortalWatchTest, AnErrorIsNoPortal) {
  pass(PortalWatch::kPatience);
  for (unsigned status : {100u, 304u, 403u, 404u, 500u, 502u, 504u, 0u}) {
    answer(status);
    EXPECT_THAT(watch.portals(), IsEmpty()) << status;
    pass(PortalWatch::kLongestPause);
  }
}

TEST_F(PortalWatchTest, BothAddressesThatNobodyHasAreAskedInTheSameTurn) {
  shut[0].way.v6 = address("fd00::9");
  watch.follow(shut, true);
  pass(PortalWatch::kPatience);
  EXPECT_THAT(asked(), ElementsAre(nobodyV4, nobodyV6));
  host.answerPage("wifi", nobodyV6, 302, "http://[fd00::66]:81/login");
  answer(302, "http://10.66.66.66/login");
  EXPECT_EQ(watch.portals()[0].url, "http://[fd00::66]:81/login") << "the first one's";
  EXPECT_EQ(watch.portals()[0].port, 81);
  EXPECT_THAT(watch.portals()[0].addresses, ElementsAre(address("fd00::66")));
  EXPECT_THAT(notes(), SizeIs(1));
  pass(PortalWatch::kPause);
  answer(302, "http://10.66.66.66/login");
  EXPECT_EQ(watch.portals()[0].url, "http://[fd00::66]:81/login");
  pass(PortalWatch::kPause);
  answer(302, "http://10.66.66.66/login");
  EXPECT_EQ(watch.portals()[0].url, "http://10.66.66.66/login") << "the first one is silent";
}

// Found by review: a hub with a private address and a web server became a portal while its daemon
// was down.
TEST_F(PortalWatchTest, APrivateAddressOfAPeersNameCountsOnlyWhenItRedirects) {
  const Address suspect = address("10.66.66.66");
  shut[0].suspects = {suspect, address("fd00::66")};
  watch.follow(shut, true);
  pass(PortalWatch::kPatience);
  ASSERT_THAT(asked(), ElementsAre(nobodyV4, suspect)) << "the uplink has no IPv6";
  host.answerPage("wifi", suspect, 200);
  EXPECT_THAT(watch.portals(), IsEmpty());
  pass(2 * PortalWatch::kPause);
  host.answerPage("wifi", suspect, 511);
  EXPECT_THAT(watch.portals(), IsEmpty());
  pass(2 * PortalWatch::kPause);
  pass(2 * PortalWatch::kPause);
  host.answerPage("wifi", suspect, 302, "/login");
  ASSERT_THAT(watch.portals(), SizeIs(1));
  EXPECT_EQ(watch.portals()[0].url, "http://10.66.66.66/");
  EXPECT_THAT(watch.portals()[0].addresses, ElementsAre(suspect));
}

TEST_F(PortalWatchTest, TheServerOfAPageIsLookedUpAtTheUplinksServersAlone) {
  pass(PortalWatch::kPatience);
  answer(302, "https://login.example/");
  EXPECT_THAT(watch.portals()[0].addresses, IsEmpty());
  EXPECT_EQ(watch.portals()[0].port, 443);
  const HostPort server{"login.example", 443};
  ASSERT_THAT(host.askedOver(server), ElementsAre("wifi"));
  EXPECT_TRUE(host.lookups()[0].first.strict);
  host.answer("wifi", server, {{address("10.66.66.66"), 443}});
  EXPECT_THAT(watch.portals()[0].addresses, ElementsAre(address("10.66.66.66")));
  EXPECT_TRUE(watch.takeChange());
  pass(PortalWatch::kPause);
  answer(302, "https://login.example/");
  EXPECT_FALSE(watch.takeChange()) << "its address stays while it is looked up again";
  host.answer("wifi", server, {{address("10.66.66.67"), 443}});
  EXPECT_THAT(watch.portals()[0].addresses, ElementsAre(address("10.66.66.67")));
}

TEST_F(PortalWatchTest, NoNameIsLookedUpWhileAPeerIsUp) {
  watch.follow(shut, false);
  pass(PortalWatch::kPatience);
  answer(302, "https://login.example/");
  EXPECT_THAT(watch.portals(), SizeIs(1));
  EXPECT_THAT(host.asked(), IsEmpty());
}

// Found by review: with another URL in each answer, log and history filled.
TEST_F(PortalWatchTest, AnUrlThatChangesIsNotTold) {
  pass(PortalWatch::kPatience);
  answer(302, "http://10.66.66.66/?1");
  EXPECT_THAT(notes(), SizeIs(1));
  pass(PortalWatch::kPause);
  answer(302, "http://10.66.66.66/?2");
  EXPECT_EQ(watch.portals()[0].url, "http://10.66.66.66/?2");
  EXPECT_THAT(notes(), IsEmpty());
}

// Found by review: the answer of the network before counted for the present one.
TEST_F(PortalWatchTest, AnAnswerCountsOnlyForTheWayThatWasAsked) {
  pass(PortalWatch::kPatience);
  shut[0].way.v4 = address("10.7.0.9");
  watch.follow(shut, true);
  answer(302, "http://10.66.66.66/");
  EXPECT_THAT(watch.portals(), IsEmpty());
  pass(PortalWatch::kPatience);
  ASSERT_THAT(asked(), ElementsAre(nobodyV4)) << "it begins anew";
  answer(302, "http://10.66.66.66/");
  EXPECT_THAT(watch.portals(), SizeIs(1));
  shut[0].way.v4 = address("10.8.0.9");
  watch.follow(shut, true);
  EXPECT_THAT(watch.portals(), IsEmpty()) << "that was another network";
}

TEST_F(PortalWatchTest, APortalThatDoesNotAnswerTwiceIsOver) {
  pass(PortalWatch::kPatience);
  answer(200);
  pass(2 * PortalWatch::kPause);
  EXPECT_THAT(watch.portals(), SizeIs(1)) << "a packet may be lost";
  answer(404);
  pass(2 * PortalWatch::kPause);
  EXPECT_THAT(watch.portals(), IsEmpty());
  EXPECT_THAT(notes(), Contains(HasSubstr("no captive portal any more")));
}

TEST_F(PortalWatchTest, WhoNeverAnswersIsAskedLessOften) {
  int requests = 0;
  for (int i = 0; i < 600; ++i) {
    pass(1s);
    if (host.pages().empty()) continue;
    ++requests;
    answer(0);
  }
  EXPECT_GE(requests, 9);
  EXPECT_LE(requests, 14);
}

// Found by review: a socket that the system refused ended the daemon.
TEST_F(PortalWatchTest, WhatTheHostRefusesIsTriedAgain) {
  host.refusePortals(true);
  pass(PortalWatch::kPatience);
  EXPECT_THAT(asked(), IsEmpty());
  host.refusePortals(false);
  pass(2 * PortalWatch::kPause);
  EXPECT_THAT(asked(), ElementsAre(nobodyV4));
}

TEST(PageServer, OfAnUrl) {
  auto server = [](const char* url) {
    std::optional<HostPort> found = pageServer(url);
    return found ? found->host + " " + std::to_string(found->port) : "";
  };
  EXPECT_EQ(server("http://10.0.0.1"), "10.0.0.1 80");
  EXPECT_EQ(server("HTTP://Login.Example:8080/x?y=http://z/"), "Login.Example 8080");
  EXPECT_EQ(server("https://user@login.example?x"), "login.example 443");
  EXPECT_EQ(server("http://[fd00::66]:81/"), "fd00::66 81");
  EXPECT_EQ(server("http://[fd00::66]"), "fd00::66 80");
  EXPECT_EQ(server("http://a:/"), "a 80");
  for (const char* url : {"", "/login", "/x?y=http://z/", "ftp://a/", "http:///", "http://[x]/",
                          "http://[fd00::66/", "http://a:0/", "http://a:65536/", "http://a:8x/",
                          "http://a%00b/", "http://fd00::66/", "http://[fd00::66]81/"})
    EXPECT_EQ(server(url), "") << url;
}

}  // namespace
}  // namespace braid::portal_watch_test
