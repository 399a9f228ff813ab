// Shared by all fuzzers: each input has a CPU time limit proportional to its size. So a parser that
// scans the same bytes repeatedly is found long before it hangs. The limit applies to libFuzzer and
// to replays, both under sanitizers.

#include "tests/fuzz/bounded.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace braid::fuzz {

namespace {

// CPU time, so that a busy machine does not cause a finding.
double cpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double last = 0;

}  // namespace

double lastSeconds() {
  return last;
}

}  // namespace braid::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace braid::fuzz;
  // Valgrind and emulators of other processors take up to a hundred times as long.
  static const double slower = std::getenv("BRAID_EMULATED") ? 100 : 1;
  const double bound = slower * (kSecondsPerInput + kSecondsPerByte * static_cast<double>(size));
  // The best of three runs counts, because the first run includes one-time initialisation and
  // another process may empty the caches.
  double best = bound;
  for (int tries = 0; tries < 3 && best >= bound; ++tries) {
    const double start = cpuSeconds();
    fuzzInput(data, size);
    const double spent = cpuSeconds() - start;
    best = tries == 0 ? spent : std::min(best, spent);
  }
  last = best;
  if (best < bound) return 0;
  std::fprintf(stderr, "too slow: %.3f s of CPU time for %zu bytes, the bound is %.3f s\n", best,
               size, bound);
  std::abort();
}
