// User preferences for uplinks: backups, metered uplinks with a cap, ceilings, weights.

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace braid::sim::preference_test {
namespace {

const LinkOptions kDsl{.rateBitsPerSecond = 20_Mbit, .delay = 10ms};
const LinkOptions kLte{.rateBitsPerSecond = 20_Mbit, .delay = 30ms};
constexpr Duration kLteRtt = 60ms;
/// Traffic that the backup could carry alone (failover_test.cc).
const TcpOptions kModest{.window = 64 << 10};
/// A window larger than both paths hold. It is only slightly larger, because the sender has no SACK
/// and would otherwise spend its time on repairing the losses of slow start.
const TcpOptions kSteady{.window = 512 << 10};

UplinkSpec& uplink(Scenario& s, const std::string& name) {
  for (UplinkSpec& u : s.edge.uplinks) {
    if (u.name == name) return u;
  }
  throw std::invalid_argument(name);
}

/// Bytes offered to a path, both directions together.
uint64_t bytesOn(Scenario& s, std::string_view path) {
  Path& p = s.world.path(path);
  return p.upStats(s.world.now()).in.bytes + p.downStats(s.world.now()).in.bytes;
}

struct Variant {
  uint64_t seed;
  std::string scheduler;
  TunnelOptions options() const {
    TunnelOptions o;
    o.scheduler = scheduler;
    return o;
  }
};

class Preference : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(Variants, Preference,
                         testing::Values(Variant{1, "earliest"}, Variant{2, "earliest"},
                                         Variant{3, "minrtt"}),
                         [](const auto& v) {
                           return v.param.scheduler + std::to_string(v.param.seed);
                         });

/// Tests that set the scheduler themselves.
class Weights : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Weights, testing::Values(1, 2));

struct BackupScenario : Scenario {
  explicit BackupScenario(const Variant& v) : Scenario(v.seed, v.options()) {
    path("dsl", kDsl).path("lte", kLte);
    uplink(*this, "lte").preference.use = PathUse::kBackup;
    start().run(2s);
  }
};

TEST_P(Preference, ABackupIsNotUsedWhileTheOtherIsSaturatedBothWays) {
  BackupScenario s(GetParam());
  uint64_t before = bytesOn(s, "lte");
  TcpFlow& down = s.download(20_MB);
  TcpFlow& up = s.upload(20_MB);
  ASSERT_TRUE(s.finish(down, 30s));
  ASSERT_TRUE(s.finish(up, 30s));
  EXPECT_LE(bytesOn(s, "lte") - before, 3000u)
      << "keepalives of ten seconds and more" << s.report();
}

TEST_P(Preference, ARestingPathDoesNotSayWhatIsTooLarge) {
  BackupScenario s(GetParam());
  // 1280 bytes plus the tunnel's headers do not fit
  s.change("dsl", [](LinkOptions& l) { l.mtu = 1300; });
  TcpFlow& up = s.upload(1_MB);
  TcpFlow& down = s.download(1_MB);
  ASSERT_TRUE(s.finish(up, 30s)) << s.report();
  ASSERT_TRUE(s.finish(down, 30s)) << s.report();
  EXPECT_LT(s.edge.status().peers[0].innerMtu, 1280u);
}

TEST_P(Preference, ABackupTakesOverASilentDeathAsFastAsAnyPath) {
  for (bool down : {false, true}) {
    BackupScenario s(GetParam());
    TcpFlow& file = down ? s.download(4_MB, kModest) : s.upload(4_MB, kModest);
    s.run(700ms + GetParam().seed * 7ms);
    file.restartStall();
    s.cut("dsl");
    ASSERT_TRUE(s.finish(file, 20s));
    EXPECT_LE(file.longestStall(), 3 * kLteRtt + 100ms) << file.describe() << s.report();
  }
}

TEST_P(Preference, ABackupTakesOverAnUnpluggedCable) {
  BackupScenario s(GetParam());
  TcpFlow& file = s.upload(4_MB, kModest);
  s.run(700ms + GetParam().seed * 7ms);
  file.restartStall();
  s.unplug("dsl");
  ASSERT_TRUE(s.finish(file, 20s));
  EXPECT_LE(file.longestStall(), 110ms) << file.describe() << s.report();
}

TEST_P(Preference, ABackupRestsAgainWhenTheOtherIsBack) {
  BackupScenario s(GetParam());
  s.unplug("dsl").run(1s);
  TcpFlow& file = s.download(2_MB);
  ASSERT_TRUE(s.finish(file, 20s));
  s.plug("dsl").run(3s);
  uint64_t before = bytesOn(s, "lte");
  TcpFlow& next = s.download(10_MB);
  ASSERT_TRUE(s.finish(next, 20s));
  EXPECT_LE(bytesOn(s, "lte") - before, 3000u) << s.report();
}

// ---- metered

struct MeteredScenario : Scenario {
  explicit MeteredScenario(const Variant& v, uint64_t cap = 1'000'000'000, uint64_t used = 0,
                           LinkOptions lte = kLte)
      : Scenario(v.seed, v.options()) {
    path("dsl", kDsl).path("lte", lte);
    uplink(*this, "lte").preference.use = PathUse::kMetered;
    uplink(*this, "lte").meter = {cap, used};
    start().run(2s);
  }
  MeterStatus meter() const { return edge.status().meters.at(0); }
  /// The bytes that a provider bills: those it got from the edge and those it delivered.
  uint64_t billed() {
    Path& lte = world.path("lte");
    return lte.upStats(world.now()).in.bytes + lte.downStats(world.now()).delivered.bytes;
  }
};

TEST_P(Preference, AMeteredUplinkCarriesNothingOfALightLoad) {
  MeteredScenario s(GetParam());
  uint64_t before = bytesOn(s, "lte");
  s.call({.payload = 1000, .interval = 5ms, .count = 4000});  // 1.6 of 20 Mbit/s
  for (int page = 0; page < 10; ++page) {
    TcpFlow& small = s.download(15_KB);
    s.run(500ms);
    TcpFlow& large = s.download(500_KB);
    s.run(1500ms);
    EXPECT_TRUE(small.done() && large.done());
  }
  EXPECT_LE(bytesOn(s, "lte") - before, 3000u) << "keepalives" << s.report();
}

TEST_P(Preference, AMeteredUplinkJoinsASaturatingLoadAndLeavesAfterIt) {
  MeteredScenario s(GetParam());
  TcpFlow& file = s.download(1000_MB, kSteady);
  uint64_t before = bytesOn(s, "lte");
  s.run(900ms);
  EXPECT_LE(bytesOn(s, "lte") - before, 3000u) << "not before a second of waiting" << s.report();
  s.run(9s);
  uint64_t received = file.received();
  s.run(10s);
  double rate = static_cast<double>(file.received() - received) * 8 / 10;
  EXPECT_GE(rate, 0.85 * 40e6) << "of both" << s.report();
  EXPECT_FALSE(s.subflow(s.hub, "lte")->resting);
  EXPECT_TRUE(s.subflow(s.edge, "lte")->resting) << "only the hub has so much to send";
}

TEST_P(Preference, WhatTheNormalUplinkCanCarryStaysThere) {
  MeteredScenario s(GetParam());
  TcpFlow& file = s.download(20_MB);
  ASSERT_TRUE(s.finish(file, 30s));
  s.run(6s);
  EXPECT_TRUE(s.subflow(s.hub, "lte")->resting);
  uint64_t before = bytesOn(s, "lte");
  UdpFlow& stream =
      s.call({.payload = 1250, .interval = 1ms, .count = 10'000}, true);  // 10 of 20 Mbit/s
  s.run(12s);
  EXPECT_EQ(stream.received(), stream.sent());
  EXPECT_LE(bytesOn(s, "lte") - before, 3000u) << s.report();
}

TEST_P(Preference, AMeteredUplinkTakesOverASilentDeath) {
  MeteredScenario s(GetParam());
  TcpFlow& file = s.download(4_MB, kModest);
  s.run(700ms + GetParam().seed * 7ms);
  file.restartStall();
  s.cut("dsl");
  ASSERT_TRUE(s.finish(file, 20s));
  EXPECT_LE(file.longestStall(), 3 * kLteRtt + 100ms) << file.describe() << s.report();
}

TEST_P(Preference, ACapIsNeverExceeded) {
  for (double loss : {0.0, 0.05}) {
    for (bool alone : {false, true}) {
      LinkOptions lte = kLte;
      lte.loss = loss;
      MeteredScenario s(GetParam(), 30'000'000, 0, lte);
      if (alone) s.unplug("dsl");
      TcpFlow& down = s.download(1000_MB, kSteady);
      TcpFlow& up = s.upload(1000_MB, kSteady);
      s.run(20s);
      EXPECT_TRUE(s.meter().closed) << s.report();
      EXPECT_EQ(s.edge.countEvents(Event::Kind::kCapReached), 1u);
      EXPECT_EQ(s.meter().used, s.billed());
      EXPECT_LE(s.billed(), 30'000'000u) << "loss " << loss << ", alone " << alone;
      // The reserve of the cap: two seconds at 20 Mbit/s in both directions.
      EXPECT_GE(s.billed(), 30'000'000u - UplinkMeter::kLeastReserve - 2 * 5'000'000u)
          << "loss " << loss << ", alone " << alone;
      uint64_t used = s.billed();
      uint64_t received = down.received() + up.received();
      s.run(alone ? 200s : 10s);
      EXPECT_LE(s.billed() - used, alone ? UplinkMeter::kLeastReserve : 1000)
          << "nobody sends there";
      EXPECT_LE(s.billed(), 30'000'000u);
      EXPECT_EQ(down.received() + up.received() > received + 20'000'000, !alone) << s.report();
    }
  }
}

TEST_P(Preference, AtItsCapAnUplinkIsDownEvenWhenItIsTheLast) {
  MeteredScenario s(GetParam(), 10'000'000, 9'900'000);
  EXPECT_TRUE(s.meter().closed);
  EXPECT_TRUE(s.isUp());
  EXPECT_EQ(s.billed(), 0u);
  s.unplug("dsl").run(5s);
  EXPECT_FALSE(s.edge.status().peers[0].up);
  EXPECT_EQ(s.billed(), 0u);
}

TEST_P(Preference, ANewPeriodOpensItAgain) {
  MeteredScenario s(GetParam(), 30'000'000, 29'900'000);
  s.unplug("dsl").run(10s);
  EXPECT_FALSE(s.isUp());
  s.edge.tunnel().resetMeter("lte", 0, s.edge.clock());
  s.edge.setUplink("lte", true);  // makes the node poll its core
  ASSERT_TRUE(s.world.runUntil([&] { return s.isUp(); }, 10s)) << s.report();
  TcpFlow& file = s.download(1_MB);
  ASSERT_TRUE(s.finish(file, 10s));
  EXPECT_EQ(s.meter().used, s.billed());
}

TEST_P(Preference, ANormalUplinkWithACapIsUsedFreelyUpToIt) {
  Scenario s(GetParam().seed, GetParam().options());
  s.path("dsl", kDsl).path("lte", kLte);
  uplink(s, "lte").meter = {30'000'000, 0};
  s.start().run(2s);
  s.download(1000_MB);
  s.run(900ms);
  EXPECT_GE(bytesOn(s, "lte"), 300'000u) << "it does not wait for saturation" << s.report();
  s.run(30s);
  EXPECT_TRUE(s.edge.status().meters.at(0).closed);
  uint64_t used = s.edge.status().meters.at(0).used;
  EXPECT_LE(used, 30'000'000u);
  EXPECT_GE(used, 20'000'000u);
}

TEST_P(Preference, AMeteredUplinkWithoutACapOnlyRests) {
  Scenario s(GetParam().seed, GetParam().options());
  s.path("dsl", kDsl).path("lte", kLte);
  uplink(s, "lte").preference.use = PathUse::kMetered;
  s.start().run(2s);
  EXPECT_TRUE(s.edge.status().meters.empty());
  uint64_t before = bytesOn(s, "lte");
  s.download(1000_MB);
  s.run(900ms);
  EXPECT_LE(bytesOn(s, "lte") - before, 3000u) << s.report();
  s.run(9s);
  EXPECT_GE(bytesOn(s, "lte") - before, 5'000'000u) << s.report();
}

// ---- ceilings

/// Records the bytes on a path over time, to compute by how much time windows of a given length
/// exceed a rate.
struct Watch {
  std::vector<std::pair<Time, double>> sent;
  double above(Duration window, double rate) const {
    double worst = 0, sum = 0;
    size_t first = 0;
    for (const auto& [time, bytes] : sent) {
      sum += bytes;
      while (time - sent[first].first > window) sum -= sent[first++].second;
      worst = std::max(worst, sum - rate * toSeconds(time - sent[first].first));
    }
    return worst;
  }
  /// Bytes from `since` on.
  double total(Time since) const {
    double sum = 0;
    for (const auto& [time, bytes] : sent) sum += time >= since ? bytes : 0;
    return sum;
  }
};

constexpr uint64_t kCeiling = 625'000;  // 5 Mbit/s
/// The allowed burst: ten full datagrams, plus one with which a time window begins.
constexpr double kBurst = 11 * 1500;

TEST_P(Preference, ACeilingHoldsInEveryWindowBothWays) {
  for (bool both : {false, true}) {
    for (bool down : {false, true}) {
      Scenario s(GetParam().seed, GetParam().options());
      s.path("dsl", {.rateBitsPerSecond = 50_Mbit, .delay = 10ms});
      uplink(s, "dsl").preference.ceiling = kCeiling;
      uplink(s, "dsl").peerCeiling = 2 * kCeiling;
      double rate = static_cast<double>(kCeiling) * (down ? 2 : 1);
      s.start();
      Watch watch;
      s.world.onWire = [&](Path&, bool up, const WireDatagram& d) {
        if (up != down) watch.sent.emplace_back(s.world.now(), d.bytes.size() + 28);
      };
      TcpFlow& file = down ? s.download(1000_MB, kModest) : s.upload(1000_MB, kModest);
      if (both) down ? s.upload(1000_MB, kModest) : s.download(1000_MB, kModest);
      s.run(5s);
      uint64_t received = file.received();
      Time since = s.world.now();
      s.run(10s);
      EXPECT_NEAR(watch.total(since) / (10 * rate), 1, 0.05) << "it is used up" << both << down;
      for (Duration window : {10ms, 100ms, 1000ms, 10000ms})
        EXPECT_LE(watch.above(window, rate), kBurst) << toMilliseconds(window) << both << down;
      // An upload shares its ceiling with the ACKs of a download that is twice as fast. That both
      // together fill it was checked above.
      if (both && !down) continue;
      EXPECT_GE(static_cast<double>(file.received() - received), 0.85 * 10 * rate) << both << down;
    }
  }
}

TEST_P(Preference, SubflowsOfAnUplinkShareItsCeiling) {
  Scenario s(GetParam().seed, GetParam().options());
  s.path("a", {.rateBitsPerSecond = 50_Mbit, .delay = 10ms})
      .path("b", {.rateBitsPerSecond = 50_Mbit, .delay = 15ms});
  s.edge.uplinks[0].sockets.push_back(s.edge.uplinks[1].sockets[0]);
  s.edge.uplinks.pop_back();
  s.edge.uplinks[0].preference.ceiling = kCeiling;
  s.edge.uplinks[0].peerCeiling = kCeiling;
  s.start();
  Watch ups, downs;
  s.world.onWire = [&](Path&, bool up, const WireDatagram& d) {
    (up ? ups : downs).sent.emplace_back(s.world.now(), d.bytes.size() + 28);
  };
  TcpFlow& up = s.upload(1000_MB, kModest);
  TcpFlow& down = s.download(1000_MB, kModest);
  s.run(5s);
  uint64_t before = up.received() + down.received();
  s.run(10s);
  for (Duration window : {10ms, 100ms, 1000ms, 10000ms}) {
    EXPECT_LE(ups.above(window, kCeiling), kBurst) << toMilliseconds(window);
    EXPECT_LE(downs.above(window, kCeiling), kBurst) << toMilliseconds(window);
  }
  EXPECT_GE(up.received() + down.received() - before, 2 * 10 * kCeiling * 8 / 10);
}

// ---- weights

TEST_P(Weights, WeightsSpreadWhatDoesNotSaturate) {
  TunnelOptions o;
  o.scheduler = "weighted";
  o.recovery = "none";
  Scenario s(GetParam(), o);
  s.path("a", kLte).path("b", kDsl);
  uplink(s, "a").preference.weight = 3;
  s.start().run(1s);
  auto sent = [&](const Node& node, const char* path) { return s.subflow(node, path)->sentBytes; };
  uint64_t before[] = {sent(s.edge, "a"), sent(s.edge, "b"), sent(s.hub, "a"), sent(s.hub, "b")};
  s.call({.payload = 1000, .interval = 1ms, .count = 10'000});
  s.call({.payload = 1000, .interval = 1ms, .count = 10'000}, true);
  s.run(10s);
  auto gained = [&](int i, const Node& n, const char* path) {
    return static_cast<double>(sent(n, path) - before[i]);
  };
  EXPECT_NEAR(gained(0, s.edge, "a") / gained(1, s.edge, "b"), 3, 0.1);
  EXPECT_NEAR(gained(2, s.hub, "a") / gained(3, s.hub, "b"), 3, 0.1) << "the hub was told";
}

TEST_P(Weights, SaturationOverridesWeights) {
  TunnelOptions o;
  o.scheduler = "weighted";
  Scenario s(GetParam(), o);
  s.path("a", kDsl).path("b", kDsl);
  uplink(s, "a").preference.weight = 100;
  s.start();
  TcpFlow& file = s.download(1000_MB, kSteady);
  s.run(5s);
  uint64_t before = file.received();
  s.run(10s);
  EXPECT_GE(static_cast<double>(file.received() - before) * 8 / 10, 0.85 * 40e6) << s.report();
}

}  // namespace
}  // namespace braid::sim::preference_test
