#include "bench/hub.h"

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <string>

namespace braid::sim {
namespace {

constexpr Duration kOneWay = 10ms;            // delay of every edge's link
constexpr size_t kPacketBytes = 1437;         // an inner packet that fills a datagram of 1500 bytes
constexpr Duration kConnectLimit = 5s;        // a handshake that takes longer has failed
constexpr uint32_t kServerHost = 0xac100001;  // 172.16.0.1, behind the concentrator

/// One turn of a driver after it has delivered its input (see Daemon::beforeWait). Returns the
/// number of inner packets that left the tunnel.
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
  options.ackShim = false;  // its tables have their full size, and it has no peers yet
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

}  // namespace

double cpuSeconds() {
  timespec t;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Adds the growth of the heap during its lifetime to `sum`, bytes.
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

/// The edge with this number (from 0): its identity and its core.
class Edge {
 public:
  Edge(unsigned number, const Endpoint& hub, PacketPool& pool, uint64_t ceiling, Duration keepalive,
       Time now)
      : handshakes_(pin(number), number + 2),
        tunnel_(tunnelOptions(), pool, handshakes_, knownKey(number + 2)) {
    PeerOptions far;
    far.name = "hub";
    far.pin = pinOf(1);
    far.endpoints = {hub};
    far.keepalive = keepalive;
    far.prefixes = {*Prefix::parse("172.16.0.0/16")};
    tunnel_.setPeers({far}, now);
    tunnel_.setUplinks({{"link", {{SocketId{0}, Address::Family::kV4}}, true, {}, ceiling}}, now);
  }
  static Pin pin(unsigned number) { return pinOf(number + 2); }
  static Endpoint outer(unsigned number) {
    return *Endpoint::parse(host("100.64.", number) + ":1000");
  }
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

TunnelOptions Hub::options() {
  return tunnelOptions();
}

Hub::Hub(unsigned edges, Counts counts, uint64_t ceiling, Duration keepalive) : counts_(counts) {
  if (counts_ == Counts::kMemory) {
    std::vector<Packet> all(kPoolPackets);  // allocates the pool's memory now
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
  for (unsigned i = 0; i < edges; ++i) connect(i, ceiling, keepalive);
  for (Time end = now_ + 1s; now_ < end;) advance();
  checkPeers();
}

Hub::~Hub() {
  while (!toHub_.empty()) toHub_.popFront();
  while (!toEdges_.empty()) toEdges_.popFront();
}

void Hub::connect(unsigned number, uint64_t ceiling, Duration keepalive) {
  outer_.push_back(Edge::outer(number));
  numbers_[outer_.back()] = number;
  edges_.push_back(std::make_unique<Edge>(number, server_, edgePool_, ceiling, keepalive, now_));
  deadlineOf_.push_back(kNever);
  turnEdge(number);
  for (Time limit = now_ + kConnectLimit; !edges_.back()->up(now_); advance()) {
    if (now_ > limit)
      throw std::runtime_error("edge " + std::to_string(number) + " did not come up");
  }
}

Time Hub::nextEvent() const {
  Time next = tunnel_.nextDeadline();
  if (!toHub_.empty()) next = std::min(next, toHub_.front().at);
  if (!toEdges_.empty()) next = std::min(next, toEdges_.front().at);
  if (!deadlines_.empty()) next = std::min(next, deadlines_.begin()->first);
  return next;
}

/// Advances to the next event and handles it. Returns the concentrator's CPU time, seconds.
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

/// Begins to measure memory in `growth`, if this hub does so.
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
    ++received_;
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

/// Delivers the datagrams that have arrived at the edges, and gives a turn to every edge that has
/// something to do.
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
  std::array<Packet, kBatch> packets = down ? batch(pool_, kServerHost, host, train.flow)
                                            : batch(edgePool_, host, kServerHost, train.flow);
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

}  // namespace braid::sim
