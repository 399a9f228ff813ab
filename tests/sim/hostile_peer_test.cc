// Each attack of sim_hostile once: an honest peer keeps its share.

#include <gtest/gtest.h>

#include "tests/sim/hostile_run.h"

namespace braid::sim::hostile_peer_test {
namespace {

struct HostilePeer : testing::TestWithParam<std::string> {};

TEST_P(HostilePeer, TakesLittleFromAnHonestOne) {
  HostileResult r = hostileRun(GetParam(), 1);
  EXPECT_EQ(r.broken, "");
  EXPECT_GE(r.share(), 0.8) << "down " << r.down << " of " << r.downAlone << ", up " << r.up
                            << " of " << r.upAlone << " Mbit/s";
  EXPECT_LE(r.callLost, 5u) << "of 250 datagrams of a call";
  EXPECT_LT(r.poolMost, r.poolLimit);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const HostileAttack& attack : hostileAttacks()) all.push_back(attack.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Attacks, HostilePeer, testing::ValuesIn(names()),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace braid::sim::hostile_peer_test
