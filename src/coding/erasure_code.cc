#include "coding/erasure_code.h"

extern "C" {
#include <jerasure.h>
#include <jerasure/reed_sol.h>
}

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include "coding/symbols.h"

namespace braid {
namespace {

constexpr int kFieldBits = 8;

// The generator matrix. Making it also sets up jerasure's tables of the field. Otherwise jerasure
// would do that, without a lock, at the first multiplication.
class Code {
 public:
  static const Code& instance() {
    static const Code code;
    return code;
  }
  uint8_t at(size_t row, size_t column) const { return matrix_[row][column]; }

 private:
  Code() {
    int* made = reed_sol_vandermonde_coding_matrix(kMaxBlockSymbols, kMaxBlockParities, kFieldBits);
    if (!made) throw std::bad_alloc();
    for (size_t i = 0; i < kMaxBlockParities; ++i) {
      for (size_t j = 0; j < kMaxBlockSymbols; ++j) {
        matrix_[i][j] = static_cast<uint8_t>(made[i * kMaxBlockSymbols + j]);
      }
    }
    std::free(made);
  }
  std::array<std::array<uint8_t, kMaxBlockSymbols>, kMaxBlockParities> matrix_;
};

// A cache line. The compiler spreads it over the registers that the CPU has.
typedef uint64_t Line __attribute__((vector_size(kSymbolAlignment), may_alias));

// to[0, size) ^= the first `size` bytes of N sources; whole lines.
template <size_t N>
void xorLines(uint8_t* to, const ErasureCode::Symbol* sources, size_t size) {
  std::array<const uint8_t*, N> from;
  for (size_t i = 0; i < N; ++i) from[i] = sources[i].bytes.data();
  for (size_t at = 0; at < size; at += sizeof(Line)) {
    Line sum = *reinterpret_cast<const Line*>(to + at);
    for (size_t i = 0; i < N; ++i) sum ^= *reinterpret_cast<const Line*>(from[i] + at);
    *reinterpret_cast<Line*>(to + at) = sum;
  }
}

// XORs N symbols into `to`: all at once up to the length of the shortest one, the rest one by one.
template <size_t N>
void xorSymbols(uint8_t* to, const ErasureCode::Symbol* sources) {
  size_t common = SIZE_MAX;
  for (size_t i = 0; i < N; ++i) common = std::min(common, paddedSymbol(sources[i].bytes.size()));
  xorLines<N>(to, sources, common);
  for (size_t i = 0; i < N; ++i) {
    size_t size = paddedSymbol(sources[i].bytes.size());
    if (size == common) continue;
    ErasureCode::Symbol rest{sources[i].column, {sources[i].bytes.data() + common, size - common}};
    xorLines<1>(to + common, &rest, size - common);
  }
}

void xorAll(uint8_t* to, std::span<const ErasureCode::Symbol> symbols) {
  constexpr size_t kAtOnce = 8;  // sources of one pass; their addresses stay in registers
  size_t i = 0;
  for (; i + kAtOnce <= symbols.size(); i += kAtOnce) xorSymbols<kAtOnce>(to, &symbols[i]);
  for (; i < symbols.size(); ++i) xorSymbols<1>(to, &symbols[i]);
}

// to ^= factor * from, over whole lines.
void addMultiple(uint8_t* to, uint8_t factor, const uint8_t* from, size_t size) {
  // jerasure takes the source as writable but does not write to it when there is a destination.
  galois_w08_region_multiply(reinterpret_cast<char*>(const_cast<uint8_t*>(from)), factor,
                             static_cast<int>(paddedSymbol(size)), reinterpret_cast<char*>(to), 1);
}

// In place. (A null destination, which jerasure's header offers for this, crashes in jerasure 2.0.)
void scale(uint8_t* to, uint8_t factor, size_t size) {
  char* region = reinterpret_cast<char*>(to);
  galois_w08_region_multiply(region, factor, static_cast<int>(paddedSymbol(size)), region, 0);
}

uint8_t product(uint8_t a, uint8_t b) {
  return static_cast<uint8_t>(galois_single_multiply(a, b, kFieldBits));
}

}  // namespace

void ErasureCode::prepare() {
  Code::instance();
}

uint8_t ErasureCode::coefficient(size_t parityIndex, size_t column) {
  return Code::instance().at(parityIndex, column);
}

void ErasureCode::addTo(ByteSpan parity, size_t parityIndex, size_t column, ByteView symbol) {
  const Symbol one{column, symbol};
  addTo(parity, parityIndex, {&one, 1});
}

void ErasureCode::addTo(ByteSpan parity, size_t parityIndex, std::span<const Symbol> symbols) {
  if (parityIndex == 0) return xorAll(parity.data(), symbols);
  const Code& code = Code::instance();
  for (const Symbol& symbol : symbols) {
    if (symbol.bytes.empty()) continue;
    addMultiple(parity.data(), code.at(parityIndex, symbol.column), symbol.bytes.data(),
                symbol.bytes.size());
  }
}

// Gauss-Jordan elimination on the small matrix and the buffers at once. Rows are never exchanged:
// every square submatrix of the generator matrix is regular, so all its leading minors differ from
// zero, and so do the pivots.
void ErasureCode::restore(std::span<const size_t> missing, std::span<const size_t> parities,
                          std::span<uint8_t* const> buffers, size_t size) {
  const size_t n = missing.size();
  std::array<std::array<uint8_t, kMaxBlockParities>, kMaxBlockParities> a{};
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) a[i][j] = coefficient(parities[i], missing[j]);
  }
  for (size_t pivot = 0; pivot < n; ++pivot) {
    uint8_t inverse = static_cast<uint8_t>(galois_single_divide(1, a[pivot][pivot], kFieldBits));
    if (inverse != 1) scale(buffers[pivot], inverse, size);
    for (size_t j = pivot; j < n; ++j) a[pivot][j] = product(a[pivot][j], inverse);
    for (size_t i = 0; i < n; ++i) {
      uint8_t factor = a[i][pivot];
      if (i == pivot || factor == 0) continue;
      for (size_t j = pivot; j < n; ++j) a[i][j] ^= product(factor, a[pivot][j]);
      addMultiple(buffers[i], factor, buffers[pivot], size);
    }
  }
}

}  // namespace braid
