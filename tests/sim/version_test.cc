// A gateway of this release and one of a later release, which supports one more protocol version.

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace braid::sim::version_test {
namespace {

const std::vector<ProtocolVersion> kOld{2}, kNew{2, 3};

unsigned versionOf(const Node& node) {
  return node.status().peers.at(0).version;
}

struct Builds {
  std::vector<ProtocolVersion> edge, hub;
  unsigned spoken;
};
class Versions : public testing::TestWithParam<Builds> {};
INSTANTIATE_TEST_SUITE_P(Pairs, Versions,
                         testing::Values(Builds{kOld, kOld, 2}, Builds{kNew, kOld, 2},
                                         Builds{kOld, kNew, 2}, Builds{kNew, kNew, 3}));

TEST_P(Versions, TheHighestThatBothSpeakIsSpoken) {
  Scenario s(1);
  s.edge.versions = GetParam().edge;
  s.hub.versions = GetParam().hub;
  s.path("dsl", kDsl).path("lte", kLte).start();
  EXPECT_EQ(versionOf(s.edge), GetParam().spoken);
  EXPECT_EQ(versionOf(s.hub), GetParam().spoken);
  TcpFlow& file = s.download(500_KB);
  ASSERT_TRUE(s.finish(file, 10s)) << s.report();
  EXPECT_EQ(s.edge.drops(Drop::kBadFrame) + s.hub.drops(Drop::kBadFrame), 0u)
      << "GREASE is skipped";
}

// The two sides are updated one after the other, in either order.
TEST(Versions, AnUpgradeSideBySideGoesOn) {
  Scenario s(2);
  s.path("dsl", kDsl).path("lte", kLte).start();
  ASSERT_EQ(versionOf(s.edge), 2u);
  for (auto [node, spoken] : {std::pair(&s.hub, 2u), std::pair(&s.edge, 3u)}) {
    ASSERT_TRUE(node->shutDown());
    node->versions = kNew;
    node->start();
    s.run(3s);
    ASSERT_TRUE(s.world.runUntil([&] { return s.isUp(); }, 20s)) << s.report();
    EXPECT_EQ(versionOf(s.edge), spoken);
    EXPECT_EQ(versionOf(s.hub), spoken);
    TcpFlow& file = s.download(200_KB);
    ASSERT_TRUE(s.finish(file, 10s)) << s.report();
  }
}

TEST(Versions, WithoutACommonOneThereIsNoSession) {
  Scenario s(3);
  s.hub.versions = {3};
  s.path("dsl", kDsl);
  s.world.start();
  s.run(12s);
  EXPECT_FALSE(s.isUp());
  EXPECT_GT(s.edge.countEvents(Event::Kind::kHandshakeFailed), 0u);
}

}  // namespace
}  // namespace braid::sim::version_test
