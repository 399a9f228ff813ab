#include "web/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/unit/web/fake_daemon.h"
#include "tunnel/api/status.h"

namespace braid::metrics_test {
namespace {

using testing::HasSubstr;

DaemonAnswer example() {
  FakeGateway gateway;
  DaemonAnswer out;
  out.value = statusJson(gateway.gatewayStatus(), gateway.whole());
  return out;
}

TEST(MetricsTest, NamesFollowTheTablesAndTheConventions) {
  EXPECT_EQ(metricName("path", infoOf<&SubflowStatus::srtt>()), "braid_path_srtt_seconds");
  EXPECT_EQ(metricName("path", infoOf<&SubflowStatus::pacingRate>()),
            "braid_path_pacing_bytes_per_second");
  EXPECT_EQ(metricName("path", infoOf<&SendCounts::sentBytes>()), "braid_path_sent_bytes_total");
  EXPECT_EQ(metricName("peer", infoOf<&SessionStatus::age>()), "braid_peer_age_seconds");
  EXPECT_EQ(metricName("peer", infoOf<&SessionStatus::flowCount>()), "braid_peer_flows");
  EXPECT_EQ(metricName("uplink_meter", infoOf<&MeterPeriodStatus::until>()),
            "braid_uplink_meter_until_timestamp_seconds");
}

TEST(MetricsTest, FiguresComeInUnitsWithoutPrefixAndWithTheirLabels) {
  std::string text = metricsText(example());
  EXPECT_THAT(text,
              HasSubstr("\nbraid_path_srtt_seconds{peer=\"hub\",path=\"wifi\",id=\"0\"} 0.012\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "\nbraid_path_pacing_bytes_per_second{peer=\"hub\",path=\"wifi\",id=\"0\"} 1250000\n"));
  EXPECT_THAT(
      text, testing::Not(HasSubstr("braid_path_pacing_bytes_per_second{peer=\"hub\",path=\"lte\"")))
      << "it has no limit";
  EXPECT_THAT(text, HasSubstr("\nbraid_peer_up{peer=\"hub\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nbraid_peer_age_seconds{peer=\"hub\"} 90\n"));
  EXPECT_THAT(text, HasSubstr("\nbraid_drops_total{cause=\"replay\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("braid_build_info{version=\"1.2.3\",mode=\"\"} 1\n"));
  EXPECT_TRUE(text.starts_with("# HELP braid_up ")) << text.substr(0, 100);
}

TEST(MetricsTest, UplinksTellWhatTheyCarriedAndHowMuchOfTheDayTheyWorked) {
  FakeGateway gateway;
  GatewayStatus status = gateway.gatewayStatus();
  DaemonAnswer out;
  out.value = statusJson(status, gateway.whole());
  EXPECT_THAT(metricsText(out), testing::Not(HasSubstr("braid_uplink_carried"))) << "not known";
  EXPECT_THAT(metricsText(out), testing::Not(HasSubstr("braid_uplink_availability")));
  status.uplinks[0].carried = {12'000'000'000, 13'000'000'000, 14'000'000'000};
  status.uplinks[0].availability = 0.75;
  out.value = statusJson(status, gateway.whole());
  const std::string text = metricsText(out);
  for (const char* line :
       {"today_bytes{uplink=\"wifi\"} 12000000000\n", "month_bytes{uplink=\"wifi\"} 13000000000\n",
        "bytes_total{uplink=\"wifi\"} 14000000000\n"})
    EXPECT_THAT(text, HasSubstr(std::string("\nbraid_uplink_carried_") + line));
  EXPECT_THAT(text, HasSubstr("\nbraid_uplink_availability{uplink=\"wifi\"} 0.75\n"));
}

// Checks the format: each family occurs once, with its help and type before its samples; no sample
// occurs twice; all names are allowed.
TEST(MetricsTest, EveryLineIsWellFormedAndNothingIsThereTwice) {
  std::istringstream lines(metricsText(example()));
  std::regex sample(
      R"(([a-z][a-z0-9_]*)(\{[a-z]+="(\\.|[^"\\])*"(,[a-z]+="(\\.|[^"\\])*")*\})? (-?[0-9.e+-]+))");
  std::set<std::string> families, samples;
  std::string family;
  bool isCounter = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << line;
      EXPECT_GT(line.size(), family.size() + 9) << "no help: " << line;
    } else if (line.starts_with("# TYPE ")) {
      EXPECT_EQ(line.find("# TYPE " + family + " "), 0u) << line;
      isCounter = line.ends_with(" counter");
      EXPECT_EQ(isCounter, family.ends_with("_total")) << line;
    } else {
      std::smatch parts;
      ASSERT_TRUE(std::regex_match(line, parts, sample)) << line;
      EXPECT_EQ(parts[1], family) << line;
      EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << line;
    }
  }
  EXPECT_GT(families.size(), 100u);
}

TEST(MetricsTest, NamesFromOutsideCannotLeaveTheirLabel) {
  FakeGateway gateway;
  gateway.names = {"a\"} 1\nbraid_up 0\\"};
  DaemonAnswer status;
  status.value = statusJson(gateway.gatewayStatus(), gateway.whole());
  EXPECT_THAT(metricsText(status),
              HasSubstr("\nbraid_peer_up{peer=\"a\\\"} 1\\nbraid_up 0\\\\\"} 1\n"));
}

TEST(MetricsTest, WithoutADaemonTheyTellThatItIsAway) {
  DaemonAnswer status;
  status.problem = "no daemon answers";
  std::string text = metricsText(status);
  EXPECT_TRUE(text.ends_with("\nbraid_up 0\n")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_TRUE(metricsText({}).ends_with("\nbraid_up 0\n"));
}

TEST(MetricsTest, AnyAnswerIsTaken) {
  DaemonAnswer status;
  status.value = nlohmann::json::parse(
      R"({"peers":[3,{"subflows":{"a":1}},{"name":5,"subflows":[null,{"id":[]}]}],
    "gateway":7,"drops":[],"ack_shim":{"actuators":[1]}})");
  EXPECT_THAT(metricsText(status), HasSubstr("braid_up 1\n"));
}

}  // namespace
}  // namespace braid::metrics_test
