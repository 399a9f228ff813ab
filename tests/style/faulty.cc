// What scripts/tidy must notice.
#include "tests/style/faulty.h"

#include <utility>
#include <vector>

namespace braid {

size_t usedAfterMove(std::vector<int>& taker, std::vector<int>& giver) {
  taker = std::move(giver);
  return giver.size();
}

Shape sliced(const Square& square) {
  return square;
}

bool comparedWithItself(int a) {
  return a == a;
}

size_t copiedInVain(std::vector<int> numbers) {
  return numbers.size();
}

}  // namespace braid
