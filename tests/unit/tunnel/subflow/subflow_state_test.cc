#include "tunnel/subflow/subflow_state.h"

#include <gtest/gtest.h>

namespace braid::subflow_state_test {
namespace {

using state::Suspect;

constexpr Duration kPto = 50ms;
const Time kStart = Time{} + 1s;

TEST(SuspectState, ProbesAtOnceAndQuicklyAtFirst) {
  Suspect suspect(kPto, kStart, kStart);
  EXPECT_EQ(suspect.probeAt, kStart);
  for (int i = 1; i <= Suspect::kQuickProbes; ++i) {
    suspect.onProbe(suspect.probeAt);
    EXPECT_EQ(suspect.probeAt, kStart + i * kPto);
  }
}

TEST(SuspectState, ThePausesGrowByHalfUpToTheLongest) {
  Suspect suspect(kPto, kStart, kStart);
  for (int i = 0; i < Suspect::kQuickProbes; ++i) suspect.onProbe(suspect.probeAt);
  for (Duration pause : {Duration(75ms), Duration(112500us), Duration(168750us), Duration(253125us),
                         Duration(379687500ns), Duration(569531250ns), Duration(854296875ns),
                         Duration(1s), Duration(1s)}) {
    Time before = suspect.probeAt;
    suspect.onProbe(before);
    EXPECT_EQ(suspect.probeAt - before, pause);
  }
}

TEST(SuspectState, HastenedTheNextProbeGoesAPtoAfterTheLast) {
  Suspect suspect(kPto, kStart, kStart);
  suspect.hasten(kPto, kStart + 1ms);
  EXPECT_EQ(suspect.probeAt, kStart + 1ms) << "none has gone";
  for (int i = 0; i < 20; ++i) suspect.onProbe(suspect.probeAt);
  Time last = suspect.probedAt;
  suspect.hasten(kPto, last + 1ms);
  EXPECT_EQ(suspect.probeAt, last + kPto);
  suspect.hasten(kPto, last + 300ms);
  EXPECT_EQ(suspect.probeAt, last + 300ms);
}

TEST(SuspectState, AfterASecondWhatIsKnownIsStaleAndAfterTenThePathHasFailed) {
  Suspect suspect(kPto, kStart, kStart);
  EXPECT_FALSE(suspect.isStale(kStart + 1s));
  EXPECT_TRUE(suspect.isStale(kStart + 1s + 1ns));
  EXPECT_FALSE(suspect.hasFailed(kStart + 10s));
  EXPECT_TRUE(suspect.hasFailed(kStart + 10s + 1ns));
}

}  // namespace
}  // namespace braid::subflow_state_test
