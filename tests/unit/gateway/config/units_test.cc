#include "gateway/config/units.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace braid::units_test {
namespace {

TEST(Units, Durations) {
  EXPECT_EQ(parseDuration("10s"), 10s);
  EXPECT_EQ(parseDuration("250ms"), 250ms);
  EXPECT_EQ(parseDuration("250 ms"), 250ms);
  EXPECT_EQ(parseDuration("1.5s"), 1500ms);
  EXPECT_EQ(parseDuration("7us"), 7us);
  EXPECT_EQ(parseDuration("3ns"), 3ns);
  EXPECT_EQ(parseDuration("2min"), 120s);
  EXPECT_EQ(parseDuration("1h"), 3600s);
  EXPECT_EQ(parseDuration("7d"), 24h * 7);
  EXPECT_EQ(parseDuration("0"), 0s);
  EXPECT_EQ(parseDuration("9223372036854775807ns"), Duration::max());
}

TEST(Units, ByteCounts) {
  EXPECT_EQ(parseByteCount("4MiB"), 4u << 20);
  EXPECT_EQ(parseByteCount("0.5KiB"), 512u);
  EXPECT_EQ(parseByteCount("1500B"), 1500u);
  EXPECT_EQ(parseByteCount("2kB"), 2000u);
  EXPECT_EQ(parseByteCount("2KB"), 2000u);
  EXPECT_EQ(parseByteCount("3MB"), 3'000'000u);
  EXPECT_EQ(parseByteCount("1GB"), 1'000'000'000u);
  EXPECT_EQ(parseByteCount("1GiB"), 1u << 30);
}

TEST(Units, WhatIsNoQuantity) {
  for (const char* text : {"",      "s",       "10",   "1",     "00",
                           "-1s",   "+1s",     "1e3s", " 1s",   "1s ",
                           "1  s",  "1.s",     ".5s",  "1..5s", "1.5.5s",
                           "1S",    "1 ",      "1sec", "0x1s",  "9223372036854775808ns",
                           "0.1ns", "106752d", "."}) {
    EXPECT_EQ(parseDuration(text), std::nullopt) << text;
  }
  for (const char* text : {"", "B", "10", "1.5B", "1mib", "1Mbit", "9999999999GiB",
                           "99999999999999999999999999999999999999999999B"}) {
    EXPECT_EQ(parseByteCount(text), std::nullopt) << text;
  }
}

TEST(Units, Numbers) {
  EXPECT_EQ(parseNumber("0"), 0u);
  EXPECT_EQ(parseNumber("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x10", "1.0", "18446744073709551616"}) {
    EXPECT_EQ(parseNumber(text), std::nullopt) << text;
  }
}

TEST(Units, TextIsShortAndExact) {
  EXPECT_EQ(durationText(0s), "0s");
  EXPECT_EQ(durationText(250ms), "250ms");
  EXPECT_EQ(durationText(90s), "90s");
  EXPECT_EQ(durationText(120s), "2min");
  EXPECT_EQ(byteCountText(0), "0B");
  EXPECT_EQ(byteCountText(64 << 10), "64KiB");
  EXPECT_EQ(byteCountText(1025), "1025B");
}

TEST(Units, TextIsReadBack) {
  constexpr uint64_t kSeed = 20;
  Random random(kSeed);
  for (int i = 0; i < 2000; ++i) {
    uint64_t value = random.next() >> (1 + random.below(63));
    Duration d(static_cast<Duration::rep>(value));
    EXPECT_EQ(parseDuration(durationText(d)), d) << "seed " << kSeed << " value " << value;
    EXPECT_EQ(parseByteCount(byteCountText(value)), value)
        << "seed " << kSeed << " value " << value;
  }
}

}  // namespace
}  // namespace braid::units_test
