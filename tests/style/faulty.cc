// Faults that scripts/tidy must detect.
#include "tests/style/faulty.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace braid {

size_t usedAfterMove(std::vector<int>& taker, std::vector<int>& giver) {
  taker = std::move(giver);
  return giver.size();
}

size_t storedInVain(const std::string& text) {
  size_t size = text.size();
  size = 2;
  return size;
}

int readWhereNothingIs(const int* p) {
  return p == nullptr ? *p : 0;
}

bool comparedWithItself(int a) {
  return a == a;
}

size_t copiedInVain(const std::vector<std::string>& names) {
  size_t sum = 0;
  for (const std::string name : names) sum += name.size();
  return sum;
}

}  // namespace braid
