// The keys for the use of uplinks: their meaning, and their errors.

#include "tests/unit/gateway/config/config_fixture.h"

namespace braid::config_preference_test {
namespace {

using testing::ElementsAre;
using Unit = MeterPeriod::Unit;

constexpr char kUplink[] = "{name: wifi, interface: wlan0}";

UplinkConfig uplink(const std::string& keys) {
  Config c = configOf(with(edgeText(), kUplink, "{name: wifi, interface: wlan0, " + keys + "}"));
  return c.uplinks.empty() ? UplinkConfig{} : c.uplinks[0];
}

void expectError(const std::string& keys, const std::string& error) {
  EXPECT_THAT(errorsOf(with(edgeText(), kUplink, "{interface: wlan0, " + keys + "}")),
              ElementsAre("e.yaml:6:" + error));
}

TEST(ConfigPreference, NothingByDefault) {
  UplinkConfig u = configOf(edgeText()).uplinks.at(0);
  EXPECT_EQ(u.preference, PathPreference{});
  EXPECT_EQ(u.peerCeiling, 0u);
  EXPECT_EQ(u.meter, std::nullopt);
  EXPECT_EQ(uplink("use: normal").preference, PathPreference{});
  EXPECT_EQ(configOf(edgeText()).state, "/var/lib/braid/e.state");
}

TEST(ConfigPreference, EveryKey) {
  EXPECT_EQ(uplink("use: backup").preference.use, PathUse::kBackup);
  EXPECT_EQ(uplink("use: metered").preference.use, PathUse::kMetered);
  EXPECT_EQ(uplink("use: metered").meter, std::nullopt) << "no cap";
  EXPECT_EQ(uplink("weight: 100").preference.weight, 100);
  UplinkConfig limited = uplink("rate-limit: {up: 5Mbit/s, down: 1.5Gbit/s}");
  EXPECT_EQ(limited.preference.ceiling, 625'000u);
  EXPECT_EQ(limited.peerCeiling, 187'500'000u);
  EXPECT_EQ(uplink("rate-limit: {down: 64kbit/s}").preference.ceiling, 0u);
  EXPECT_EQ(configOf(edgeText() + "state: /tmp/x.state\n").state, "/tmp/x.state");
  EXPECT_EQ(configOf(edgeText() + "tunnel: {scheduler: weighted}\n").tunnel.scheduler, "weighted");
}

TEST(ConfigPreference, Meters) {
  UplinkConfig u = uplink("metered: {cap: 10GB}");
  EXPECT_EQ(u.preference.use, PathUse::kMetered);
  EXPECT_EQ(u.meter->cap, 10'000'000'000u);
  EXPECT_EQ(u.meter->period, (MeterPeriod{Unit::kMonth, 1, 0}));
  EXPECT_EQ(
      uplink("metered: {cap: 1GiB, period: month, reset-day: 31, reset-hour: 23}").meter->period,
      (MeterPeriod{Unit::kMonth, 31, 23}));
  EXPECT_EQ(uplink("metered: {cap: 1GiB, period: week}").meter->period,
            (MeterPeriod{Unit::kWeek, 1, 0}));
  EXPECT_EQ(uplink("metered: {cap: 1GiB, period: week, reset-day: sunday}").meter->period,
            (MeterPeriod{Unit::kWeek, 0, 0}));
  EXPECT_EQ(uplink("metered: {cap: 1GiB, period: day, reset-hour: 4}").meter->period,
            (MeterPeriod{Unit::kDay, 1, 4}));
}

TEST(ConfigPreference, ACapHoldsWithEveryUse) {
  for (auto [name, use] : {std::pair{"normal", PathUse::kNormal},
                           {"metered", PathUse::kMetered},
                           {"backup", PathUse::kBackup}}) {
    UplinkConfig u = uplink(std::string("metered: {cap: 10GB}, use: ") + name);
    EXPECT_EQ(u.preference.use, use);
    EXPECT_EQ(u.meter->cap, 10'000'000'000u);
  }
}

TEST(ConfigPreference, Mistakes) {
  expectError("use: spare",
              "29: uplinks[0].use: 'spare' is not known; use one of: normal, metered, backup");
  expectError("weight: 0",
              "32: uplinks[0].weight: '0' is outside 1 to 100; use a number in that range");
  expectError("weight: 101",
              "32: uplinks[0].weight: '101' is outside 1 to 100; use a number in that range");
  expectError("rate-limit: 5Mbit/s",
              "36: uplinks[0].rate-limit: is a single value and must be a mapping; write 'key: "
              "value' lines; "
              "known here: up, down");
  expectError("rate-limit: {}",
              "36: uplinks[0].rate-limit: limits nothing; add up, down or both, such as {up: "
              "5Mbit/s, down: "
              "20Mbit/s}");
  expectError("rate-limit: {up: 5Mbps}",
              "41: uplinks[0].rate-limit.up: '5Mbps' is no rate; write a number and its unit: "
              "kbit/s, Mbit/s "
              "or Gbit/s, such as 20Mbit/s");
  expectError("rate-limit: {down: 63kbit/s}",
              "43: uplinks[0].rate-limit.down: '63kbit/s' is outside 64kbit/s to 100Gbit/s; use a "
              "rate in that "
              "range");
  expectError(
      "rate-limit: {down: 101Gbit/s}",
      "43: uplinks[0].rate-limit.down: '101Gbit/s' is outside 64kbit/s to 100Gbit/s; use a rate in "
      "that range");
}

TEST(ConfigPreference, MistakesOfMeters) {
  expectError("metered: true",
              "33: uplinks[0].metered: is a single value and must be a mapping; write 'key: value' "
              "lines; known "
              "here: cap, period, reset-day, reset-hour");
  expectError(
      "metered: {period: day}",
      "33: uplinks[0].metered.cap: is missing; add the bytes that a period allows, such as 10GB");
  expectError("metered: {cap: 10}",
              "39: uplinks[0].metered.cap: '10' is no size; write a number and its unit: B, kB, "
              "MB, GB, KiB, "
              "MiB or GiB, such as 4MiB");
  EXPECT_EQ(errorsOf(with(edgeText(), kUplink, "{interface: wlan0, metered: {cap: 9MB}}")).size(),
            1u);
  expectError("metered: {cap: 1GB, period: year}",
              "52: uplinks[0].metered.period: 'year' is not known; use one of: day, week, month");
  expectError(
      "metered: {cap: 1GB, reset-day: 32}",
      "55: uplinks[0].metered.reset-day: '32' is outside 1 to 31; use a number in that range");
  expectError(
      "metered: {cap: 1GB, period: week, reset-day: 1}",
      "69: uplinks[0].metered.reset-day: '1' is not known; use one of: sunday, monday, tuesday, "
      "wednesday, thursday, friday, saturday");
  expectError("metered: {cap: 1GB, period: day, reset-day: 1}",
              "68: uplinks[0].metered.reset-day: has no effect with period day; remove it, or set "
              "period: month "
              "or week");
  expectError(
      "metered: {cap: 1GB, reset-hour: 24}",
      "56: uplinks[0].metered.reset-hour: '24' is outside 0 to 23; use a number in that range");
  EXPECT_THAT(errorsOf(edgeText() + "state: here\n"),
              ElementsAre("e.yaml:12:8: state: is no complete path; write one such as "
                          "/var/lib/braid/edge.state"));
}

}  // namespace
}  // namespace braid::config_preference_test
