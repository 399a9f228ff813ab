#include "host/linux/process.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>

namespace braid::heap_test {
namespace {

TEST(Heap, ALargeBlockIsTheMachinesAgainWhateverWasFreedBefore) {
  returnLargeBlocks();
  if (::mallinfo2().arena == 0) GTEST_SKIP() << "not glibc's heap: of a sanitizer";
  constexpr size_t kTable =
      4 << 20;  // glibc takes blocks of up to 32 MB from its heap once it has learned to
  // Volatile, because an optimizer removes an allocation that is freed without being used.
  void* volatile first = std::malloc(kTable);
  std::free(first);
  size_t before = ::mallinfo2().arena;
  void* volatile table = std::malloc(kTable);
  void* volatile behind = std::malloc(1000);
  ASSERT_TRUE(table && behind);
  std::free(table);
  EXPECT_LT(::mallinfo2().arena, before + kTable);
  std::free(behind);
}

}  // namespace
}  // namespace braid::heap_test
