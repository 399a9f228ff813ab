// Measures what a packet costs in the cores of both gateways together: queue, frame, seal, open,
// resequence, acknowledge. Sockets and devices are not included. The counter "allocs" is the number
// of allocations per packet after warm-up.

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "bench/two_cores.h"

namespace {
std::atomic<uint64_t> allocations{0};
}

void* operator new(size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}

namespace braid::sim {
namespace {

void throughput(benchmark::State& state) {
  TwoCores bench(2);
  auto size = static_cast<size_t>(state.range(0));
  auto flows = static_cast<size_t>(state.range(1));
  auto burst = [&] {
    for (int i = 0; i < 8; ++i) bench.send(size, flows);
    bench.step();
  };
  for (int i = 0; i < 20000; ++i) burst();  // windows and pools at full size
  uint64_t before = bench.delivered();
  uint64_t allocated = allocations;
  for ([[maybe_unused]] auto _ : state) burst();
  auto packets = static_cast<double>(bench.delivered() - before);
  state.counters["ns/packet"] =
      benchmark::Counter(packets * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["Mbit/s"] =
      benchmark::Counter(packets * static_cast<double>(size) * 8e-6, benchmark::Counter::kIsRate);
  state.counters["allocs"] = static_cast<double>(allocations - allocated) / packets;
}
BENCHMARK(throughput)
    ->ArgNames({"bytes", "flows"})
    ->Args({1437, 1})
    ->Args({1437, 1000})
    ->Args({100, 1})
    ->UseRealTime();

}  // namespace
}  // namespace braid::sim

BENCHMARK_MAIN();
