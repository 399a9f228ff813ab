#include "gateway/control/history.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/control/status_json.h"

namespace braid::history_test {
namespace {

PeerStatus peerNamed(const std::string& name) {
  PeerStatus peer;
  peer.name = name;
  peer.up = true;
  return peer;
}

SubflowStatus& addSubflow(PeerStatus& peer, const std::string& path,
                          const std::string& state = "active") {
  SubflowStatus& s = peer.subflows.emplace_back();
  s.path = path;
  s.state = state;
  return s;
}

TEST(History, AStepIsWhatWasCountedSinceTheOneBefore) {
  History history;
  PeerStatus hub = peerNamed("hub");
  SubflowStatus& wifi = addSubflow(hub, "wifi");
  wifi.sentPackets = 100;
  wifi.lostPackets = 7;
  wifi.srtt = 12ms;
  hub.innerReceivedBytes = 5000;
  history.add(hub, 1000);
  wifi.sentPackets = 150;
  wifi.lostPackets = 9;
  hub.innerReceivedBytes = 5600;
  history.add(hub, 1010);

  const History::Path* path = history.path("hub", "wifi");
  ASSERT_TRUE(path);
  ASSERT_EQ(path->steps.size(), 2u);
  EXPECT_EQ(path->steps[1].sentPackets, 50u);
  EXPECT_EQ(path->steps[1].lostPackets, 2u);
  EXPECT_EQ(path->steps[1].until, 1010);
  EXPECT_EQ(path->steps[1].srtt, Duration(12ms));
  EXPECT_EQ(history.peer("hub")->steps[1].innerReceivedBytes, 600u);
}

TEST(History, ASessionThatBeginsAnewCountsFromNothing) {
  History history;
  PeerStatus hub = peerNamed("hub");
  SubflowStatus& wifi = addSubflow(hub, "wifi");
  wifi.sentPackets = 100;
  history.add(hub, 1000);
  wifi.sentPackets = 30;
  history.add(hub, 1010);
  EXPECT_EQ(history.path("hub", "wifi")->steps[1].sentPackets, 30u);
}

TEST(History, SubflowsOfAnUplinkAreOnePathInTheStateOfTheBest) {
  History history;
  PeerStatus hub = peerNamed("hub");
  addSubflow(hub, "wifi", "suspect").sentPackets = 5;
  addSubflow(hub, "wifi", "active").sentPackets = 8;
  addSubflow(hub, "lte", "closed").sentPackets = 1;
  history.add(hub, 1000);
  ASSERT_EQ(history.paths().size(), 2u);
  EXPECT_EQ(history.path("hub", "wifi")->steps[0].sentPackets, 13u);
  EXPECT_EQ(history.path("hub", "wifi")->steps[0].state, "active");
  EXPECT_EQ(history.path("hub", "lte")->steps[0].state, "closed");
}

TEST(History, TheBytesOfAPathAreThoseOfTheStepsThatAreKept) {
  History history;
  PeerStatus hub = peerNamed("hub");
  SubflowStatus& wifi = addSubflow(hub, "wifi");
  wifi.sentBytes = 1'000'000;
  history.add(hub, 1000);
  for (size_t i = 1; i < History::kSteps; ++i) {
    wifi.sentBytes += 10;
    wifi.receivedBytes += 5;
    history.add(hub, 1000 + 10 * static_cast<int64_t>(i));
  }
  EXPECT_EQ(history.path("hub", "wifi")->bytes, 1'000'000 + 15 * (History::kSteps - 1));
  wifi.sentBytes += 10;
  history.add(hub, 1000 + 10 * static_cast<int64_t>(History::kSteps));
  EXPECT_EQ(history.path("hub", "wifi")->bytes, 15 * (History::kSteps - 1) + 10)
      << "the first step is gone";
}

TEST(History, KeepsAnHour) {
  History history;
  PeerStatus hub = peerNamed("hub");
  addSubflow(hub, "wifi");
  for (int i = 0; i < 400; ++i) history.add(hub, 1000 + 10 * i);
  EXPECT_EQ(history.path("hub", "wifi")->steps.size(), History::kSteps);
  EXPECT_EQ(history.path("hub", "wifi")->steps[0].until, 1400);
  EXPECT_EQ(history.peer("hub")->steps.size(), History::kSteps);
}

TEST(History, FollowsABoundedNumberOfPathsAndForgetsThoseThatAreLongGone) {
  History history;
  for (size_t i = 0; i < 2 * History::kMostPaths; ++i) {
    PeerStatus peer = peerNamed("p" + std::to_string(i));
    addSubflow(peer, "wifi");
    history.add(peer, 1000);
  }
  EXPECT_EQ(history.paths().size(), History::kMostPaths);
  EXPECT_EQ(history.peers().size(), History::kMostPeers);
  EXPECT_EQ(history.untold(), 2 * History::kMostPaths);
  PeerStatus late = peerNamed("late");
  addSubflow(late, "wifi");
  history.add(late, 1000 + 3601);
  EXPECT_TRUE(history.path("late", "wifi"));
  EXPECT_EQ(history.path("late", "wifi")->steps.size(), 1u);
  EXPECT_EQ(history.paths().size(), History::kMostPaths);
}

TEST(History, EventsAreKeptInOrderAndTheOldestGo) {
  History history;
  for (size_t i = 0; i < History::kMostEvents + 3; ++i)
    history.add(Event{Event::Kind::kSubflowSuspect, "hub", "wifi is silent", "wifi"},
                1000 + static_cast<double>(i));
  ASSERT_EQ(history.events().size(), History::kMostEvents);
  EXPECT_EQ(history.events()[0].at, 1003);
  EXPECT_EQ(history.events()[0].kind, "path_silent");
  EXPECT_EQ(history.events()[0].path, "wifi");
}

TEST(History, HandshakesThatFailAgainAndAgainAreOneEvent) {
  History history;
  history.add(peerNamed("hub"), 1);
  for (int i = 0; i < 10; ++i) {
    history.add(Event{Event::Kind::kHandshakeFailed, "hub", "192.0.2.1:4433: no answer"}, 1000 + i);
    history.add(Event{Event::Kind::kHandshakeFailed, "hub", "192.0.2.2:4433: no answer"}, 1000 + i);
  }
  ASSERT_EQ(history.events().size(), 2u);
  EXPECT_EQ(history.events()[1].count, 10u);
  EXPECT_EQ(history.events()[1].at, 1000);
  EXPECT_EQ(history.events()[1].last, 1009);
}

TEST(History, StrangersPushNothingOut) {
  History history;
  history.add(peerNamed("hub"), 1);
  history.add(Event{Event::Kind::kPeerUp, "hub", "is up"}, 1000);
  for (int i = 0; i < 2000; ++i)
    history.add(
        Event{Event::Kind::kHandshakeFailed, "198.51.100.1:" + std::to_string(i), "a stranger"},
        2000 + i);
  EXPECT_EQ(history.events().size(), 1u);
  EXPECT_EQ(history.stranger().count, 2000u);
  EXPECT_EQ(history.stranger().peer, "198.51.100.1:1999");
}

TEST(History, ChangesOfKeysAreNoNews) {
  History history;
  history.add(Event{Event::Kind::kRekeyed, "hub", "new keys"}, 1000);
  EXPECT_TRUE(history.events().empty());
}

TEST(History, IsToldAsRowsWithTheirColumns) {
  History history;
  PeerStatus hub = peerNamed("hub");
  addSubflow(hub, "wifi").sentPackets = 42;
  history.add(hub, 1000);
  nlohmann::json answer = historyObject(*history.path("hub", "wifi")).whole();
  ASSERT_EQ(answer["steps"].size(), 1u);
  ASSERT_EQ(answer["steps"][0].size(), answer["columns"].size());
  size_t at = 0;
  while (answer["columns"][at] != "sent_packets") ++at;
  EXPECT_EQ(answer["steps"][0][at], 42);
  nlohmann::json index = historyObject(history).whole();
  EXPECT_EQ(index["paths"][0]["path"], "wifi");
  EXPECT_EQ(index["peers"][0], "hub");
  EXPECT_EQ(index["step_s"], 10);
  EXPECT_TRUE(index["stranger"].is_null());
}

TEST(History, KnowsWhatWasRefusedTenMinutesAgo) {
  History history;
  EXPECT_EQ(history.formerlyRefused().betweenPeers, 0u);
  for (uint64_t i = 1; i <= History::kRecent; ++i) history.add({.betweenPeers = i});
  EXPECT_EQ(history.formerlyRefused().betweenPeers, 1u) << "since the start";
  history.add({.at = 700, .foreignSource = 7, .forbidden = 9});
  EXPECT_EQ(history.formerlyRefused().betweenPeers, 2u);
  history.beginAgain({.at = 710, .foreignSource = 7, .betweenPeers = 61, .forbidden = 9});
  nlohmann::json formerly = historyObject(history).whole()["formerly"];
  EXPECT_EQ(formerly["at_unix_s"], 710.0);
  EXPECT_EQ(formerly["foreign_source"], 7);
  EXPECT_EQ(formerly["between_peers"], 61);
  EXPECT_EQ(formerly["ended_forbidden"], 9);
}

}  // namespace
}  // namespace braid::history_test
