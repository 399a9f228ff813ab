#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the program as a finding when the condition does not hold.
#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

namespace braid::fuzz {

/// The same, with words for what is wrong then.
inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "finding: %s\n", what);
  std::abort();
}

}  // namespace braid::fuzz
