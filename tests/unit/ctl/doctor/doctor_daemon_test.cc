// What the doctor says of a running daemon's figures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ctl/doctor/doctor.h"

namespace braid::doctor_daemon_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> found(const nlohmann::json& traffic) {
  DoctorReport report;
  judgeOffloads(traffic, report);
  std::vector<std::string> out;
  for (const Finding& f : report.findings())
    if (f.check == "offloads") out.push_back(f.what + "; " + f.why + "; " + f.remedy);
  return out;
}

TEST(DoctorDaemon, OffloadsThatWorkAreNoFinding) {
  EXPECT_THAT(found({{"socket_merging_stopped", 0u},
                     {"socket_merged_damaged", 3u},
                     {"device_runs_refused", 0u}}),
              IsEmpty());
}

TEST(DoctorDaemon, DamagedRunsAndRefusedRunsAreNamedWithWhatHelps) {
  EXPECT_THAT(found({{"socket_merging_stopped", 1u}, {"socket_merged_damaged", 31u}}),
              ElementsAre(AllOf(HasSubstr("31 datagrams came damaged"), HasSubstr("ethtool"))));
  EXPECT_THAT(found({{"device_runs_refused", 2u}}),
              ElementsAre(HasSubstr("refuses several packets in one write")));
}

// What the doctor finds in a daemon's status, by judge(patient, report).
template <typename Judge>
std::vector<std::string> findings(const Config& config, Judge judge) {
  DoctorReport report;
  NetworkTable table;
  judge({config, nullptr, Machine(), table, {}}, report);
  std::vector<std::string> out;
  for (const Finding& f : report.findings()) out.push_back(f.what + "; " + f.remedy);
  return out;
}

TEST(DoctorDaemon, APeerThatIsRefusedIsNamedWithTheReason) {
  nlohmann::json peer{{"name", "hub"}, {"up", false}, {"refusal", ""}};
  nlohmann::json history;
  auto judged = [&] {
    return findings({}, [&](const Patient& patient, DoctorReport& report) {
      judgePeers(patient, {{"peers", nlohmann::json::array({peer})}}, history, report);
    });
  };
  for (const std::string& text : judged()) EXPECT_EQ(text.find("pre-shared"), std::string::npos);
  peer["refusal"] = "pre-shared key differs or is set on one side only";
  EXPECT_THAT(judged(), ElementsAre(AllOf(HasSubstr("hub is not up: pre-shared key differs"),
                                          HasSubstr("the same key into the files of 'psk'"))));
}

TEST(DoctorDaemon, RightsThatAreLeftAreTold) {
  const Config config;
  const NetworkTable table;
  auto told = [&](const nlohmann::json& gateway) {
    const RunningDaemon daemon{{{"gateway", gateway}}, {}, {}};
    DoctorReport report;
    checkDaemon({config, &daemon, Machine(), table, {}}, report);
    EXPECT_THAT(report.findings(), IsEmpty());
    return report.toText();
  };
  EXPECT_THAT(told({{"uptime_s", 1}, {"unconfined", nlohmann::json::array()}}),
              HasSubstr("the daemon is confined to what it needs"));
  EXPECT_THAT(told({{"uptime_s", 1}, {"unconfined", {"user: root's, there is no user 'braid'"}}}),
              HasSubstr("keeps more than it needs; user: root's, there is no user 'braid'"));
  EXPECT_EQ(told({{"uptime_s", 1}}).find("rights"), std::string::npos) << "an older daemon";
}

TEST(DoctorDaemon, StreamsThatAreNotTakenOverAreNamedWhileAPeerIsUp) {
  Config config;
  nlohmann::json streams{{"on", true}, {"intercepting", false}, {"ended_forbidden", 2u}};
  nlohmann::json history;
  bool isUp = false;
  auto judged = [&] {
    return findings(config, [&](const Patient& patient, DoctorReport& report) {
      judgeStreams(patient, {{"streams", streams}}, history, isUp, report);
    });
  };
  EXPECT_THAT(judged(), IsEmpty());
  isUp = true;
  config.peers.emplace_back().options.prefixes = {*Prefix::parse("10.99.0.2/32")};
  EXPECT_THAT(judged(), IsEmpty()) << "there is nobody behind the peer";
  config.peers[0].options.prefixes.push_back(*Prefix::parse("10.1.0.0/16"));
  EXPECT_THAT(judged(), ElementsAre(AllOf(HasSubstr("no connection is taken over"),
                                          HasSubstr("both gateways need the section 'streams'"))));
  streams["intercepting"] = true;
  EXPECT_THAT(judged(), IsEmpty());
  streams["ended_forbidden"] = 3u;
  EXPECT_THAT(judged(), ElementsAre(AllOf(HasSubstr("3 connections were refused as streams"),
                                          HasSubstr("streams.accept"))));
  history["formerly"]["ended_forbidden"] = 1u;
  EXPECT_THAT(judged(), IsEmpty()) << "an old one";
  streams["ended_forbidden"] = 4u;
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("3 connections were refused as streams")));
  streams["on"] = false;
  EXPECT_THAT(judged(), IsEmpty());
}

TEST(DoctorDaemon, APathOfSecondsIsNamedWithWhatHelps) {
  Config config;
  nlohmann::json path{{"uplink", "lte"},      {"path", "lte"},
                      {"state", "active"},    {"remote", "192.0.2.1:4433"},
                      {"min_rtt_ms", 1499.0}, {"mtu_bytes", 1500u}};
  auto judged = [&] {
    return findings(config, [&](const Patient& patient, DoctorReport& report) {
      judgePath(patient, "hub", path, report);
    });
  };
  EXPECT_THAT(judged(), IsEmpty());
  path["min_rtt_ms"] = 3900.0;
  EXPECT_THAT(judged(), ElementsAre(AllOf(HasSubstr("lte to hub at 192.0.2.1:4433: answers take "),
                                          HasSubstr("uplinks.rate-limit of lte"))));
}

TEST(DoctorDaemon, WhatOnePeerSendsToAnotherIsNamedWhereItIsDropped) {
  RunningDaemon daemon;
  daemon.status = {{"gateway", {{"uptime_s", 60.0}}}, {"drops", {{"between_peers", 9u}}}};
  Config config;
  auto judged = [&] {
    return findings(config, [&](Patient patient, DoctorReport& report) {
      patient.daemon = &daemon;
      checkDaemon(patient, report);
    });
  };
  EXPECT_THAT(judged(), IsEmpty());
  daemon.status["drops"]["between_peers"] = 10u;
  EXPECT_THAT(judged(), ElementsAre(AllOf(HasSubstr("10 packets from a peer to another one"),
                                          HasSubstr("'between-peers: on'"))));
  daemon.history["formerly"] = {{"between_peers", 1u}};
  EXPECT_THAT(judged(), IsEmpty()) << "an old one";
  daemon.status["drops"]["between_peers"] = 11u;
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("10 packets from a peer to another one")));
}

TEST(DoctorDaemon, ForeignSourcesAreNamedWhileTheyCome) {
  RunningDaemon daemon;
  daemon.status = {{"gateway", {{"uptime_s", 60.0}}}, {"drops", {{"foreign_source", 25u}}}};
  Config config;
  auto judged = [&] {
    return findings(config, [&](Patient patient, DoctorReport& report) {
      patient.daemon = &daemon;
      checkDaemon(patient, report);
    });
  };
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("25 packets of peers were dropped")));
  daemon.history["formerly"] = {{"foreign_source", 6u}};
  EXPECT_THAT(judged(), IsEmpty());
}

TEST(DoctorDaemon, AnOldFailureDoesNotExplainThatAPeerIsNotUp) {
  nlohmann::json status{{"peers", nlohmann::json::array({{{"name", "hub"}, {"up", false}}})},
                        {"host_traffic", {{"socket_received_packets", 9u}}},
                        {"host_drops", {{"socket_send_failed", 5u}}},
                        {"drops", {{"handshake_decrypt_failed", 2u}}}};
  nlohmann::json history;
  Config config;
  auto judged = [&] {
    return findings(config, [&](const Patient& patient, DoctorReport& report) {
      judgePeers(patient, status, history, report);
    });
  };
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("2 handshakes were for a gateway with another pin")));
  history["formerly"] = {{"handshake_decrypt_failed", 2u}, {"socket_send_failed", 4u}};
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("hub has not come, and no other peer is up")));
  config.peers.emplace_back().options.name = "hub";
  config.peers[0].options.endpoints = {*Endpoint::parse("192.0.2.1:4433")};
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("the kernel refuses to send to it")));
  history["formerly"]["socket_send_failed"] = 5u;
  EXPECT_THAT(judged(), ElementsAre(HasSubstr("and no handshake ended")));
}

}  // namespace
}  // namespace braid::doctor_daemon_test
