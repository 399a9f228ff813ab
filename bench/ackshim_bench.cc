// What the ack shim costs per packet with 100,000 tracked flows. Packets come in trains of one direction of
// one flow: ten data segments to the peer, the ten ACKs of them, ten data segments to the local host, their
// ACKs; each time all flows in an order of their own, so that a train finds its flow's record cold. With
// trains of one packet each packet does: that is the worst case, and says mostly how long the machine takes
// for what is not in its caches. Counted are hash, look-up, TCP options, all decisions, timers and the copy
// to the tail cache; not the parse of the IP and TCP headers, which the tunnel does once for all.

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
constexpr uint32_t kPayload = 1400;

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
  Bench(uint32_t gamma, size_t cachePackets, uint32_t train)
      : train_(train),
        pool_(2000, 4096),
        shim_(optionsOf(gamma, cachePackets), pool_, nullptr, 1),
        order_(kFlows) {
    std::iota(order_.begin(), order_.end(), 0u);
    constexpr uint8_t kSyn = TcpFields::kSyn, kAck = TcpFields::kAck;
    // No more at a time than may be half-open; RTTs of 100 ms.
    for (size_t first = 0; first < kFlows; first += 2000) {
      give(first, first + 2000, true, 1, {kSyn, 0, 0, 0});
      now_ += 100ms;
      give(first, first + 2000, false, 1, {kSyn | kAck, 0, 1, 0});
      now_ += 100ms;
      give(first, first + 2000, true, 1, {kAck, 1, 1, 0});
    }
  }
  struct Packets {
    uint8_t flags;
    uint32_t seq, ack;  ///< of the first of a train
    uint32_t payload;
    uint32_t seqStep = 0, ackStep = 0;
  };
  /// Four trains of each flow.
  std::chrono::nanoseconds round() {
    constexpr uint8_t kAck = TcpFields::kAck;
    uint32_t end = seq_ + train_ * kPayload;
    auto spent = pass(true, {kAck, seq_, seq_, kPayload, kPayload, 0});
    spent += pass(false, {kAck, seq_, seq_ + kPayload, 0, 0, kPayload});
    spent += pass(false, {kAck, seq_, end, kPayload, kPayload, 0});
    spent += pass(true, {kAck, end, seq_ + kPayload, 0, 0, kPayload});
    seq_ = end;
    return spent;
  }
  void report(benchmark::State& state) const {
    state.counters["flows"] = static_cast<double>(shim_.flows());
    state.counters["bytesPerFlow"] = static_cast<double>(kBytesPerFlow);
    state.counters["kept"] = static_cast<double>(mostKept_);
    state.counters["perPacket"] =
        benchmark::Counter(static_cast<double>(state.iterations()) * 4 * kFlows * train_,
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  }

 private:
  std::chrono::nanoseconds pass(bool fromHost, const Packets& packets) {
    for (size_t i = kFlows - 1; i > 0; --i) std::swap(order_[i], order_[random_.below(i + 1)]);
    return give(0, kFlows, fromHost, train_, packets);
  }
  /// A train of each of these flows; the time it took.
  std::chrono::nanoseconds give(size_t first, size_t last, bool fromHost, uint32_t train, const Packets& p) {
    std::chrono::nanoseconds spent{};
    for (; first < last; first += Batch::kSize / train) {
      batch_.count = 0;
      auto ts = static_cast<uint32_t>(now_.time_since_epoch() / 1ms);
      for (size_t i = first; i < std::min(first + Batch::kSize / train, last); ++i) {
        for (uint32_t n = 0; n < train; ++n)
          batch_.add(order_[i], fromHost, p.seq + n * p.seqStep, p.ack + n * p.ackStep, p.flags, p.payload,
                     ts);
      }
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
      mostKept_ = std::max(mostKept_, shim_.cachedPackets());
      while (shim_.pollToHost()) {
      }
    }
    return spent;
  }
  static AckShimOptions optionsOf(uint32_t gamma, size_t cachePackets) {
    AckShimOptions o;
    o.maxFlows = kFlows;
    o.gamma = gamma;
    o.cachePackets = cachePackets;
    o.inactivity = 1h;
    o.idle = 20min;
    return o;
  }
  uint32_t train_;
  PacketPool pool_;
  AckShim shim_;
  Batch batch_;
  Random random_{2};
  std::vector<uint32_t> order_;
  Time now_{1s};
  uint32_t seq_ = 1;
  size_t mostKept_ = 0;
};

void run(benchmark::State& state, uint32_t gamma, size_t cachePackets) {
  Bench bench(gamma, cachePackets, static_cast<uint32_t>(state.range(0)));
  bench.round();
  for (auto _ : state) state.SetIterationTime(std::chrono::duration<double>(bench.round()).count());
  bench.report(state);
}

/// Small flows; the argument is the length of the trains. The cache is as large as it is by default and soon
/// full.
void SmallFlows(benchmark::State& state) {
  run(state, 1 << 30, AckShimOptions().cachePackets);
}
BENCHMARK(SmallFlows)->Arg(10)->Arg(1)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Small flows of which 65,534 segments are kept at a time.
void SmallFlowsKept(benchmark::State& state) {
  run(state, 1 << 30, 65534);
}
BENCHMARK(SmallFlowsKept)->Arg(10)->Arg(1)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Flows beyond gamma.
void LargeFlows(benchmark::State& state) {
  run(state, 1, AckShimOptions().cachePackets);
}
BENCHMARK(LargeFlows)->Arg(10)->Arg(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid

BENCHMARK_MAIN();
