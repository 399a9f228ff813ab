// Sends packets of 1,400 bytes through both cores, to be run under an instruction counter
// (scripts/target speed.7):
//
//     valgrind --tool=callgrind instructions PACKETS
//
// Prints how many packets arrived, and whether the program was optimised when it was linked. The
// same packets always take the same number of instructions, because neither a clock nor the kernel
// nor randomness is involved. So two runs with different PACKETS give the cost of a packet once the
// windows have grown.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "bench/two_cores.h"

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  constexpr size_t kBytes = 1400;
  constexpr uint64_t kBatch = 8;             // packets per turn
  constexpr uint64_t kTurnsToEmpty = 5'000;  // turns at the end, in which the last packets arrive
  uint64_t packets = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (packets == 0 || packets % kBatch != 0) {
    std::fprintf(stderr, "instructions PACKETS: a multiple of 8\n");
    return 2;
  }
  braid::sim::TwoCores cores(2);
  for (uint64_t sent = 0; sent < packets; sent += kBatch) {
    for (uint64_t i = 0; i < kBatch; ++i) cores.send(kBytes, 1);
    cores.step(800us);  // 112 Mbit/s: the windows for that are large enough soon
  }
  for (uint64_t turn = 0; turn < kTurnsToEmpty && cores.delivered() < packets; ++turn) cores.step();
  std::printf("%llu %s\n", static_cast<unsigned long long>(cores.delivered()), BRAID_OPTIMIZED);
  return 0;
}
