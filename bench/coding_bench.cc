// Measures the cost of coding, with K = 30 symbols of 1400 bytes and M = 3 parities (CoFUSO section
// 5.2: K_max = 30; section 6.2.4: M = 3). bytes_per_second counts source data: each symbol once,
// for any number of parities. The benchmark named Jerasure is the reference: only the library's
// region multiplication over the same symbols.

#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <vector>

extern "C" {
#include <jerasure.h>
}

#include "coding/block_decoder.h"
#include "coding/block_encoder.h"

namespace braid {
namespace {

constexpr size_t kSymbols = 30;
constexpr size_t kParities = 3;
constexpr size_t kSize = 1400;

struct Source {
  Source() : bytes(kSymbols, std::vector<uint8_t>(kSize)) {
    uint8_t next = 1;
    for (auto& symbol : bytes) {
      for (uint8_t& byte : symbol) byte = next = static_cast<uint8_t>(next * 5 + 17);
    }
  }
  std::array<ByteView, 1> pieces(size_t i) const { return {ByteView(bytes[i])}; }

  std::vector<std::vector<uint8_t>> bytes;
};

void countBytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kSymbols * kSize));
}

void fill(BlockEncoder& encoder, const Source& source) {
  encoder.begin();
  for (size_t i = 0; i < kSymbols; ++i) encoder.add(source.pieces(i));
}

/// All parities of a complete block.
void Encode(benchmark::State& state) {
  Source source;
  BlockEncoder encoder(kSize);
  fill(encoder, source);
  for ([[maybe_unused]] auto _ : state) {
    for (size_t i = 0; i < kParities; ++i) benchmark::DoNotOptimize(encoder.parity(i).data());
  }
  countBytes(state);
}
BENCHMARK(Encode);

/// Begin, copy the symbols in, all parities.
void EncodeWithCopy(benchmark::State& state) {
  Source source;
  BlockEncoder encoder(kSize);
  for ([[maybe_unused]] auto _ : state) {
    fill(encoder, source);
    for (size_t i = 0; i < kParities; ++i) benchmark::DoNotOptimize(encoder.parity(i).data());
  }
  countBytes(state);
}
BENCHMARK(EncodeWithCopy);

/// Parity 0 alone.
void Xor(benchmark::State& state) {
  Source source;
  BlockEncoder encoder(kSize);
  fill(encoder, source);
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(encoder.parity(0).data());
  countBytes(state);
}
BENCHMARK(Xor);

/// The reference: `parities` sums by the library, each over all symbols.
void Jerasure(benchmark::State& state) {
  const auto parities = static_cast<size_t>(state.range(0));
  ErasureCode::prepare();
  Source source;
  SymbolStore symbols(kSize, kSymbols), sums(kSize, kParities);
  for (size_t i = 0; i < kSymbols; ++i) joinSymbol(symbols[i], source.pieces(i));
  for ([[maybe_unused]] auto _ : state) {
    for (size_t i = 0; i < parities; ++i) {
      for (size_t j = 0; j < kSymbols; ++j) {
        galois_w08_region_multiply(reinterpret_cast<char*>(symbols[j]),
                                   ErasureCode::coefficient(i, j), paddedSymbol(kSize),
                                   reinterpret_cast<char*>(sums[i]), j > 0);
      }
      benchmark::DoNotOptimize(sums[i]);
    }
  }
  countBytes(state);
}
BENCHMARK(Jerasure)->Arg(1)->Arg(kParities);

/// The machine's upper limit: copies a block's bytes and sums them up once for each parity in a
/// plain loop.
void Copy(benchmark::State& state) {
  Source source;
  std::vector<uint8_t> copy(kSymbols * kSize);
  for ([[maybe_unused]] auto _ : state) {
    for (size_t i = 0; i < kSymbols; ++i)
      std::memcpy(&copy[i * kSize], source.bytes[i].data(), kSize);
    benchmark::DoNotOptimize(copy.data());
    benchmark::ClobberMemory();
  }
  countBytes(state);
}
BENCHMARK(Copy);

// The compiler must be told that the two do not overlap. Otherwise it works on single bytes, which
// takes twenty times as long.
void addUp(uint8_t* __restrict sum, const uint8_t* __restrict symbol, size_t size) {
  for (size_t at = 0; at < size; ++at) sum[at] ^= symbol[at];
}

void PlainXor(benchmark::State& state) {
  Source source;
  std::vector<uint8_t> sum(kSize);
  for ([[maybe_unused]] auto _ : state) {
    for (size_t parity = 0; parity < kParities; ++parity) {
      for (const auto& symbol : source.bytes) {
        addUp(sum.data(), symbol.data(), kSize);
      }
      benchmark::DoNotOptimize(sum.data());
      benchmark::ClobberMemory();
    }
  }
  countBytes(state);
}
BENCHMARK(PlainXor);

/// Adds one symbol to the encoder.
void EncoderAdd(benchmark::State& state) {
  Source source;
  BlockEncoder encoder(kSize);
  encoder.begin();
  for ([[maybe_unused]] auto _ : state) {
    if (encoder.symbols() == kSymbols) encoder.begin();
    encoder.add(source.pieces(encoder.symbols()));
  }
}
BENCHMARK(EncoderAdd);

/// Adds one symbol to the decoder, while this number of blocks is open for other packet numbers.
void DecoderSymbol(benchmark::State& state) {
  Source source;
  BlockDecoder decoder(DecoderOptions{});
  BlockDescription far{.parities = kParities, .symbolSize = kSize, .rangeCount = 1, .ranges = {}};
  for (int64_t i = 0; i < state.range(0); ++i) {
    far.block = static_cast<uint16_t>(i);
    far.ranges[0] = {0, (uint64_t{1} << 60) + static_cast<uint64_t>(i) * kSymbols, kSymbols};
    decoder.onParity(far, 0, source.bytes[0]);
  }
  uint64_t pn = 0;
  for ([[maybe_unused]] auto _ : state) {
    decoder.onSymbol(0, pn, source.pieces(pn % kSymbols), Time{});
    ++pn;
  }
}
BENCHMARK(DecoderSymbol)->Arg(0)->Arg(4)->Arg(32);

/// Adds the last parity of a block that misses this many symbols, and takes the restored symbols.
/// The earlier part of the block is not timed.
void Decode(benchmark::State& state) {
  const auto lost = static_cast<size_t>(state.range(0));
  Source source;
  BlockEncoder encoder(kSize);
  fill(encoder, source);
  std::vector<std::vector<uint8_t>> parities;
  for (size_t i = 0; i < kParities; ++i) {
    ByteView parity = encoder.parity(i);
    parities.emplace_back(parity.begin(), parity.end());
  }
  BlockDecoder decoder(DecoderOptions{});
  BlockDescription block{.parities = kParities, .symbolSize = kSize, .rangeCount = 1, .ranges = {}};
  uint64_t pn = 0;
  BlockDecoder::Restored out;
  for ([[maybe_unused]] auto _ : state) {
    state.PauseTiming();
    ++block.block;
    block.ranges[0] = {0, pn, kSymbols};
    for (size_t j = 0; j < kSymbols; ++j, ++pn) {
      if (j % 9 != 4 || j / 9 >= lost) decoder.onSymbol(0, pn, source.pieces(j), Time{});
    }
    for (size_t i = 0; i + 1 < lost; ++i) decoder.onParity(block, i, parities[i]);
    state.ResumeTiming();
    decoder.onParity(block, lost - 1, parities[lost - 1]);
    while (decoder.poll(out)) benchmark::DoNotOptimize(out.symbol.data());
  }
  if (decoder.counts().restored != state.iterations() * lost)
    state.SkipWithError("nothing was restored");
}
BENCHMARK(Decode)->DenseRange(1, kParities);

}  // namespace
}  // namespace braid

BENCHMARK_MAIN();
