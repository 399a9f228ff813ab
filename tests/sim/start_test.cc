// How tunnels come up.

#include <gtest/gtest.h>

#include "scenario.h"

namespace braid::sim {
namespace {

TEST(Start, PageOverTwoPaths) {
  Scenario s(1);
  s.path("dsl", {.rateBitsPerSecond = 50_Mbit, .delay = 10ms})
      .path("lte", {.rateBitsPerSecond = 20_Mbit, .delay = 30ms});
  s.start();
  TcpFlow& down = s.download(2_MB);
  TcpFlow& up = s.upload(2_MB);
  ASSERT_TRUE(s.finish(down, 10s));
  ASSERT_TRUE(s.finish(up, 10s));
  EXPECT_EQ(down.retransmits() + up.retransmits(), 0u) << down.describe() << "\n" << up.describe();
}

}  // namespace
}  // namespace braid::sim
