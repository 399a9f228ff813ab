#include "linkemu/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace braid::config_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

json wifi() {
  return json::parse(
      R"({"name":"wifi","a":{"netns":"edge","device":"wifi0"},"b":{"netns":"conc","device":"wifi0"}})");
}

std::string text(json link) {
  return json{{"links", {std::move(link)}}}.dump();
}

/// The message of the ConfigError that parsing gives; empty when it gives none.
std::string problem(const std::string& config) {
  try {
    parseConfig(config);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

std::string problemOf(const char* params) {
  LinkOptions before{.rateBitsPerSecond = 5e6, .delay = 3ms};
  LinkOptions options = before;
  try {
    applyParams(json::parse(params), options, "link wifi, ab");
  } catch (const ConfigError& e) {
    EXPECT_EQ(options, before) << "changed by " << params;
    return e.what();
  }
  return "";
}

TEST(Config, ReadsEverything) {
  EmulatorConfig config = parseConfig(R"({
    "seed": 7, "realtime": false, "control": "/run/emu.sock",
    "links": [{"name": "wifi", "device_mtu": 1400,
               "a": {"netns": "edge", "device": "wifi0"}, "b": {"device": "wifi1"},
               "ab": {"rate_mbit": 20.5, "delay_ms": 12.5, "jitter_ms": 3, "queue_bytes": 100000,
                      "ecn_threshold_bytes": 30000, "loss": 0.01,
                      "ge": {"good_to_bad": 0.1, "bad_to_good": 0.2, "loss_good": 0.3, "loss_bad": 0.4},
                      "drop": [3, 1], "mtu": 1300, "duplicate": 0.5, "corrupt": 0.25, "reorder": 0.125,
                      "reorder_delay_ms": 0.001, "policer": {"rate_mbit": 4, "burst_bytes": 32000}, "down": true, "ecn_fault": "bleach", "trace": [[1.5, 10], [0.5, 0]]}}]})");
  EXPECT_EQ(config.seed, 7u);
  EXPECT_FALSE(config.realtime);
  EXPECT_EQ(config.control, "/run/emu.sock");
  ASSERT_EQ(config.links.size(), 1u);
  const LinkConfig& link = config.links[0];
  EXPECT_EQ(link.name, "wifi");
  EXPECT_EQ(link.a.netns, "edge");
  EXPECT_EQ(link.a.device, "wifi0");
  EXPECT_EQ(link.b.netns, "");
  EXPECT_EQ(link.b.device, "wifi1");
  EXPECT_EQ(link.deviceMtu, 1400u);
  LinkOptions expected{.rateBitsPerSecond = 20.5e6,
                       .trace = {{1500ms, 10e6}, {500ms, 0}},
                       .delay = 12500us,
                       .jitter = 3ms,
                       .queueBytes = 100000,
                       .ecnThresholdBytes = 30000,
                       .ecnFault = EcnFault::kBleach,
                       .loss = 0.01,
                       .bursts = {0.1, 0.2, 0.3, 0.4},
                       .dropPackets = {3, 1},
                       .mtu = 1300,
                       .policer = {4e6, 32000},
                       .duplicate = 0.5,
                       .corrupt = 0.25,
                       .reorder = 0.125,
                       .reorderDelay = 1us,
                       .down = true};
  EXPECT_EQ(link.ab, expected);
  EXPECT_EQ(link.ba, LinkOptions{});
}

TEST(Config, Defaults) {
  EmulatorConfig config = parseConfig(text(wifi()));
  EXPECT_EQ(config.seed, 1u);
  EXPECT_TRUE(config.realtime);
  EXPECT_EQ(config.control, "");
  EXPECT_EQ(config.links[0].deviceMtu, 1500u);
  EXPECT_EQ(config.links[0].ab, LinkOptions{});
}

TEST(Config, WholeDocumentProblems) {
  EXPECT_THAT(problem("{"), HasSubstr("not JSON"));
  EXPECT_THAT(problem("[]"), HasSubstr("object"));
  EXPECT_THAT(problem("{}"), HasSubstr("at least one link"));
  EXPECT_THAT(problem(R"({"links":[]})"), HasSubstr("at least one link"));
  EXPECT_THAT(problem(R"({"links":{}})"), AllOf(HasSubstr("links"), HasSubstr("array")));
  EXPECT_THAT(problem(R"({"link":[]})"), HasSubstr("\"link\""));
  EXPECT_THAT(problem(R"({"seed":-1,"links":[]})"), HasSubstr("seed"));
  EXPECT_THAT(problem(R"({"seed":1.5,"links":[]})"), HasSubstr("seed"));
  EXPECT_THAT(problem(R"({"control":5,"links":[]})"), HasSubstr("control"));
  EXPECT_THAT(problem(R"({"realtime":1,"links":[]})"), HasSubstr("realtime"));
  json config = {{"links", {wifi()}}, {"control", std::string(108, 'x')}};
  EXPECT_THAT(problem(config.dump()), HasSubstr("control"));
  config["control"] = std::string(107, 'x');
  EXPECT_EQ(problem(config.dump()), "");
}

TEST(Config, ASeedHas64Bits) {
  std::string rest = R"(,"links":[{"name":"l","a":{"device":"a"},"b":{"device":"b"}}]})";
  EXPECT_EQ(parseConfig(R"({"seed":18446744073709551615)" + rest).seed, UINT64_MAX);
  EXPECT_THAT(problem(R"({"seed":18446744073709551616)" + rest), HasSubstr("must be an integer"));
}

TEST(Config, LinkProblemsNameLinkAndKey) {
  auto changed = [](auto change) {
    json link = wifi();
    change(link);
    return problem(text(link));
  };
  EXPECT_THAT(changed([](json& l) { l.erase("name"); }),
              AllOf(HasSubstr("link 1"), HasSubstr("name")));
  EXPECT_THAT(changed([](json& l) { l["name"] = 5; }),
              AllOf(HasSubstr("link 1"), HasSubstr("string")));
  EXPECT_THAT(changed([](json& l) { l["name"] = ""; }),
              AllOf(HasSubstr("link 1"), HasSubstr("name")));
  EXPECT_THAT(changed([](json& l) { l.erase("a"); }),
              AllOf(HasSubstr("link wifi"), HasSubstr("\"a\"")));
  EXPECT_THAT(changed([](json& l) { l.erase("b"); }),
              AllOf(HasSubstr("link wifi"), HasSubstr("\"b\"")));
  EXPECT_THAT(changed([](json& l) { l["speed"] = 1; }),
              AllOf(HasSubstr("link wifi"), HasSubstr("\"speed\"")));
  EXPECT_THAT(changed([](json& l) { l["a"]["ip"] = 1; }),
              AllOf(HasSubstr("link wifi, a"), HasSubstr("\"ip\"")));
  EXPECT_THAT(changed([](json& l) { l["a"]["netns"] = "../x"; }), HasSubstr("link wifi, a: netns"));
  EXPECT_THAT(changed([](json& l) { l["a"]["netns"] = ".."; }), HasSubstr("link wifi, a: netns"));
  EXPECT_THAT(changed([](json& l) { l["b"]["device"] = "sixteen-chars-ab"; }),
              HasSubstr("link wifi, b: device"));
  EXPECT_THAT(changed([](json& l) { l["b"]["device"] = "tun%d"; }),
              HasSubstr("link wifi, b: device"));
  EXPECT_THAT(changed([](json& l) { l["b"] = 5; }),
              AllOf(HasSubstr("link wifi, b"), HasSubstr("object")));
  EXPECT_THAT(changed([](json& l) { l["device_mtu"] = 67; }), HasSubstr("link wifi, device_mtu"));
  EXPECT_THAT(changed([](json& l) { l["device_mtu"] = 9217; }), HasSubstr("link wifi, device_mtu"));
  EXPECT_THAT(changed([](json& l) { l["ba"]["loss"] = 2; }), HasSubstr("link wifi, ba, loss"));
  EXPECT_THAT(changed([](json& l) { l["b"] = l["a"]; }),
              AllOf(HasSubstr("link wifi"), HasSubstr("used twice")));
}

TEST(Config, NamesAndDevicesAreUnique) {
  json other = wifi();
  json config = {{"links", {wifi(), other}}};
  EXPECT_THAT(problem(config.dump()), HasSubstr("link wifi: name is used twice"));
  config["links"][1]["name"] = "lte";
  EXPECT_THAT(problem(config.dump()),
              AllOf(HasSubstr("link lte"), HasSubstr("\"wifi0\" is used twice")));
  config["links"][1]["a"]["device"] = config["links"][1]["b"]["device"] = "lte0";
  EXPECT_EQ(problem(config.dump()), "");
}

TEST(Params, ChangeOnlyWhatTheyName) {
  LinkOptions options{.rateBitsPerSecond = 5e6, .delay = 3ms, .bursts = {.goodToBad = 0.1}};
  LinkOptions expected = options;
  expected.loss = 0.5;
  expected.bursts.badToGood = 0.25;
  applyParams(json::parse(R"({"loss":0.5,"ge":{"bad_to_good":0.25}})"), options, "x");
  EXPECT_EQ(options, expected);
  expected.policer.bitsPerSecond = 2e6;  // the burst stays at 64 KiB
  applyParams(json::parse(R"({"policer":{"rate_mbit":2}})"), options, "x");
  EXPECT_EQ(options, expected);
  applyParams(json::object(), options, "x");
  EXPECT_EQ(options, expected);
}

TEST(Params, ListsReplaceAndEmptyOnesTurnOff) {
  LinkOptions options{.trace = {{1s, 1e6}}, .dropPackets = {1, 2}};
  applyParams(json::parse(R"({"drop":[9]})"), options, "x");
  EXPECT_THAT(options.dropPackets, ElementsAre(9));
  applyParams(json::parse(R"({"drop":[],"trace":[]})"), options, "x");
  EXPECT_EQ(options, LinkOptions{});
}

TEST(Params, RangesIncludeTheirEnds) {
  for (const char* good :
       {R"({"rate_mbit":0})", R"({"rate_mbit":0.001})", R"({"rate_mbit":100000})",
        R"({"delay_ms":0})", R"({"delay_ms":60000})", R"({"loss":0})", R"({"loss":1})",
        R"({"loss":1.0})", R"({"queue_bytes":1073741824})", R"({"queue_bytes":3e4})",
        R"({"mtu":65535})", R"({"drop":[1]})", R"({"trace":[[0.000001,0.001]]})"}) {
    EXPECT_EQ(problemOf(good), "") << good;
  }
}

TEST(Params, ProblemsNameTheKey) {
  for (const char* key :
       {"rate_mbit", "delay_ms", "jitter_ms", "queue_bytes", "ecn_threshold_bytes", "loss", "mtu",
        "duplicate", "corrupt", "reorder", "reorder_delay_ms"}) {
    for (const char* value : {"-1", "\"1\"", "null", "true", "1e300", "[]", "{}", "-0.5"}) {
      std::string params = std::string("{\"") + key + "\":" + value + "}";
      EXPECT_THAT(problemOf(params.c_str()), HasSubstr(std::string("link wifi, ab, ") + key))
          << params;
    }
  }
  for (const char* bad : {R"({"rate_mbit":0.0009})",
                          R"({"rate_mbit":100001})",
                          R"({"delay_ms":60001})",
                          R"({"loss":1.001})",
                          R"({"queue_bytes":1.5})",
                          R"({"queue_bytes":1073741825})",
                          R"({"mtu":65536})",
                          R"({"down":1})",
                          R"({"ecn_fault":"clear"})",
                          R"({"ecn_fault":1})",
                          R"({"drop":5})",
                          R"({"drop":[0]})",
                          R"({"drop":[1.5]})",
                          R"({"drop":["1"]})",
                          R"({"ge":5})",
                          R"({"ge":{"good_to_bad":2}})",
                          R"({"ge":{"good":0}})",
                          R"({"policer":5})",
                          R"({"policer":{"rate_mbit":-1}})",
                          R"({"policer":{"burst_bytes":0}})",
                          R"({"policer":{"rate":1}})",
                          R"({"trace":5})",
                          R"({"trace":[[1]]})",
                          R"({"trace":[[1,2,3]]})",
                          R"({"trace":[[0,1]]})",
                          R"({"trace":[[1,-1]]})",
                          R"({"trace":[[1,0]]})",
                          R"({"trace":[["1",1]]})",
                          R"({"delay":1})"}) {
    std::string key(json::parse(bad).begin().key());
    EXPECT_THAT(problemOf(bad), AllOf(HasSubstr("link wifi, ab"), HasSubstr(key))) << bad;
  }
  EXPECT_THAT(problemOf("[]"), HasSubstr("link wifi, ab: must be an object"));
  EXPECT_THAT(problemOf(R"({"drop":[1,2,0]})"), HasSubstr("drop"));
  EXPECT_THAT(problemOf(R"({"ge":{"loss_bad":7}})"), HasSubstr("ge, loss_bad"));
}

TEST(Params, NothingChangesWhenOneIsBad) {
  EXPECT_NE(problemOf(R"({"delay_ms":9,"loss":0.5,"mtu":-1})"), "");  // problemOf() compares
}

}  // namespace
}  // namespace braid::config_test
