// What a packet costs a concentrator with many peers, all of them up and all but one idle. The time is that
// of the concentrator's core alone; the busy peer's gateway runs beside it and is not counted.
//
//     idle edges  (shook hands, sent nothing since)  ┐
//     busy edge   ==========  10 ms  =============== ┴ concentrator

#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>

#include "base/ring.h"
#include "simnet/fake_handshake.h"
#include "tunnel/tunnel.h"

namespace braid::sim {
namespace {

constexpr Duration kTick = 100us;        // between two turns of a driver
constexpr Duration kOneWay = 10ms;       // delay of the busy edge's link
constexpr size_t kBatch = 8;             // inner packets that a driver finds in a turn
constexpr size_t kPacketBytes = 1437;    // an inner packet that fills a datagram of 1500 bytes
constexpr size_t kPoolPackets = 20'000;  // of each end, beyond what the window holds
constexpr Duration kKeepalive = 1h;      // longer than a run: the idle peers have a deadline that never comes
constexpr Duration kSettling = 300ms;    // for the acknowledgements after a handshake
constexpr Duration kConnectLimit = 5s;   // a handshake that takes longer has failed
constexpr Duration kForgetting = 5s;     // until finished handshakes are forgotten (tunnel.cc)
constexpr int kWarmUp = 20'000;          // turns until windows and pools have their full size

/// A datagram under way.
struct Flight {
  Time at;
  Route from;
  Packet bytes;
};
using Wire = Ring<Flight>;

/// One turn of a driver, after it handed over what had happened (Daemon::beforeWait). Returns the number of
/// inner packets that came out.
template <typename Send>
size_t turn(Tunnel& tunnel, Time now, Send send) {
  if (tunnel.nextDeadline() <= now) tunnel.onTimer(now);
  for (Datagram d; tunnel.pollDatagram(d, now);) send(std::move(d));
  size_t delivered = 0;
  for (Packet p; tunnel.pollInnerPacket(p);) ++delivered;
  for (Event e; tunnel.pollEvent(e);) {
  }
  benchmark::DoNotOptimize(tunnel.innerMtu());
  benchmark::DoNotOptimize(tunnel.nextDeadline());
  return delivered;
}

void receive(Wire& wire, Tunnel& tunnel, Time now) {
  while (!wire.empty() && wire.front().at <= now) {
    Flight f = std::move(wire.front());
    wire.popFront();
    tunnel.onDatagram(f.from, Ecn::kEct0, std::move(f.bytes), now);
  }
}

TunnelOptions tunnelOptions() {
  TunnelOptions options;
  options.outerMtu = 1500;  // no probes
  return options;
}

/// Names and addresses of the edge with this number, from 0.
struct EdgePlan {
  unsigned number;
  std::string host(const char* net) const {
    return net + std::to_string(number / 250) + "." + std::to_string(number % 250);
  }
  Pin pin() const { return pinOf(number + 2); }
  Prefix prefix() const { return *Prefix::parse(host("10.") + ".0/24"); }
  uint32_t innerHost() const { return 0x0a000001 + (number / 250 << 16) + (number % 250 << 8); }
  Endpoint outer() const { return *Endpoint::parse(host("100.64.") + ":1000"); }
};

constexpr uint32_t kServerHost = 0xac100001;  // 172.16.0.1, behind the concentrator

/// A concentrator and as many edges as asked for, of which the last one is still there.
class Hub {
 public:
  explicit Hub(unsigned edges);
  ~Hub();

  /// One turn of both gateways with a batch of packets towards the busy edge, or from it. Returns the time
  /// that the concentrator took.
  std::chrono::duration<double> step(bool down);
  /// Inner packets that arrived at the far end.
  uint64_t delivered() const { return delivered_; }
  /// Throws when a peer is no longer up: a figure without it would be another one.
  void checkPeers();

 private:
  void connect(unsigned number);
  void exchange(Duration time);
  size_t turnHub();
  size_t turnEdge();
  std::array<Packet, kBatch> batch(PacketPool& pool, uint32_t from, uint32_t to);

  Endpoint server_ = *Endpoint::parse("198.51.100.1:4433");
  PacketPool pool_{2048, kPoolPackets};
  PacketPool edgePool_{2048, kPoolPackets};
  Wire toHub_, toEdge_;
  Duration delay_{};
  Time now_ = Time{} + 1s;
  FakeHandshakeProvider handshakes_{pinOf(1), 1};
  Tunnel tunnel_{tunnelOptions(), pool_, handshakes_, 1};
  EdgePlan plan_{};
  std::unique_ptr<FakeHandshakeProvider> edgeHandshakes_;
  std::unique_ptr<Tunnel> edge_;
  uint64_t delivered_ = 0;
};

Hub::Hub(unsigned edges) {
  std::vector<PeerOptions> peers(edges);
  for (unsigned i = 0; i < edges; ++i) {
    peers[i].name = "edge" + std::to_string(i);
    peers[i].pin = EdgePlan{i}.pin();
    peers[i].prefixes = {EdgePlan{i}.prefix()};
    peers[i].keepalive = kKeepalive;
  }
  tunnel_.setPeers(std::move(peers), now_);
  for (unsigned i = 0; i + 1 < edges; ++i) connect(i);
  now_ += kForgetting;
  delay_ = kOneWay;
  connect(edges - 1);
  checkPeers();
}

Hub::~Hub() {
  while (!toHub_.empty()) toHub_.popFront();
  while (!toEdge_.empty()) toEdge_.popFront();
}

void Hub::connect(unsigned number) {
  while (!toEdge_.empty()) toEdge_.popFront();
  plan_ = {number};
  edge_.reset();
  edgeHandshakes_ = std::make_unique<FakeHandshakeProvider>(plan_.pin(), number + 2);
  edge_ = std::make_unique<Tunnel>(tunnelOptions(), edgePool_, *edgeHandshakes_, number + 2);
  PeerOptions far;
  far.name = "hub";
  far.pin = pinOf(1);
  far.endpoints = {server_};
  far.prefixes = {*Prefix::parse("172.16.0.0/16")};
  far.keepalive = kKeepalive;
  edge_->setPeers({far}, now_);
  edge_->setUplinks({{"link", {{SocketId{0}, Address::Family::kV4}}, true}}, now_);
  for (Time limit = now_ + kConnectLimit; !edge_->status(now_).peers[0].up;) {
    if (now_ > limit) throw std::runtime_error("edge " + std::to_string(number) + " did not come up");
    exchange(5ms);
  }
  exchange(kSettling);
}

void Hub::exchange(Duration time) {
  for (Time end = now_ + time; now_ < end; now_ += 1ms) {
    receive(toHub_, tunnel_, now_);
    turnHub();
    receive(toEdge_, *edge_, now_);
    turnEdge();
  }
}

void Hub::checkPeers() {
  TunnelStatus status = tunnel_.status(now_);
  for (const PeerStatus& peer : status.peers) {
    bool active = false;
    for (const SubflowStatus& subflow : peer.subflows) active |= subflow.state == "active";
    if (!peer.up || !active) throw std::runtime_error(peer.name + " is no longer up");
  }
}

size_t Hub::turnHub() {
  return turn(tunnel_, now_, [&](Datagram&& d) {
    if (d.route.remote != plan_.outer()) return;  // of an edge that is gone
    toEdge_.pushBack({now_ + delay_, {0, {}, server_}, std::move(d.bytes)});
  });
}

size_t Hub::turnEdge() {
  return turn(*edge_, now_, [&](Datagram&& d) {
    toHub_.pushBack({now_ + delay_, {9, {}, plan_.outer()}, std::move(d.bytes)});
  });
}

std::array<Packet, kBatch> Hub::batch(PacketPool& pool, uint32_t from, uint32_t to) {
  std::array<Packet, kBatch> packets;
  for (Packet& p : packets) {
    p = pool.allocate();
    uint8_t* h = p.append(kPacketBytes);
    std::fill_n(h, 40, uint8_t{0});
    h[0] = 0x45;
    store16(h + 2, kPacketBytes);
    h[9] = 6;
    store32(h + 12, from);
    store32(h + 16, to);
    h[32] = 0x50;
  }
  return packets;
}

std::chrono::duration<double> Hub::step(bool down) {
  std::array<Packet, kBatch> packets =
      down ? batch(pool_, kServerHost, plan_.innerHost()) : batch(edgePool_, plan_.innerHost(), kServerHost);
  auto began = std::chrono::steady_clock::now();
  receive(toHub_, tunnel_, now_);
  if (down) {
    for (Packet& p : packets) tunnel_.onInnerPacket(std::move(p), now_);
  }
  size_t out = turnHub();
  auto ended = std::chrono::steady_clock::now();
  receive(toEdge_, *edge_, now_);
  if (!down) {
    for (Packet& p : packets) edge_->onInnerPacket(std::move(p), now_);
  }
  size_t in = turnEdge();
  delivered_ += down ? in : out;
  now_ += kTick;
  return ended - began;
}

/// The hub with so many edges, made once for all repetitions.
Hub& hubOf(unsigned edges, bool down) {
  static std::map<std::pair<unsigned, bool>, std::unique_ptr<Hub>> hubs;
  std::unique_ptr<Hub>& hub = hubs[{edges, down}];
  if (!hub) {
    hub = std::make_unique<Hub>(edges);
    for (int i = 0; i < kWarmUp; ++i) hub->step(down);
  }
  return *hub;
}

void carry(benchmark::State& state, bool down) {
  Hub& hub = hubOf(static_cast<unsigned>(state.range(0)), down);
  uint64_t before = hub.delivered();
  for (auto _ : state) state.SetIterationTime(hub.step(down).count());
  hub.checkPeers();
  auto packets = static_cast<double>(hub.delivered() - before);
  state.counters["ns/packet"] =
      benchmark::Counter(packets * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["delivered"] = packets / static_cast<double>(state.iterations() * kBatch);
}
BENCHMARK_CAPTURE(carry, down, true)->ArgName("peers")->Arg(1)->Arg(1000)->UseManualTime();
BENCHMARK_CAPTURE(carry, up, false)->ArgName("peers")->Arg(1)->Arg(1000)->UseManualTime();

}  // namespace
}  // namespace braid::sim

BENCHMARK_MAIN();
