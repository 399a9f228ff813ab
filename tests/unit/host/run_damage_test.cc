#include "host/run_damage.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace braid::run_damage_test {
namespace {

using Place = ReceivedDatagram::Place;

/// Merged messages of eight datagrams; `later` and `first`: the shares that are damaged. Returns
/// after how many messages the pattern is known; 0: never.
int messagesUntilKnown(double later, double first, int alone = 0) {
  RunDamage damage;
  Random random(7);
  for (int message = 1; message <= 5000; ++message) {
    damage.add(Place::kFirst, random.chance(first));
    for (int i = 1; i < 8; ++i) damage.add(Place::kLater, random.chance(later));
    for (int i = 0; i < alone; ++i) damage.add(Place::kAlone, false);
    if (damage.isKnown()) return message;
  }
  return 0;
}

TEST(RunDamage, IsKnownWhenOnlyWhatFollowsTheFirstIsDamaged) {
  EXPECT_EQ(messagesUntilKnown(1, 0), 16);
  int atEnds = messagesUntilKnown(1.0 / 7, 0);
  EXPECT_GT(atEnds, 0);
  EXPECT_LT(atEnds, 50);
}

// The kernel tells a wrong size: the first datagram is cut wrongly, too.
TEST(RunDamage, IsKnownWhenWholeMessagesAreDamagedAndOthersAreNot) {
  EXPECT_EQ(messagesUntilKnown(1, 1), 0) << "nothing shows that the peer seals well";
  EXPECT_GT(messagesUntilKnown(1, 1, 1), 0);
}

TEST(RunDamage, ANoisyLineIsNone) {
  for (double noise : {0.0001, 0.01, 0.2, 0.9}) EXPECT_EQ(messagesUntilKnown(noise, noise), 0);
}

TEST(RunDamage, RareFaultsAreNone) {
  EXPECT_EQ(messagesUntilKnown(0.001, 0), 0);
}

TEST(RunDamage, WithoutMergedMessagesThereIsNone) {
  RunDamage damage;
  for (int i = 0; i < 1000; ++i) damage.add(Place::kAlone, i % 2 == 0);
  EXPECT_FALSE(damage.isKnown());
}

}  // namespace
}  // namespace braid::run_damage_test
