#include <gtest/gtest.h>

#include "coding/erasure_code.h"

namespace braid::generator_test {
namespace {

// Multiplication in GF(2^8) by the definition, independent of the library's tables.
unsigned multiply(unsigned a, unsigned b) {
  unsigned product = 0;
  for (; b; b >>= 1) {
    if (b & 1) product ^= a;
    a <<= 1;
    if (a & 0x100) a ^= 0x11d;
  }
  return product;
}

unsigned inverse(unsigned a) {
  unsigned b = 1;
  while (multiply(a, b) != 1) ++b;
  return b;
}

// docs/protocol.md section 8: the matrix is part of the wire format.
TEST(Generator, IsThatOfTheProtocol) {
  for (unsigned i = 0; i < kMaxBlockParities; ++i) {
    for (unsigned j = 0; j < kMaxBlockSymbols; ++j) {
      unsigned x = 128 + i;
      unsigned y = 128 ^ j;
      unsigned expected = i == 15 ? multiply(y, inverse(128))
                                  : multiply(multiply(x, y), inverse(multiply(128, x ^ j)));
      ASSERT_EQ(ErasureCode::coefficient(i, j), expected) << i << ", " << j;
    }
  }
}

}  // namespace
}  // namespace braid::generator_test
