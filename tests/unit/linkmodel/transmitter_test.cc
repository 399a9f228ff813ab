#include "simnet/link/transmitter.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace braid::transmitter_test {
namespace {

constexpr ExactTime at(Duration d) {
  return {Time{} + d};
}

TEST(Transmitter, Unlimited) {
  Transmitter t({}, {});
  EXPECT_TRUE(t.unlimited());
  EXPECT_EQ(t.finish(at(3s), 1e12), at(3s));
}

TEST(Transmitter, ConstantRateKeepsTheFraction) {
  Transmitter t({.rateBitsPerSecond = 3e9}, {});
  EXPECT_FALSE(t.unlimited());
  ExactTime end = t.finish(at(1s), 1);
  EXPECT_EQ(end.time, at(1s).time);
  EXPECT_NEAR(end.fraction, 1.0 / 3, 1e-9);
  for (int i = 0; i < 299; ++i) end = t.finish(end, 1);
  EXPECT_EQ(end.rounded(), at(1s + 100ns).time);
}

TEST(Transmitter, RoundsToTheNearestNanosecond) {
  EXPECT_EQ((ExactTime{Time{}, 0.49}).rounded(), Time{});
  EXPECT_EQ((ExactTime{Time{}, 0.5}).rounded(), Time{} + 1ns);
}

TEST(Transmitter, SlowestRateDoesNotOverflow) {
  Transmitter t({.rateBitsPerSecond = 1e-9}, {});
  ExactTime end = at(1s);
  for (int i = 0; i < 1000; ++i) end = t.finish(end, 12000);
  EXPECT_GT(end, at(1s));
}

// 1 s at 8 bit/s, 2 s silent, 1 s at 16 bit/s; 24 bits in 4 s.
LinkOptions stepped() {
  return {.trace = {{1s, 8}, {2s, 0}, {1s, 16}}};
}

TEST(Transmitter, TraceStepsAndLoops) {
  Transmitter t(stepped(), Time{} + 100s);
  EXPECT_EQ(t.finish(at(100s), 4).rounded(), at(100s + 500ms).time);
  EXPECT_EQ(t.finish(at(100s), 8).rounded(),
            at(101s).time);  // the last bit leaves before the silence
  EXPECT_EQ(t.finish(at(101s), 8).rounded(), at(103s + 500ms).time);
  EXPECT_EQ(t.finish(at(102s), 16).rounded(), at(104s).time);
  EXPECT_EQ(t.finish(at(103s + 500ms), 12).rounded(), at(104s + 500ms).time);
  EXPECT_EQ(t.finish(at(100s), 24 * 1000 + 12).rounded(), at(100s + 4000s + 3250ms).time);
}

TEST(Transmitter, TraceReplacesTheRate) {
  LinkOptions options = stepped();
  options.rateBitsPerSecond = 1e9;
  EXPECT_EQ(Transmitter(options, {}).finish(at(0s), 8).rounded(), at(1s).time);
}

TEST(Transmitter, BitsBetweenIsTheInverseOfFinish) {
  uint64_t seed = 5;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (const LinkOptions& options :
       {LinkOptions{.rateBitsPerSecond = 1.7e6}, stepped(),
        LinkOptions{.trace = {{7ms, 1e6}, {1ms, 0}, {13ms, 5e6}, {2ms, 3e4}}}}) {
    Transmitter t(options, Time{} + 3s);
    ExactTime start = at(3s);
    for (int i = 0; i < 2000; ++i) {
      double bits = 1 + random.uniform() * 20000;
      ExactTime end = t.finish(start, bits);
      ASSERT_GE(end, start);
      ASSERT_NEAR(t.bitsBetween(start, end), bits, 0.02) << "packet " << i;
      start = end;
      start.time += Duration(random.below(30'000'000));
    }
  }
}

}  // namespace
}  // namespace braid::transmitter_test
