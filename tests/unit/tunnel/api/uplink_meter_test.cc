#include "tunnel/api/status.h"

#include <gtest/gtest.h>

#include "tunnel/peer/uplinks.h"

namespace braid::uplink_meter_test {
namespace {

constexpr uint64_t kReserve = UplinkMeter::kLeastReserve;
constexpr Time kStart = Time{} + 100s;

TEST(UplinkMeter, ClosesBeforeTheCapByItsReserve) {
  UplinkMeter meter(10'000'000, 0);
  EXPECT_FALSE(meter.add(1'000'000, kStart));
  EXPECT_EQ(meter.reserve(), kReserve + 2'000'000);
  EXPECT_FALSE(meter.add(1'000'000, kStart + 500ms));
  EXPECT_TRUE(meter.add(1'500'000, kStart + 999ms)) << "3.5 + 0.5 + 7 MB";
  EXPECT_TRUE(meter.closed());
}

TEST(UplinkMeter, TheBusierOfTwoSecondsCounts) {
  UplinkMeter meter(100'000'000, 0);
  meter.add(1'000'000, kStart);
  meter.add(1000, kStart + 1s);
  EXPECT_EQ(meter.reserve(), kReserve + 2'000'000);
  meter.add(1000, kStart + 2s);
  EXPECT_EQ(meter.reserve(), kReserve + 2000);
  meter.add(50'000, kStart + 2500ms);
  EXPECT_EQ(meter.reserve(), kReserve + 2 * 51'000);
  meter.add(1, kStart + 10s);
  EXPECT_EQ(meter.reserve(), kReserve + 2) << "a pause: nothing is under way";
}

TEST(UplinkMeter, SaysOnceThatItCloses) {
  UplinkMeter meter(10'000'000, 9'000'000);
  EXPECT_FALSE(meter.closed());
  EXPECT_TRUE(meter.add(500'000, kStart));
  EXPECT_FALSE(meter.add(100'000, kStart)) << "it counts on";
  EXPECT_EQ(meter.used(), 9'600'000u);
  EXPECT_FALSE(meter.add(1, kStart + 60s));
  EXPECT_TRUE(meter.closed()) << "also when there is less under way";
}

TEST(UplinkMeter, StartsClosedAtItsCap) {
  EXPECT_TRUE(UplinkMeter(10'000'000, 10'000'000 - kReserve).closed());
  EXPECT_TRUE(UplinkMeter(10'000'000, 11'000'000).closed());
  EXPECT_FALSE(UplinkMeter(10'000'000, 10'000'000 - kReserve - 1).closed());
}

TEST(UplinkMeter, ANewPeriodOrALargerCapOpensIt) {
  UplinkMeter meter(10'000'000, 10'000'000);
  meter.setCap(10'000'000);
  EXPECT_TRUE(meter.closed());
  meter.setCap(20'000'000);
  EXPECT_FALSE(meter.closed());
  meter.setCap(10'000'000);
  EXPECT_TRUE(meter.closed());
  meter.reset(0);
  EXPECT_FALSE(meter.closed());
  EXPECT_EQ(meter.used(), 0u);
}

// ---- accounts

UplinkSpec uplink(const char* name, SocketId socket, std::optional<UplinkSpec::Meter> meter = {}) {
  UplinkSpec spec;
  spec.name = name;
  spec.sockets = {{socket, Address::Family::kV4}};
  spec.meter = meter;
  return spec;
}

Route on(SocketId socket, const char* remote = "192.0.2.1:4433") {
  return {socket, {}, *Endpoint::parse(remote)};
}

TEST(UplinkMeters, CountWithHeadersBelow) {
  UplinkMeters accounts(1500);
  accounts.set({uplink("dsl", 1), uplink("lte", 2, {{20'000'000, 100}})});
  EXPECT_EQ(accounts.count(on(1), 1000, kStart), nullptr);
  accounts.count(on(2), 1000, kStart);
  accounts.count(on(2, "[2001:db8::1]:1"), 1000, kStart);
  accounts.count(on(3), 1000, kStart);
  EXPECT_EQ(accounts.find("lte")->meter->used(), 100u + 1028 + 1048);
  EXPECT_FALSE(accounts.find("dsl")->meter);
  EXPECT_EQ(accounts.find("x"), nullptr);
}

TEST(UplinkMeters, MetersGoOnAcrossAReloadWhateverItSays) {
  UplinkMeters accounts(1500);
  accounts.set({uplink("lte", 2, {{20'000'000, 0}})});
  accounts.count(on(2), 972, kStart);
  accounts.set({uplink("new", 7, {{30'000'000, 50}}), uplink("lte", 3, {{25'000'000, 0}})});
  accounts.count(on(2), 972, kStart);
  accounts.count(on(3), 972, kStart);
  EXPECT_EQ(accounts.find("lte")->meter->used(), 2000u) << "its socket is another one now";
  EXPECT_EQ(accounts.find("lte")->meter->cap(), 25'000'000u);
  EXPECT_EQ(accounts.find("new")->meter->used(), 50u);
  accounts.set({uplink("lte", 3)});
  EXPECT_FALSE(accounts.find("lte")->meter);
}

TEST(UplinkMeters, OneAtItsCapIsNotUsable) {
  UplinkMeters accounts(1500);
  accounts.set({uplink("lte", 2, {{10'000'000, 9'000'000}})});
  EXPECT_TRUE(accounts.all()[0].isUsable());
  const UplinkMeterEntry* closed = accounts.count(on(2), 500'000, kStart);
  ASSERT_NE(closed, nullptr);
  EXPECT_EQ(closed->spec.name, "lte");
  EXPECT_FALSE(accounts.all()[0].isUsable());
}

TEST(UplinkMeters, ACeilingStaysTheSameObject) {
  UplinkMeters accounts(1500);
  UplinkSpec spec = uplink("lte", 2);
  accounts.set({spec});
  EXPECT_EQ(accounts.all()[0].ceiling, nullptr);
  spec.preference.ceiling = 1000'000;
  accounts.set({spec});
  std::shared_ptr<Pacer> ceiling = accounts.all()[0].ceiling;
  EXPECT_EQ(ceiling->rate(), 1e6);
  spec.preference.ceiling = 2000'000;
  accounts.set({spec});
  EXPECT_EQ(accounts.all()[0].ceiling, ceiling) << "subflows hold it";
  EXPECT_EQ(ceiling->rate(), 2e6);
}

}  // namespace
}  // namespace braid::uplink_meter_test
