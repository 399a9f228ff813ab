#include "ctl/verbs/load_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::load_test_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json answer(uint64_t delivered, uint64_t packets, uint64_t lost, double srtt) {
  return {{"subflows",
           {{{"path", "wifi"},
             {"delivered_bytes", delivered},
             {"sent_bytes", delivered + 1000},
             {"sent_packets", packets},
             {"lost_packets", lost},
             {"srtt_ms", srtt},
             {"min_rtt_ms", 20.0}},
            {{"path", "lte"}, {"delivered_bytes", 7u}, {"sent_packets", 1u}},
            {{"path", "192.0.2.1:4433"}, {"delivered_bytes", 5u}}}}};
}

TEST(LoadTest, TakesTheSubflowsOfThePath) {
  EXPECT_EQ(loadSample(answer(100, 9, 1, 25), "wifi", {}, 0).delivered, 100u);
  EXPECT_EQ(loadSample(answer(100, 9, 1, 25), "192.0.2.1:4433", {}, 0).delivered, 5u);
  EXPECT_EQ(loadSample(answer(100, 9, 1, 25), "", {}, 0).delivered, 112u);
  EXPECT_EQ(loadSample(answer(100, 9, 1, 25), "", {"lte"}, 0).delivered, 105u)
      << "what is left out does not count";
}

TEST(LoadTest, ThroughputIsThatBehindTheStart) {
  std::vector<LoadSample> samples;
  for (int i = 0; i <= 10; ++i) {
    auto delivered = static_cast<uint64_t>(i < 3 ? i * 1000 : 3000 + (i - 3) * 100'000);
    samples.push_back(loadSample(
        answer(delivered, static_cast<uint64_t>(100 * i), static_cast<uint64_t>(i), 20 + 3 * i),
        "wifi", {}, i));
  }
  samples.push_back(loadSample(answer(703'000, 1000, 20, 22), "wifi", {}, 11));
  json result = loadResult(samples, 10);
  EXPECT_DOUBLE_EQ(result["bytes_per_s"].get<double>(), 100'000);
  EXPECT_DOUBLE_EQ(result["loss"].get<double>(), 0.02);
  EXPECT_DOUBLE_EQ(result["idle_rtt_ms"].get<double>(), 20);
  EXPECT_DOUBLE_EQ(result["loaded_rtt_ms"].get<double>(), 50);
  EXPECT_EQ(result["seconds"], 10);
  EXPECT_EQ(result["sent_bytes"], 703'000);
}

TEST(LoadTest, APathThatEndsMeanwhileHasTheRateUntilThen) {
  std::vector<LoadSample> samples;
  for (unsigned i = 0; i <= 10; ++i)
    samples.push_back({.at = 1.0 * i,
                       .open = 1,
                       .delivered = 100'000u * i,
                       .sentBytes = 110'000u * i,
                       .sentPackets = 100u * i});
  for (const LoadSample& after :
       {LoadSample{},
        LoadSample{.delivered = 1'000'000u, .sentBytes = 1'200'000u, .sentPackets = 1100u}}) {
    std::vector<LoadSample> all = samples;
    for (unsigned i = 11; i <= 20; ++i) {
      all.push_back(after);
      all.back().at = i;
    }
    json result = loadResult(all, 19);
    EXPECT_DOUBLE_EQ(result["bytes_per_s"].get<double>(), 100'000);
    EXPECT_EQ(result["sent_bytes"], 1'100'000);
    EXPECT_EQ(result["seconds"], 10);
  }
}

TEST(LoadTest, WhatIsNotKnownIsNull) {
  EXPECT_TRUE(loadResult({}, 0)["bytes_per_s"].is_null());
  std::vector<LoadSample> gone{loadSample(answer(100, 9, 1, 25), "wifi", {}, 0),
                               LoadSample{.at = 1}, LoadSample{.at = 2}};
  json result = loadResult(gone, 1);
  EXPECT_TRUE(result["bytes_per_s"].is_null());
  EXPECT_TRUE(result["loss"].is_null());
}

TEST(LoadTest, IsShownAsATable) {
  json result{
      {"peer", "hub"},
      {"runs", {{{"path", "wifi"}, {"bytes_per_s", 1.25e6}, {"loss", 0.01}}, {{"path", nullptr}}}}};
  std::string text = loadText(result);
  EXPECT_THAT(text, HasSubstr("wifi  10.0 Mbit/s  1.00 %"));
  EXPECT_THAT(text, HasSubstr("all "));
}

TEST(LoadTest, APathWithoutAnswerIsNoPathOfNoThroughput) {
  json result{{"peer", "hub"},
              {"runs",
               {{{"path", "lte"}, {"state", "failed"}, {"bytes_per_s", nullptr}},
                {{"path", "dsl"}, {"state", "validating"}, {"bytes_per_s", nullptr}},
                {{"path", "sat"}, {"bytes_per_s", 0.0}, {"loss", 1.0}, {"sent_bytes", 90'000}}}}};
  EXPECT_EQ(loadText(result),
            "to hub, through the tunnel, in the direction from here to there:\n"
            "PATH  THROUGHPUT  LOSS  RTT IDLE  RTT LOADED  SENT\n"
            "lte         down     -         -           -     -\n"
            "dsl   validating     -         -           -     -\n"
            "sat    no answer     -         -           -     -\n");
}

TEST(LoadTest, TheBarFills) {
  EXPECT_THAT(progressBar("wifi", 0, 0), HasSubstr("[" + std::string(30, ' ') + "]"));
  EXPECT_THAT(progressBar("wifi", 0.5, 1e6),
              HasSubstr(std::string(15, '#') + std::string(15, ' ')));
  EXPECT_THAT(progressBar("wifi", 7, 1e6),
              HasSubstr("[" + std::string(30, '#') + "] wifi  8.00 Mbit/s"));
}

}  // namespace
}  // namespace braid::load_test_test
