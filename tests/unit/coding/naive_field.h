#pragma once

// GF(2^8) with polynomial 0x11d, and the code over it, by the definitions: slow, and independent of
// the library.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace braid::naive {

using Bytes = std::vector<uint8_t>;
using Matrix = std::vector<Bytes>;

inline uint8_t multiply(uint8_t a, uint8_t b) {
  unsigned product = 0, shifted = a;
  for (; b != 0; b >>= 1, shifted <<= 1) {
    if (shifted & 0x100) shifted ^= 0x11d;
    if (b & 1) product ^= shifted;
  }
  return static_cast<uint8_t>(product);
}

inline uint8_t inverse(uint8_t a) {
  for (unsigned b = 1; b < 256; ++b) {
    if (multiply(a, static_cast<uint8_t>(b)) == 1) return static_cast<uint8_t>(b);
  }
  return 0;
}

/// The M x K part below the identity: an extended Vandermonde matrix made systematic by column
/// operations, then its columns and rows scaled so that the first row and the first column are
/// ones.
inline Matrix generator(size_t k, size_t m) {
  Matrix v(k + m, Bytes(k));
  for (size_t i = 0; i < k + m; ++i) {
    uint8_t power = 1;
    for (size_t j = 0; j < k; ++j, power = multiply(power, static_cast<uint8_t>(i)))
      v[i][j] = power;
  }
  std::fill(v.back().begin(), v.back().end(), uint8_t{0});
  v.back().back() = 1;
  for (size_t p = 0; p < k; ++p) {
    size_t other = p;
    while (v[p][other] == 0) ++other;
    for (Bytes& row : v) std::swap(row[p], row[other]);
    const uint8_t scale = inverse(v[p][p]);
    for (Bytes& row : v) row[p] = multiply(row[p], scale);
    for (size_t j = 0; j < k; ++j) {
      const uint8_t factor = v[p][j];
      if (j == p || factor == 0) continue;
      for (Bytes& row : v) row[j] ^= multiply(factor, row[p]);
    }
  }
  Matrix out(v.begin() + static_cast<ptrdiff_t>(k), v.end());
  for (size_t j = 0; j < k; ++j) {
    const uint8_t scale = inverse(out[0][j]);
    for (Bytes& row : out) row[j] = multiply(row[j], scale);
  }
  for (Bytes& row : out) {
    const uint8_t scale = inverse(row[0]);
    for (uint8_t& factor : row) factor = multiply(factor, scale);
  }
  return out;
}

/// The product of the generator's row `index` and the symbols; shorter symbols are padded with
/// zeros.
inline Bytes parity(const Bytes& row, const std::vector<Bytes>& symbols) {
  Bytes sum;
  for (size_t j = 0; j < symbols.size(); ++j) {
    sum.resize(std::max(sum.size(), symbols[j].size()));
    for (size_t i = 0; i < symbols[j].size(); ++i) sum[i] ^= multiply(row[j], symbols[j][i]);
  }
  return sum;
}

}  // namespace braid::naive
