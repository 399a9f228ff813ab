#pragma once

#include <cstdio>
#include <cstdlib>

/// Aborts the program, which counts as a finding, when the condition is false.
#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

namespace braid::fuzz {

/// Like CHECK, with a message.
inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "finding: %s\n", what);
  std::abort();
}

}  // namespace braid::fuzz
