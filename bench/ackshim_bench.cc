// What the ack shim costs per packet with 100,000 tracked flows, in two mixes:
//
// - Mix: the traffic of a gateway. Trains of 1 to 7 packets belong to one flow and direction. Flows
//   are chosen by Zipf's law (the n-th most popular flow has 1/n of the share of the first). ACKs
//   follow 512 trains after their data. Popular flows are in the CPU cache, those of the long tail
//   are not.
// - Cold: the worst case. Every packet is of another flow than the 99,999 packets before it, in a
//   different order each time. Cold mostly measures how long the CPU waits for data that is not in
//   its second-level cache: for the third-level cache if that is larger than the table (see lscpu).
// - ColdMemory: Cold with every flow's record in no cache, as with a small third-level cache.
//
// The time is the thread's CPU time. It includes hash, look-up, TCP options, all decisions, timers
// and the copy to the tail cache, but not the parsing of the IP and TCP headers, which the tunnel
// does once for all its parts. No flow is large unless said otherwise, so that the shim does all
// its work.

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
#include <vector>

#include "ackshim/ack_shim.h"
#include "base/random.h"
#include "inet/ip.h"

namespace braid {
namespace {

constexpr uint32_t kFlows = 100'000;
constexpr uint32_t kPayload = 1400;

/// CPU time of this thread, so that other programs do not count.
std::chrono::nanoseconds cpuTime() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

/// Flushes this cache line; does nothing where the compiler has no instruction for it.
void evict([[maybe_unused]] const void* line) {
#ifdef __SSE2__
  __builtin_ia32_clflush(line);
#endif
}

/// Packets are prepared before the clock starts. A timed packet lies in the cache, like a packet
/// that has just arrived.
struct Batch {
  static constexpr size_t kSize = 128;
  static constexpr size_t kHeaders = ip::kV4Header + ip::kTcpHeader + 12;

  Batch() : bytes(kSize, std::vector<uint8_t>(kHeaders + kPayload)), seen(kSize) {
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
    ByteView packet = ByteView(b).first(size);
    seen[count++] = {packet, parseInnerPacket(packet).value(), fromHost};
  }
  std::vector<std::vector<uint8_t>> bytes;
  struct Seen {
    ByteView packet;
    InnerPacket parsed;
    bool fromHost;
  };
  std::vector<Seen> seen;
  size_t count = 0;
};

struct Train {
  uint32_t flow;
  bool fromHost;
  uint32_t seq, ack;  ///< of its first packet
  uint32_t seqStep, ackStep;
  uint32_t packets, payload;
};

/// Zipf's law with exponent 1.
class Popularity {
 public:
  explicit Popularity(size_t n) : sums_(n) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sums_[i] = sum += 1.0 / static_cast<double>(i + 1);
  }
  size_t draw(Random& random) const {
    double at = static_cast<double>(random.below(1u << 30)) / (1u << 30) * sums_.back();
    return static_cast<size_t>(std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

class Bench {
 public:
  Bench(uint32_t gamma, size_t cachePackets)
      : pool_(2000, 4096),
        shim_(optionsOf(gamma, cachePackets), pool_, nullptr, {1, 2}),
        order_(kFlows),
        states_(kFlows) {
    std::iota(order_.begin(), order_.end(), 0u);
    shuffle();
    // At most as many at a time as may be half-open; RTTs of 100 ms.
    constexpr uint8_t kSyn = TcpFields::kSyn, kAck = TcpFields::kAck;
    for (uint32_t first = 0; first < kFlows; first += 500) {
      handshake(first, true, 0, 0, kSyn);
      handshake(first, false, 0, 1, kSyn | kAck);
      handshake(first, true, 1, 1, kAck);
    }
  }
  /// Four packets of every flow: data and its ACK, in both directions.
  void cold() { cold(false); }
  void coldMemory() { cold(true); }
  /// 100,000 trains of data and their ACKs.
  void mix() {
    for (uint32_t n = 0; n < kFlows; ++n) {
      if (pending_.size() >= 512) acknowledge();
      sendData(order_[popularity_.draw(random_)], random_.below(2),
               1 + static_cast<uint32_t>(random_.below(7)));
    }
    flush();
  }
  void restart() {
    spent_ = {};
    packets_ = 0;
  }
  std::chrono::nanoseconds spent() const { return spent_; }
  void report(benchmark::State& state, std::chrono::nanoseconds all, size_t packets) const {
    state.counters["flows"] = static_cast<double>(shim_.flows());
    state.counters["bytesPerFlow"] = static_cast<double>(kBytesPerFlow);
    state.counters["kept"] = static_cast<double>(mostKept_);
    state.counters["nsPerPacket"] = static_cast<double>(all.count()) / static_cast<double>(packets);
  }
  size_t packets() const { return packets_; }

 private:
  struct State {
    uint32_t out = 1, in = 1;  ///< next numbers of the local host and of the peer
  };

  void cold(bool evicted) {
    for (int kind = 0; kind < 4; ++kind) {
      flush();
      if (evicted) evictRecords();
      shuffle();
      for (uint32_t flow : order_) {
        if (kind % 2 == 0)
          sendData(flow, kind == 0, 1);
        else
          acknowledge();
      }
      // The ACKs arrive in another order than the data.
      if (kind % 2 == 0) {
        for (size_t i = kFlows - 1; i > 0; --i)
          std::swap(pending_[i], pending_[random_.below(i + 1)]);
      }
    }
    flush();
  }
  void evictRecords() {
    FlowKey key{Address::Family::kV4, ip::kTcp, 40000, 443, {}, {}};
    store32(key.dst.data(), 0xc0000201);
    for (uint32_t flow = 0; flow < kFlows; ++flow) {
      store32(key.src.data(), 0x0a000000 + flow);
      const auto* record = reinterpret_cast<const char*>(shim_.find(key));
      for (size_t at = 0; at < sizeof(ShimFlow); at += 64) evict(record + at);
    }
  }
  void shuffle() {
    for (size_t i = kFlows - 1; i > 0; --i) std::swap(order_[i], order_[random_.below(i + 1)]);
  }
  void handshake(uint32_t first, bool fromHost, uint32_t seq, uint32_t ack, uint8_t flags) {
    for (uint32_t flow = first; flow < first + 500; ++flow) add(flow, fromHost, seq, ack, flags, 0);
    flush();
    now_ += 100ms;
  }
  void sendData(uint32_t flow, bool fromHost, uint32_t packets) {
    State& s = states_[flow];
    uint32_t& seq = fromHost ? s.out : s.in;
    uint32_t ack = fromHost ? s.in : s.out;
    give({flow, fromHost, seq, ack, kPayload, 0, packets, kPayload});
    pending_.push_back({flow, !fromHost, ack, seq + kPayload, 0, kPayload, packets, 0});
    seq += packets * kPayload;
  }
  void acknowledge() {
    give(pending_.front());
    pending_.pop_front();
  }
  void give(const Train& t) {
    for (uint32_t n = 0; n < t.packets; ++n) {
      add(t.flow, t.fromHost, t.seq + n * t.seqStep, t.ack + n * t.ackStep, TcpFields::kAck,
          t.payload);
    }
  }
  void add(uint32_t flow, bool fromHost, uint32_t seq, uint32_t ack, uint8_t flags,
           size_t payload) {
    if (batch_.count == Batch::kSize) flush();
    batch_.add(flow, fromHost, seq, ack, flags, payload,
               static_cast<uint32_t>(now_.time_since_epoch() / 1ms));
  }
  void flush() {
    auto begin = cpuTime();
    for (size_t n = 0; n < batch_.count; ++n) {
      const Batch::Seen& seen = batch_.seen[n];
      now_ += 1us;
      if (seen.fromHost) {
        shim_.onFromHost(seen.packet, seen.parsed, now_);
      } else {
        benchmark::DoNotOptimize(shim_.onToHost(seen.packet, seen.parsed, now_));
      }
      if (shim_.nextDeadline() <= now_) shim_.onTimer(now_);
    }
    spent_ += cpuTime() - begin;
    packets_ += batch_.count;
    batch_.count = 0;
    mostKept_ = std::max(mostKept_, shim_.cachedPackets());
    while (shim_.pollToHost()) {
    }
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

  PacketPool pool_;
  AckShim shim_;
  Batch batch_;
  Random random_{2};
  Popularity popularity_{kFlows};
  std::vector<uint32_t> order_;
  std::vector<State> states_;
  std::deque<Train> pending_;
  Time now_{1s};
  std::chrono::nanoseconds spent_{};
  size_t packets_ = 0;
  size_t mostKept_ = 0;
};

void run(benchmark::State& state, void (Bench::*round)(), uint32_t gamma, size_t cachePackets) {
  Bench bench(gamma, cachePackets);
  (bench.*round)();
  std::chrono::nanoseconds all{};
  size_t packets = 0;
  for ([[maybe_unused]] auto _ : state) {
    bench.restart();
    (bench.*round)();
    all += bench.spent();
    packets += bench.packets();
    state.SetIterationTime(std::chrono::duration<double>(bench.spent()).count());
  }
  bench.report(state, all, packets);
}

constexpr uint32_t kNeverLarge = 1 << 30;

void Mix(benchmark::State& state) {
  run(state, &Bench::mix, kNeverLarge, AckShimOptions().cachePackets);
}
BENCHMARK(Mix)->UseManualTime()->Unit(benchmark::kMillisecond);

/// The tail cache has its default size and is soon full.
void Cold(benchmark::State& state) {
  run(state, &Bench::cold, kNeverLarge, AckShimOptions().cachePackets);
}
BENCHMARK(Cold)->UseManualTime()->Unit(benchmark::kMillisecond);

void ColdMemory(benchmark::State& state) {
  run(state, &Bench::coldMemory, kNeverLarge, AckShimOptions().cachePackets);
}
BENCHMARK(ColdMemory)->UseManualTime()->Unit(benchmark::kMillisecond);

/// 65,534 segments are kept at a time, the maximum of the tail cache.
void ColdKept(benchmark::State& state) {
  run(state, &Bench::cold, kNeverLarge, 65534);
}
BENCHMARK(ColdKept)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Flows with more than gamma bytes.
void ColdLarge(benchmark::State& state) {
  run(state, &Bench::cold, 1, AckShimOptions().cachePackets);
}
BENCHMARK(ColdLarge)->UseManualTime()->Unit(benchmark::kMillisecond);

/// One dependent memory access: each address is read from the previous one. It is the least time
/// for a flow in no cache, whatever program accesses it. The memory is as large as the shim's flow
/// table.
void Miss(benchmark::State& state) {
  struct alignas(64) Line {
    uint32_t next;
  };
  std::vector<Line> lines(kFlows * kBytesPerFlow / sizeof(Line));
  std::vector<uint32_t> order(lines.size());
  std::iota(order.begin(), order.end(), 0u);
  Random random(3);
  for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  for (size_t i = 0; i < order.size(); ++i) lines[order[i]].next = order[(i + 1) % order.size()];
  uint32_t at = 0;
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(at = lines[at].next);
}
BENCHMARK(Miss);

}  // namespace
}  // namespace braid

BENCHMARK_MAIN();
