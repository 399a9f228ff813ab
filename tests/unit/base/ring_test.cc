#include "base/containers.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "base/random.h"

namespace braid::ring_test {
namespace {

TEST(Ring, BehavesAsADeque) {
  uint64_t seed = 17;
  SCOPED_TRACE(seed);
  Random random(seed);
  Ring<int> ring;
  std::deque<int> model;
  for (int i = 0; i < 20000; ++i) {
    uint64_t dice = random.below(i / 2000 % 2 ? 4 : 7);  // grows and shrinks in turn
    if (dice == 0 && !model.empty()) {
      ring.popFront();
      model.pop_front();
    } else if (dice == 1 && !model.empty()) {
      ASSERT_EQ(ring.takeFront(), model.front());
      model.pop_front();
    } else if (dice == 2 && !model.empty()) {
      ring.popBack();
      model.pop_back();
    } else {
      ring.pushBack(int{i});
      model.push_back(i);
    }
    ASSERT_EQ(ring.size(), model.size());
    ASSERT_EQ(ring.empty(), model.empty());
    if (model.empty()) continue;
    ASSERT_EQ(ring.front(), model.front());
    ASSERT_EQ(ring.back(), model.back());
    size_t k = random.below(model.size());
    ASSERT_EQ(ring[k], model[k]);
  }
}

TEST(Ring, RemovedElementsAreReleased) {
  Ring<std::shared_ptr<int>> ring;
  auto a = std::make_shared<int>(1);
  ring.pushBack(std::shared_ptr<int>(a));
  ring.pushBack(std::shared_ptr<int>(a));
  ring.pushBack(std::shared_ptr<int>(a));
  EXPECT_EQ(a.use_count(), 4);
  ring.popFront();
  ring.popBack();
  EXPECT_EQ(a.use_count(), 2);
  ring.takeFront();
  EXPECT_EQ(a.use_count(), 1);
}

}  // namespace
}  // namespace braid::ring_test
