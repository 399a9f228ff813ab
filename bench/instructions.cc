// Packets of 1,400 bytes through both cores, for a counter of instructions around it (scripts/target speed.7):
//
//     valgrind --tool=callgrind instructions PACKETS
//
// It prints how many arrived. The same packets take the same instructions each time, for there is no clock in it, no
// kernel and no chance: two runs that differ in PACKETS tell what a packet costs once the windows have grown.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "bench/two_cores.h"

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  constexpr size_t kBytes = 1400;
  constexpr uint64_t kBatch = 8;             // packets of a turn
  constexpr uint64_t kTurnsToEmpty = 5'000;  // in which the last packet arrives
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
  std::printf("%llu\n", static_cast<unsigned long long>(cores.delivered()));
  return 0;
}
