#include "evaluation/models/traffic.h"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

namespace braid::sim::sizes_test {
namespace {

std::string fileWith(const std::string& text) {
  std::string name =
      testing::TempDir() + "sizes_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ofstream(name) << text;
  return name;
}

TEST(Sizes, AreLinearBetweenThePoints) {
  Sizes sizes(fileWith("123.4\n0 0\n100 0.5\n300 1\n"));
  Random random(1);
  size_t small = 0;
  double sum = 0;
  constexpr size_t kDraws = 20000;
  for (size_t i = 0; i < kDraws; ++i) {
    uint64_t size = sizes.draw(random, UINT64_MAX);
    ASSERT_GE(size, 1u);
    ASSERT_LE(size, 300u);
    small += size <= 100;
    sum += static_cast<double>(size);
  }
  EXPECT_NEAR(static_cast<double>(small) / kDraws, 0.5, 0.02);
  EXPECT_NEAR(sum / kDraws, 0.5 * 50 + 0.5 * 200, 3);
}

TEST(Sizes, LargerThanTheMostAreDrawnAgain) {
  Sizes sizes(fileWith("0 0\n100 0.5\n300 1\n"));
  Random random(1);
  for (int i = 0; i < 2000; ++i) ASSERT_LE(sizes.draw(random, 150), 150u);
}

TEST(Sizes, RefuseWhatIsNoDistribution) {
  EXPECT_THROW(Sizes("/nonexistent"), std::runtime_error);
  EXPECT_THROW(Sizes(fileWith("0 0\n100 0.5\n")), std::runtime_error);  // does not end at 1
  EXPECT_THROW(Sizes(fileWith("0 0\n100 0.7\n50 0.6\n70 1\n")), std::runtime_error);
}

TEST(Sizes, TheOnesOfThePapersAreThere) {
  for (const char* name : {"web_search", "web_server"}) {
    Random random(1);
    EXPECT_GT(namedSizes(name).draw(random, UINT64_MAX), 0u) << name;
  }
}

}  // namespace
}  // namespace braid::sim::sizes_test
