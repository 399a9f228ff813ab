// Measures what a short TCP connection through the stream lane costs the threads of both gateways:
// it opens, a request and an answer cross, both ends close. The cores and the stream proxy are the
// daemon's. The hosts are fakes, so the result excludes system calls and the kernel
// (tests/e2e/stream_burst_test.py measures whole daemons).
//
//     clients --- gateway A ==== two links of 10 ms ==== gateway B --- servers

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>

#include "bench/hub.h"
#include "bench/two_cores.h"
#include "gateway/log/log.h"
#include "gateway/proxy/tcp_proxy.h"
#include "host/fake/fake_host.h"

namespace braid::sim {
namespace {

using Connection = FakeStreamHost::Connection;

constexpr size_t kQuestion = 300, kAnswer = 1000;  // bytes
constexpr unsigned kFirstOnes =
    20'000;  // connections until windows, pools and tables have their full size

TunnelOptions withStreams() {
  TunnelOptions options;
  options.streams.on = true;
  return options;
}

/// A gateway's stream proxy on a fake host.
struct Side {
  Side(const char* network, StreamApi& lanes, Time now) {
    clock.set(now);
    Config config;
    config.tunnel.streams.on = true;
    config.streams.match = {{std::nullopt, 443, 443}};
    config.peers.emplace_back().options.prefixes = {*Prefix::parse(network)};
    streams = std::make_unique<TcpProxy>(host, host.net(), "braid0", lanes, pool, log);
    host.streams()->setMost(60'000);
    streams->configure(config, {}, {}, now);
  }
  void turn(Time now) {
    clock.set(now);
    while (streams->turn(now)) {
    }
  }
  FakeClock clock;
  FakeHost host{clock, 1};
  LogLimiter log;
  PacketPool pool{2048, 64};
  std::unique_ptr<TcpProxy> streams;
};

/// Connections that begin one after the other, one per turn of both gateways.
class StreamScene {
 public:
  StreamScene() {
    while (waiting_ < kFirstOnes) step();
    while (open() > 0) turn();
  }

  /// Begins a connection and continues the others. Returns the CPU time of both gateways, seconds.
  double step() {
    double began = cpuSeconds();
    Connection client = a_.host.streams()->arrive({client_, nextPort()}, server_);
    double took = cpuSeconds() - began;
    client->toGateway.assign(kQuestion, 'q');
    clients_.push_back(std::move(client));
    ++waiting_;
    began = cpuSeconds();
    tell(*a_.host.streams(), *clients_.back());
    return took + cpuSeconds() - began + turn();
  }
  size_t open() const { return clients_.size(); }

 private:
  static void tell(FakeStreamHost& host, const FakeConnection& c) {
    host.tell(c, {.readable = true, .writable = true});
  }
  uint16_t nextPort() { return static_cast<uint16_t>(1024 + port_++ % 60'000); }

  // The work of the hosts is not counted.
  double turn() {
    double began = cpuSeconds();
    a_.turn(cores_.now());
    b_.turn(cores_.now());
    cores_.step();
    double took = cpuSeconds() - began;
    for (Connection& server : b_.host.streams()->takeOpened()) {
      server->connectError = 0;
      servers_.push_back(std::move(server));
      took += told(b_, *servers_.back());
    }
    for (; !servers_.empty() && servers_.front()->fromGateway.size() == kQuestion;
         servers_.pop_front()) {
      FakeConnection& server = *servers_.front();
      server.toGateway.assign(kAnswer, 'a');
      server.ended = true;
      took += told(b_, server);
    }
    for (; !clients_.empty() && clients_.front()->shut; clients_.pop_front()) {
      FakeConnection& client = *clients_.front();
      if (client.fromGateway.size() != kAnswer || client.reset) {
        std::cerr << "bench_streams: a connection came to " << client.fromGateway.size()
                  << " bytes\n";
        std::exit(1);
      }
      client.ended = true;
      took += told(a_, client);
    }
    return took;
  }
  static double told(Side& side, const FakeConnection& c) {
    double began = cpuSeconds();
    tell(*side.host.streams(), c);
    return cpuSeconds() - began;
  }

  TwoCores cores_{2, withStreams()};
  Side a_{"10.2.0.0/16", cores_.streamsOfA(), cores_.now()};
  Side b_{"10.1.0.0/16", cores_.streamsOfB(), cores_.now()};
  Address client_ = *Address::parse("10.1.0.7");
  Endpoint server_ = *Endpoint::parse("10.2.0.9:443");
  std::deque<Connection> clients_, servers_;  ///< oldest first: they end in this order
  unsigned waiting_ = 0;
  unsigned port_ = 0;
};

void openAndClose(benchmark::State& state) {
  static StreamScene scene;
  size_t open = 0;
  for ([[maybe_unused]] auto _ : state) {
    state.SetIterationTime(scene.step());
    open = std::max(open, scene.open());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  state.counters["open"] = static_cast<double>(open);
}
BENCHMARK(openAndClose)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(50'000);

}  // namespace
}  // namespace braid::sim

int main(int argc, char** argv) {
  braid::setLogLevel("error");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
