#include "host/linux/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace braid::program_pages_test {
namespace {

// A constant that nothing else uses, large enough to fill whole pages.
constexpr size_t kPages = 64, kPage = 4096;
struct Table {
  uint8_t bytes[kPages * kPage];
};
constexpr Table makeTable() {
  Table out{};
  for (size_t i = 0; i < sizeof out.bytes; i += 512)
    out.bytes[i] = static_cast<uint8_t>(i / 512 + 1);
  return out;
}
alignas(kPage) constexpr Table kTable = makeTable();

unsigned sumOfTable() {
  unsigned sum = 0;
  for (size_t i = 0; i < sizeof kTable.bytes; i += 512)
    sum += static_cast<const volatile uint8_t&>(kTable.bytes[i]);
  return sum;
}

// Number of resident file-backed pages.
size_t filePages() {
  size_t size = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return shared;
}

TEST(ProgramPages, WhatIsGivenBackComesBackAsItWas) {
  unsigned sum = sumOfTable();
  EXPECT_GT(sum, 0u);
  size_t before = filePages();
  returnProgramPages();
  EXPECT_LE(filePages() + kPages / 2, before);
  EXPECT_EQ(sumOfTable(), sum);
}

}  // namespace
}  // namespace braid::program_pages_test
