#include "base/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace braid::huge_array_test {
namespace {

struct Record {
  uint32_t a = 7;
  uint32_t b;
};

TEST(HugeArrayTest, RecordsAreInitialized) {
  HugeArray<Record> small(3);
  EXPECT_EQ(small.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(small[i].a, 7u);
  HugeArray<uint64_t> plain(3);
  EXPECT_EQ(plain[2], 0u);
  EXPECT_EQ(HugeArray<Record>(0).size(), 0u);
}

// Resident memory of this process, bytes.
size_t residentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<size_t>(::getpagesize());
}

TEST(HugeArrayTest, UnmadeRecordsTakeNoMemory) {
  size_t before = residentBytes();
  HugeArray<Record> unmade((size_t{64} << 20) / sizeof(Record), ArrayInit::kNone);
  EXPECT_LT(residentBytes(), before + (8 << 20));
  unmade[7] = {3, 4};
  EXPECT_EQ(unmade[7].b, 4u);
}

TEST(HugeArrayTest, BeginsOnACacheLineOrAHugePage) {
  HugeArray<Record> small(3);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small.data()) % 64, 0u);
  HugeArray<Record> large((size_t{5} << 20) / sizeof(Record));  // two huge pages and a half
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.data()) % (2 << 20), 0u);
  large[large.size() - 1].b = 1;
  EXPECT_EQ(large[large.size() - 1].b, 1u);
}

TEST(HugeArrayTest, MovesWithItsMemory) {
  HugeArray<Record> from(3);
  Record* data = from.data();
  HugeArray<Record> to(std::move(from));
  EXPECT_EQ(to.data(), data);
}

}  // namespace
}  // namespace braid::huge_array_test
