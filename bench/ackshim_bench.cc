// What the ack shim costs per packet with 100,000 tracked flows. Each pass gives one packet of every flow, in
// an order of its own, so that a flow's record is cold each time: a data segment of the local host, the
// peer's ACK, a data segment to the local host, its ACK. Counted are hash, look-up, TCP options, all
// decisions, timers and the copy to the tail cache; not the parse of the IP and TCP headers, which the tunnel
// does once for all.

#include <benchmark/benchmark.h>
#include <time.h>

#include <chrono>
#include <numeric>
#include <vector>

#include "ackshim/ack_shim.h"
#include "base/random.h"
#include "inet/protocol.h"

namespace braid {
namespace {

constexpr uint32_t kFlows = 100'000;
constexpr size_t kPayload = 1400;

/// Of this thread: what others do on the machine does not count.
std::chrono::nanoseconds cpuTime() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

/// Packets prepared before the clock runs; what the shim is timed on lies in the cache like a fresh packet.
struct Batch {
  static constexpr size_t kSize = 512;
  static constexpr size_t kHeaders = ip::kV4Header + ip::kTcpHeader + 12;

  Batch() : bytes(kSize, std::vector<uint8_t>(kHeaders + kPayload)), parsed(kSize) {
    for (auto& b : bytes) {
      b[0] = 0x45;
      b[8] = 64;
      b[9] = ip::kTcp;
      b[32] = 0x80;
      store32(&b[40], 0x0101080a);
    }
  }
  void add(uint32_t flow, bool fromHost, uint32_t seq, uint32_t ack, uint8_t flags, size_t payload,
           uint32_t ts) {
    auto& b = bytes[count];
    size_t size = kHeaders + payload;
    store16(&b[2], static_cast<uint16_t>(size));
    store32(&b[fromHost ? 12 : 16], 0x0a000000 + flow);
    store32(&b[fromHost ? 16 : 12], 0xc0000201);
    store16(&b[fromHost ? 20 : 22], 40000);
    store16(&b[fromHost ? 22 : 20], 443);
    store32(&b[24], seq);
    store32(&b[28], ack);
    b[33] = flags;
    store16(&b[34], 1000);
    store32(&b[44], ts);
    store32(&b[48], ts);
    parsed[count++] = parseInnerPacket(ByteView(b).first(size)).value();
  }
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<InnerPacket> parsed;
  size_t count = 0;
};

class Bench {
 public:
  Bench(uint32_t gamma, size_t cachePackets)
      : pool_(2000, 4096), shim_(optionsOf(gamma, cachePackets), pool_, nullptr, 1), order_(kFlows) {
    std::iota(order_.begin(), order_.end(), 0u);
    constexpr uint8_t kSyn = TcpFields::kSyn, kAck = TcpFields::kAck;
    pass(true, kSyn, 0, 0, 0);
    pass(false, kSyn | kAck, 0, 1, 0);
    pass(true, kAck, 1, 1, 0);
  }
  /// One packet of each flow; the time it took.
  std::chrono::nanoseconds pass(bool fromHost, uint8_t flags, uint32_t seq, uint32_t ack, size_t payload) {
    shuffle();
    std::chrono::nanoseconds spent{};
    for (size_t first = 0; first < kFlows; first += Batch::kSize) {
      batch_.count = 0;
      auto ts = static_cast<uint32_t>(now_.time_since_epoch() / 1ms);
      for (size_t i = first; i < std::min<size_t>(first + Batch::kSize, kFlows); ++i)
        batch_.add(order_[i], fromHost, seq, ack, flags, payload, ts);
      auto begin = cpuTime();
      for (size_t i = 0; i < batch_.count; ++i) {
        now_ += 1us;
        if (fromHost)
          shim_.onFromHost(batch_.bytes[i], batch_.parsed[i], now_);
        else
          benchmark::DoNotOptimize(shim_.onToHost(batch_.bytes[i], batch_.parsed[i], now_));
      }
      if (shim_.nextDeadline() <= now_) shim_.onTimer(now_);
      spent += cpuTime() - begin;
      while (shim_.pollToHost()) ++said_;
    }
    return spent;
  }
  /// Four packets of each flow.
  std::chrono::nanoseconds round() {
    constexpr uint8_t kAck = TcpFields::kAck;
    auto spent = pass(true, kAck, seq_, seq_, kPayload);
    spent += pass(false, kAck, seq_, seq_ + kPayload, 0);
    spent += pass(false, kAck, seq_, seq_ + kPayload, kPayload);
    spent += pass(true, kAck, seq_ + kPayload, seq_ + kPayload, 0);
    seq_ += kPayload;
    return spent;
  }
  void report(benchmark::State& state) const {
    state.counters["flows"] = static_cast<double>(shim_.flows());
    state.counters["bytes/flow"] = static_cast<double>(kBytesPerFlow);
    state.counters["said"] = static_cast<double>(said_);
    state.counters["cacheFull"] = static_cast<double>(shim_.counters().cacheFull);
    state.counters["ns/packet"] =
        benchmark::Counter(static_cast<double>(state.iterations()) * 4 * kFlows * 1e-9,
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  }

 private:
  static AckShimOptions optionsOf(uint32_t gamma, size_t cachePackets) {
    AckShimOptions o;
    o.maxFlows = kFlows;
    o.gamma = gamma;
    o.cachePackets = cachePackets;
    o.inactivity = 1h;
    o.idle = 20min;
    return o;
  }
  void shuffle() {
    for (size_t i = kFlows - 1; i > 0; --i) std::swap(order_[i], order_[random_.below(i + 1)]);
  }

  PacketPool pool_;
  AckShim shim_;
  Batch batch_;
  Random random_{2};
  std::vector<uint32_t> order_;
  Time now_{1s};
  uint32_t seq_ = 1;
  uint64_t said_ = 0;
};

void run(benchmark::State& state, uint32_t gamma, size_t cachePackets) {
  Bench bench(gamma, cachePackets);
  bench.round();
  for (auto _ : state) state.SetIterationTime(std::chrono::duration<double>(bench.round()).count());
  bench.report(state);
}

/// Small flows of which nothing is kept: the cache is full with those of others, or off.
void SmallFlows(benchmark::State& state) {
  run(state, 1 << 30, 0);
}
BENCHMARK(SmallFlows)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Small flows whose segments to the local host are all copied.
void SmallFlowsCached(benchmark::State& state) {
  run(state, 1 << 30, 65534);
}
BENCHMARK(SmallFlowsCached)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Flows beyond gamma.
void LargeFlows(benchmark::State& state) {
  run(state, 1, 2048);
}
BENCHMARK(LargeFlows)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid

BENCHMARK_MAIN();
