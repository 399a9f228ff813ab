// What a packet costs a concentrator with many peers, all of them up and all but one idle. The time is that
// of the concentrator's core alone; the edges' cores run beside it and are not counted.
//
//     idle edges (keepalives only) ==== 10 ms ==== concentrator
//     busy edge  ====================== 10 ms ==== concentrator

#include <benchmark/benchmark.h>

#include <array>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>

#include "base/ring.h"
#include "simnet/fake_handshake.h"
#include "tunnel/tunnel.h"

namespace braid::sim {
namespace {

constexpr Duration kTick = 100us;             // between two turns of the busy gateways
constexpr Duration kOneWay = 10ms;            // delay of every edge's link
constexpr size_t kBatch = 8;                  // inner packets that a driver finds in a turn
constexpr size_t kPacketBytes = 1437;         // an inner packet that fills a datagram of 1500 bytes
constexpr size_t kPoolPackets = 40'000;       // of the concentrator, and of all edges together
constexpr Duration kConnectLimit = 5s;        // a handshake that takes longer has failed
constexpr int kWarmUp = 5'000;                // turns until windows and pools have their full size
constexpr uint32_t kServerHost = 0xac100001;  // 172.16.0.1, behind the concentrator

/// CPU time of this thread, in which no other program has a part.
double cpuSeconds() {
  timespec t;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// One turn of a driver, after it handed over what had happened (Daemon::beforeWait). Returns the number of
/// inner packets that came out.
size_t turn(Tunnel& tunnel, Ring<Datagram>& sent, Time now) {
  if (tunnel.nextDeadline() <= now) tunnel.onTimer(now);
  for (Datagram d; tunnel.pollDatagram(d, now);) sent.pushBack(std::move(d));
  size_t delivered = 0;
  for (Packet p; tunnel.pollInnerPacket(p);) ++delivered;
  for (Event e; tunnel.pollEvent(e);) {
  }
  benchmark::DoNotOptimize(tunnel.innerMtu());
  benchmark::DoNotOptimize(tunnel.nextDeadline());
  return delivered;
}

TunnelOptions tunnelOptions() {
  TunnelOptions options;
  options.outerMtu = 1500;  // no probes
  options.ackShim = false;  // its tables are large, and it knows of no peers
  return options;
}

std::array<Packet, kBatch> batch(PacketPool& pool, uint32_t from, uint32_t to) {
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

/// The edge with this number, from 0: who it is, and its core.
class Edge {
 public:
  Edge(unsigned number, const Endpoint& hub, PacketPool& pool, Time now)
      : handshakes_(pin(number), number + 2),
        tunnel_(tunnelOptions(), pool, handshakes_, knownKey(number + 2)) {
    PeerOptions far;
    far.name = "hub";
    far.pin = pinOf(1);
    far.endpoints = {hub};
    far.prefixes = {*Prefix::parse("172.16.0.0/16")};
    tunnel_.setPeers({far}, now);
    tunnel_.setUplinks({{"link", {{SocketId{0}, Address::Family::kV4}}, true}}, now);
  }
  static Pin pin(unsigned number) { return pinOf(number + 2); }
  static Endpoint outer(unsigned number) { return *Endpoint::parse(host("100.64.", number) + ":1000"); }
  static Prefix prefix(unsigned number) { return *Prefix::parse(host("10.", number) + ".0/24"); }
  static uint32_t innerHost(unsigned number) {
    return 0x0a000001 + ((number / kHosts) << 16) + ((number % kHosts) << 8);
  }

  Tunnel& tunnel() { return tunnel_; }
  bool up(Time now) const { return tunnel_.status(now).peers[0].up; }

 private:
  static constexpr unsigned kHosts = 250;
  static std::string host(const char* net, unsigned number) {
    return net + std::to_string(number / kHosts) + "." + std::to_string(number % kHosts);
  }

  FakeHandshakeProvider handshakes_;
  Tunnel tunnel_;
};

/// A concentrator and its edges, of which the last one is busy.
class Hub {
 public:
  explicit Hub(unsigned edges);
  ~Hub();

  /// One turn of the concentrator and the busy edge with a batch of packets towards it, or from it; the other
  /// edges get their turn when they have something to do. Returns the CPU seconds that the concentrator took.
  double step(bool down);
  /// Inner packets that arrived at the far end.
  uint64_t delivered() const { return delivered_; }
  /// Throws when a peer is no longer up: the figure would be that of fewer peers.
  void checkPeers();

 private:
  struct Flight {
    Time at;
    size_t edge;  ///< from which, or to which
    Packet bytes;
  };

  void connect(unsigned number);
  void advance();
  size_t turnHub();
  size_t turnEdge(size_t number);
  void deliverToHub();
  void deliverToEdges();

  Endpoint server_ = *Endpoint::parse("198.51.100.1:4433");
  PacketPool pool_{2048, kPoolPackets};
  PacketPool edgePool_{2048, kPoolPackets};
  Ring<Flight> toHub_, toEdges_;
  Ring<Datagram> sent_;
  Time now_ = Time{} + 1s;
  FakeHandshakeProvider handshakes_{pinOf(1), 1};
  Tunnel tunnel_{tunnelOptions(), pool_, handshakes_, knownKey(1)};
  std::vector<Endpoint> outer_;
  std::map<Endpoint, size_t> numbers_;
  std::vector<std::unique_ptr<Edge>> edges_;
  std::set<std::pair<Time, size_t>> deadlines_;  ///< of the edges
  std::vector<Time> deadlineOf_;
  uint64_t delivered_ = 0;
};

Hub::Hub(unsigned edges) {
  std::vector<PeerOptions> peers(edges);
  for (unsigned i = 0; i < edges; ++i) {
    peers[i].name = "edge" + std::to_string(i);
    peers[i].pin = Edge::pin(i);
    peers[i].prefixes = {Edge::prefix(i)};
  }
  tunnel_.setPeers(std::move(peers), now_);
  for (unsigned i = 0; i < edges; ++i) connect(i);
  for (Time end = now_ + 1s; now_ < end;) advance();
  checkPeers();
}

Hub::~Hub() {
  while (!toHub_.empty()) toHub_.popFront();
  while (!toEdges_.empty()) toEdges_.popFront();
}

void Hub::connect(unsigned number) {
  outer_.push_back(Edge::outer(number));
  numbers_[outer_.back()] = number;
  edges_.push_back(std::make_unique<Edge>(number, server_, edgePool_, now_));
  deadlineOf_.push_back(kNever);
  turnEdge(number);
  for (Time limit = now_ + kConnectLimit; !edges_.back()->up(now_); advance()) {
    if (now_ > limit) throw std::runtime_error("edge " + std::to_string(number) + " did not come up");
  }
}

/// Goes to the next moment at which something happens, and lets it happen.
void Hub::advance() {
  Time next = tunnel_.nextDeadline();
  if (!toHub_.empty()) next = std::min(next, toHub_.front().at);
  if (!toEdges_.empty()) next = std::min(next, toEdges_.front().at);
  if (!deadlines_.empty()) next = std::min(next, deadlines_.begin()->first);
  now_ = std::max(now_ + 1us, next);
  deliverToHub();
  turnHub();
  deliverToEdges();
}

void Hub::checkPeers() {
  TunnelStatus status = tunnel_.status(now_);
  for (const PeerStatus& peer : status.peers) {
    bool active = false;
    for (const SubflowStatus& subflow : peer.subflows) active |= subflow.state == "active";
    if (!peer.up || !active) throw std::runtime_error(peer.name + " is not up");
  }
}

void Hub::deliverToHub() {
  while (!toHub_.empty() && toHub_.front().at <= now_) {
    Flight f = std::move(toHub_.front());
    toHub_.popFront();
    tunnel_.onDatagram({9, {}, outer_[f.edge]}, Ecn::kEct0, std::move(f.bytes), now_);
  }
}

size_t Hub::turnHub() {
  return turn(tunnel_, sent_, now_);
}

/// Hands over what has arrived at the edges, and gives every edge its turn that has something to do.
void Hub::deliverToEdges() {
  for (; !sent_.empty(); sent_.popFront()) {
    Datagram& d = sent_.front();
    toEdges_.pushBack({now_ + kOneWay, numbers_.at(d.route.remote), std::move(d.bytes)});
  }
  std::set<size_t> woken;
  for (; !toEdges_.empty() && toEdges_.front().at <= now_; toEdges_.popFront()) {
    Flight& f = toEdges_.front();
    edges_[f.edge]->tunnel().onDatagram({0, {}, server_}, Ecn::kEct0, std::move(f.bytes), now_);
    woken.insert(f.edge);
  }
  for (auto due = deadlines_.begin(); due != deadlines_.end() && due->first <= now_; ++due) {
    woken.insert(due->second);
  }
  for (size_t number : woken) delivered_ += turnEdge(number);
}

size_t Hub::turnEdge(size_t number) {
  Ring<Datagram> sent;
  Tunnel& tunnel = edges_[number]->tunnel();
  size_t delivered = turn(tunnel, sent, now_);
  for (; !sent.empty(); sent.popFront()) {
    toHub_.pushBack({now_ + kOneWay, number, std::move(sent.front().bytes)});
  }
  deadlines_.erase({deadlineOf_[number], number});
  deadlineOf_[number] = tunnel.nextDeadline();
  deadlines_.insert({deadlineOf_[number], number});
  return delivered;
}

double Hub::step(bool down) {
  auto busy = static_cast<unsigned>(edges_.size() - 1);
  std::array<Packet, kBatch> packets = down ? batch(pool_, kServerHost, Edge::innerHost(busy))
                                            : batch(edgePool_, Edge::innerHost(busy), kServerHost);
  double began = cpuSeconds();
  deliverToHub();
  if (down) {
    for (Packet& p : packets) tunnel_.onInnerPacket(std::move(p), now_);
  }
  delivered_ += turnHub();
  double ended = cpuSeconds();
  if (!down) {
    for (Packet& p : packets) edges_[busy]->tunnel().onInnerPacket(std::move(p), now_);
    turnEdge(busy);
  }
  deliverToEdges();
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
  for (auto _ : state) state.SetIterationTime(hub.step(down));
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
