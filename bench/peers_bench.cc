// What a packet, a peer and a flow cost a concentrator with many peers, all of them up. Time and memory are those of
// the concentrator's core alone; the edges' cores run beside it and are not counted.
//
//     carry:   idle edges (keepalives only) ==== 10 ms ==== concentrator
//              busy edge, one flow ============= 10 ms ==== concentrator
//     spread:  edges, many flows each ========== 10 ms ==== concentrator
//     bursts:  the same, each edge's bursts as far apart however many edges there are
//     memory:  the same, and before without a flow

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <array>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>

#include "base/ring.h"
#include "simnet/fake_handshake.h"
#include "tunnel/tunnel.h"

namespace braid::sim {
namespace {

constexpr Duration kTick = 100us;        // between two turns of the busy gateways
constexpr Duration kOneWay = 10ms;       // delay of every edge's link
constexpr size_t kBatch = 8;             // inner packets that a driver finds in a turn
constexpr size_t kPacketBytes = 1437;    // an inner packet that fills a datagram of 1500 bytes
constexpr size_t kPoolPackets = 40'000;  // of the concentrator, and of all edges together
constexpr Duration kConnectLimit = 5s;   // a handshake that takes longer has failed
constexpr unsigned kWarmUp = 5'000;      // turns until windows and pools have their full size
constexpr unsigned kFewPeers = 10;
constexpr unsigned kManyPeers = 1000;
constexpr Duration kBurstsApart = 200ms;      // of one edge
constexpr unsigned kManyFlows = 100;          // of each of them
constexpr uint32_t kServerHost = 0xac100001;  // 172.16.0.1, behind the concentrator

/// CPU time of this thread, in which no other program has a part.
double cpuSeconds() {
  timespec t;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Adds to `sum` by how many bytes the heap grows in its life.
class HeapGrowth {
 public:
  explicit HeapGrowth(int64_t& sum) : sum_(sum), before_(used()) {}
  ~HeapGrowth() { sum_ += used() - before_; }
  HeapGrowth(const HeapGrowth&) = delete;
  HeapGrowth& operator=(const HeapGrowth&) = delete;

 private:
  static int64_t used() {
    struct mallinfo2 info = ::mallinfo2();
    return static_cast<int64_t>(info.uordblks + info.hblkhd);
  }

  int64_t& sum_;
  int64_t before_;
};

/// Whose packets a turn brings.
struct Train {
  unsigned edge;
  uint16_t flow;
};

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

std::array<Packet, kBatch> batch(PacketPool& pool, uint32_t from, uint32_t to, uint16_t flow) {
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
    store16(h + 20, flow);
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

/// Whether a Hub counts what it holds, which takes longer than its work.
enum class Counts : uint8_t { kNothing, kMemory };

/// A concentrator and its edges.
class Hub {
 public:
  explicit Hub(unsigned edges, Counts counts = Counts::kNothing);
  ~Hub();

  /// One turn of the concentrator and of the train's edge with a batch of packets towards that, or from it; the
  /// other edges get their turn when they have something to do. Returns the CPU seconds that the concentrator took.
  double step(bool down, Train train);
  /// Lets all happen that is due until `time` after the last step. Returns the CPU seconds that the concentrator took.
  double pass(Duration time);
  /// Bytes that the concentrator's core has allocated for peers and flows, buffers of packets not among them.
  int64_t held() const { return held_; }
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
  double advance();
  Time nextEvent() const;
  void watch(std::optional<HeapGrowth>& growth);
  void take(std::array<Packet, kBatch>& packets);
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
  Counts counts_;
  int64_t held_ = 0;
};

Hub::Hub(unsigned edges, Counts counts) : counts_(counts) {
  if (counts_ == Counts::kMemory) {
    std::vector<Packet> all(kPoolPackets);  // the pool takes its memory now
    for (Packet& p : all) p = pool_.allocate();
  }
  std::vector<PeerOptions> peers(edges);
  for (unsigned i = 0; i < edges; ++i) {
    peers[i].name = "edge" + std::to_string(i);
    peers[i].pin = Edge::pin(i);
    peers[i].prefixes = {Edge::prefix(i)};
  }
  {
    std::optional<HeapGrowth> growth;
    watch(growth);
    tunnel_.setPeers(std::move(peers), now_);
  }
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

Time Hub::nextEvent() const {
  Time next = tunnel_.nextDeadline();
  if (!toHub_.empty()) next = std::min(next, toHub_.front().at);
  if (!toEdges_.empty()) next = std::min(next, toEdges_.front().at);
  if (!deadlines_.empty()) next = std::min(next, deadlines_.begin()->first);
  return next;
}

/// Goes to the next moment at which something happens, and lets it happen. Returns the CPU seconds that the concentrator
/// took.
double Hub::advance() {
  now_ = std::max(now_ + 1us, nextEvent());
  double began = cpuSeconds();
  deliverToHub();
  delivered_ += turnHub();
  double ended = cpuSeconds();
  deliverToEdges();
  return ended - began;
}

double Hub::pass(Duration time) {
  Time end = now_ + time;
  double sum = 0;
  while (nextEvent() < end) sum += advance();
  now_ = std::max(now_, end);
  return sum;
}

/// Begins to count in `growth`, if this hub counts.
void Hub::watch(std::optional<HeapGrowth>& growth) {
  if (counts_ == Counts::kMemory) growth.emplace(held_);
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
  std::optional<HeapGrowth> growth;
  watch(growth);
  while (!toHub_.empty() && toHub_.front().at <= now_) {
    Flight f = std::move(toHub_.front());
    toHub_.popFront();
    tunnel_.onDatagram({9, {}, outer_[f.edge]}, Ecn::kEct0, std::move(f.bytes), now_);
  }
}

void Hub::take(std::array<Packet, kBatch>& packets) {
  std::optional<HeapGrowth> growth;
  watch(growth);
  for (Packet& p : packets) tunnel_.onInnerPacket(std::move(p), now_);
}

size_t Hub::turnHub() {
  std::optional<HeapGrowth> growth;
  watch(growth);
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

double Hub::step(bool down, Train train) {
  uint32_t host = Edge::innerHost(train.edge);
  std::array<Packet, kBatch> packets =
      down ? batch(pool_, kServerHost, host, train.flow) : batch(edgePool_, host, kServerHost, train.flow);
  double began = cpuSeconds();
  deliverToHub();
  if (down) take(packets);
  delivered_ += turnHub();
  double ended = cpuSeconds();
  if (!down) {
    for (Packet& p : packets) edges_[train.edge]->tunnel().onInnerPacket(std::move(p), now_);
    turnEdge(train.edge);
  }
  deliverToEdges();
  now_ += kTick;
  return ended - began;
}

/// Trains for the last `busy` of the edges in turn, of each for the next of its flows.
class Trains {
 public:
  Trains(unsigned edges, unsigned busy, unsigned flows) : edges_(edges), busy_(busy), flows_(flows) {}
  Train next() {
    unsigned number = count_++ % round();
    return {edges_ - 1 - number % busy_, static_cast<uint16_t>(number / busy_)};
  }
  /// Turns until each flow had one.
  unsigned round() const { return busy_ * flows_; }

 private:
  unsigned edges_;
  unsigned busy_;
  unsigned flows_;
  unsigned count_ = 0;
};

/// A hub and what comes to it, made once for all repetitions.
struct Scene {
  Hub hub;
  Trains trains;
  Duration pause{};  ///< between two steps, in which all happens that is due; zero: none

  double step(bool down) {
    double sum = hub.step(down, trains.next());
    return pause > Duration::zero() ? sum + hub.pass(pause) : sum;
  }
};

Scene& sceneOf(unsigned edges, unsigned busy, unsigned flows, bool down, Duration pause = {}) {
  static std::map<std::tuple<unsigned, unsigned, unsigned, bool, Duration>, std::unique_ptr<Scene>> scenes;
  std::unique_ptr<Scene>& scene = scenes[{edges, busy, flows, down, pause}];
  if (!scene) {
    scene.reset(new Scene{Hub(edges), {edges, busy, flows}, pause});
    unsigned turns = std::max(kWarmUp, scene->trains.round());
    for (unsigned i = 0; i < turns; ++i) scene->step(down);
  }
  return *scene;
}

void run(benchmark::State& state, Scene& scene, bool down) {
  uint64_t before = scene.hub.delivered();
  for (auto _ : state) state.SetIterationTime(scene.step(down));
  scene.hub.checkPeers();
  auto packets = static_cast<double>(scene.hub.delivered() - before);
  state.counters["ns/packet"] =
      benchmark::Counter(packets * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["delivered"] = packets / static_cast<double>(state.iterations() * kBatch);
}

void carry(benchmark::State& state, bool down) {
  run(state, sceneOf(static_cast<unsigned>(state.range(0)), 1, 1, down), down);
}
BENCHMARK_CAPTURE(carry, down, true)->ArgName("peers")->Arg(1)->Arg(kManyPeers)->UseManualTime();
BENCHMARK_CAPTURE(carry, up, false)->ArgName("peers")->Arg(1)->Arg(kManyPeers)->UseManualTime();

void spread(benchmark::State& state, bool down) {
  auto peers = static_cast<unsigned>(state.range(0));
  run(state, sceneOf(peers, peers, static_cast<unsigned>(state.range(1)), down), down);
}
BENCHMARK_CAPTURE(spread, down, true)
    ->ArgNames({"peers", "flows"})
    ->Args({1, 1})
    ->Args({kManyPeers, kManyFlows})
    ->UseManualTime();
BENCHMARK_CAPTURE(spread, up, false)
    ->ArgNames({"peers", "flows"})
    ->Args({1, 1})
    ->Args({kManyPeers, kManyFlows})
    ->UseManualTime();

/// A burst of each edge in 200 ms, for the next of its flows.
void bursts(benchmark::State& state, bool down) {
  auto peers = static_cast<unsigned>(state.range(0));
  Duration apart = kBurstsApart / peers - kTick;
  run(state, sceneOf(peers, peers, static_cast<unsigned>(state.range(1)), down, apart), down);
}
BENCHMARK_CAPTURE(bursts, down, true)
    ->ArgNames({"peers", "flows"})
    ->Args({kFewPeers, kManyFlows})
    ->Args({kManyPeers, kManyFlows})
    ->UseManualTime();
BENCHMARK_CAPTURE(bursts, up, false)
    ->ArgNames({"peers", "flows"})
    ->Args({kFewPeers, kManyFlows})
    ->Args({kManyPeers, kManyFlows})
    ->UseManualTime();

/// Of a peer that is up and idle, and of a flow with packets in both directions.
void memory(benchmark::State& state) {
  for (auto _ : state) {
    Hub hub(kManyPeers, Counts::kMemory);
    auto idle = static_cast<double>(hub.held());
    for (bool down : {true, false}) {
      Trains trains(kManyPeers, kManyPeers, kManyFlows);
      for (unsigned i = 0; i < trains.round(); ++i) hub.step(down, trains.next());
    }
    hub.checkPeers();
    state.counters["bytes/peer"] = idle / kManyPeers;
    state.counters["bytes/flow"] =
        (static_cast<double>(hub.held()) - idle) / (double{kManyPeers} * double{kManyFlows});
  }
}
BENCHMARK(memory)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace braid::sim

BENCHMARK_MAIN();
