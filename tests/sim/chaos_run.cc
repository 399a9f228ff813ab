#include "tests/sim/chaos_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "scheduler/path/path_scheduler.h"
#include "simnet/tcp/tcp_flow.h"
#include "simnet/udp_flow.h"
#include "simnet/world.h"

namespace braid::sim {

namespace {

/// Faults are injected for this time. Then all paths recover.
constexpr Duration kTrouble = 4s;
/// All transfers must be complete this long after the last fault. Backed-off inner timers (4 s) and
/// handshake pauses (8 s) fit into it many times.
constexpr Duration kPatience = 120s;
/// After this time without traffic no buffers may be held: repair time, hold time and the delay of
/// ACKs have passed.
constexpr Duration kDrain = 20s;
/// Datagrams from and to this port must be delivered in order.
constexpr uint16_t kOrderedPort = 2100;

class Chaos {
 public:
  explicit Chaos(uint64_t seed)
      : random_(seed ^ 0xc4a05),
        lanRandom_(seed ^ 0x1a),
        world_(seed),
        edge_(world_.addNode("edge")),
        hub_(world_.addNode("hub")) {}

  ChaosResult run();

 private:
  double between(double a, double b) { return a + (b - a) * random_.uniform(); }
  Duration between(Duration a, Duration b) {
    return a + Duration(random_.below(static_cast<uint64_t>((b - a).count()) + 1));
  }
  /// Log-uniform: small values are as likely as large ones.
  double spread(double a, double b) { return a * std::pow(b / a, random_.uniform()); }
  bool chance(double p) { return random_.chance(p); }
  std::ostringstream& say() {
    story_ << "\n" << toMilliseconds(world_.now().time_since_epoch()) << " ms: ";
    return story_;
  }

  void chooseOptions();
  void chooseRecovery(TunnelOptions& options);
  void chooseShim(TunnelOptions& options);
  void chooseLan(Node& node);
  const char* choosePolicy();
  LinkOptions chooseLink();
  void choosePaths();
  void choosePreference(UplinkSpec& uplink);
  void chooseTraffic();
  void chooseOrdered();
  void chooseTrouble();
  void trouble();
  void replay();
  void heal();
  void check();
  void checkMemory();
  void fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }

  Random random_;
  // a separate generator, so that a seed gives the same events on the paths with any LAN
  Random lanRandom_;
  World world_;
  Node& edge_;
  Node& hub_;
  std::vector<TcpFlow*> tcp_;
  std::vector<UdpFlow*> udp_;
  std::vector<std::pair<Path*, WireDatagram>> heard_;  // the last few datagrams of the edge
  std::ostringstream story_;
  bool jumped_ = false;
  std::string failure_;
};

void Chaos::chooseOptions() {
  TunnelOptions o;
  o.scheduler = kPathSchedulerNames[random_.below(std::size(kPathSchedulerNames))];
  o.queueBytes = static_cast<size_t>(spread(64 << 10, 2 << 20));
  o.holdBytes = static_cast<size_t>(spread(64 << 10, 4 << 20));
  o.holdTime = between(50ms, 500ms);
  o.repairTime = between(500ms, 3s);
  if (chance(0.5)) o.rekeyPackets = 100 + random_.below(600);
  chooseRecovery(o);
  o.decodeBuffer = std::array<size_t, 5>{0, 1, 7, 100, 1024}[random_.below(5)];
  if (chance(0.7)) o.controller = kControllerNames[random_.below(std::size(kControllerNames))];
  o.amp.gamma = 1 + random_.below(3);
  chooseShim(o);
  for (Node* node : {&edge_, &hub_}) chooseLan(*node);
  edge_.options = hub_.options = o;
  edge_.poolLimit = hub_.poolLimit = chance(0.2) ? 600 : 8192;
  say() << o.controller << ", " << o.scheduler << ", queue " << o.queueBytes << ", hold "
        << o.holdBytes << " for " << toMilliseconds(o.holdTime) << " ms, repair "
        << toMilliseconds(o.repairTime) << " ms, rekey " << o.rekeyPackets << ", pool "
        << edge_.poolLimit << ", decode " << o.decodeBuffer;
}

const char* Chaos::choosePolicy() {
  static constexpr std::array kPolicies{"none",      "fuso",     "cofuso",     "redundant",
                                        "proactive", "reactive", "corrective", "adaptive"};
  return kPolicies[random_.below(kPolicies.size())];
}

void Chaos::chooseRecovery(TunnelOptions& o) {
  o.recovery = choosePolicy();
  o.recoveryOptions.mMax = 1 + random_.below(16);
  o.recoveryOptions.kMax = static_cast<size_t>(spread(1.0, 128.99));
  o.recoveryClasses = {{17, {}, kOrderedPort, kOrderedPort, o.recovery, Delivery::kOrdered}};
  say() << "recovery " << o.recovery << ", M " << o.recoveryOptions.mMax << ", K "
        << o.recoveryOptions.kMax;
  for (size_t i = random_.below(4); i > 0; --i) {
    RecoveryClass c;
    if (chance(0.3)) c.protocol = chance(0.5) ? 6 : 17;
    c.firstPort = static_cast<uint16_t>(1000 + random_.below(6));
    c.lastPort = chance(0.3) ? 65535 : c.firstPort;
    c.policy = choosePolicy();
    o.recoveryClasses.push_back(c);
    story_ << ", from port " << c.firstPort << " " << c.policy;
  }
}

void Chaos::chooseShim(TunnelOptions& o) {
  o.ackShim = lanRandom_.chance(0.7);
  o.shim.alpha = 1 + static_cast<uint32_t>(lanRandom_.below(12));
  o.shim.holes = lanRandom_.chance(0.8);
  o.shim.replay = lanRandom_.chance(0.8);
  o.shim.cacheOutgoing = lanRandom_.chance(0.3);
  o.shim.gamma = lanRandom_.chance(0.3) ? 1 << 30 : 100'000;
  say() << "shim " << (o.ackShim ? "on" : "off") << ", alpha " << o.shim.alpha;
}

// The link between a gateway and its host. It never duplicates packets, because that would count as
// an error of the tunnel.
void Chaos::chooseLan(Node& node) {
  if (lanRandom_.chance(0.5)) return;
  LinkOptions lan;
  lan.delay = fromSeconds(0.02 * lanRandom_.uniform());
  if (lanRandom_.chance(0.5)) lan.loss = 0.05 * lanRandom_.uniform();
  if (lanRandom_.chance(0.3)) lan.jitter = lan.delay / 4;
  if (lanRandom_.chance(0.3))
    lan.reorder = 0.1 * lanRandom_.uniform(), lan.reorderDelay = lan.delay / 2;
  node.setLan(lan);
  say() << "LAN of " << node.name() << ": " << toMilliseconds(lan.delay) << " ms, loss " << lan.loss
        << ", reorder " << lan.reorder;
}

LinkOptions Chaos::chooseLink() {
  LinkOptions o;
  o.rateBitsPerSecond = spread(1e6, 200e6);
  o.delay = fromSeconds(spread(0.001, 0.150));
  if (chance(0.3)) o.jitter = o.delay / 4;
  if (chance(0.4)) o.loss = chance(0.3) ? between(0.0, 0.3) : between(0.0, 0.03);
  if (chance(0.2)) o.bursts = {between(0.0, 0.01), between(0.05, 0.5), 0, between(0.5, 1.0)};
  if (chance(0.2)) o.reorder = between(0.0, 0.1), o.reorderDelay = o.delay * 2 / 3;
  if (chance(0.2)) o.duplicate = between(0.0, 0.1);
  if (chance(0.2)) o.corrupt = between(0.0, 0.02);
  if (chance(0.2)) o.mtu = 1300 + random_.below(201);
  if (chance(0.2)) o.ecnThresholdBytes = 20000;
  if (chance(0.1)) o.ecnFault = static_cast<EcnFault>(1 + random_.below(3));
  return o;
}

std::string describe(const LinkOptions& o) {
  std::ostringstream out;
  out << o.rateBitsPerSecond / 1e6 << " Mbit/s " << toMilliseconds(o.delay) << " ms jitter "
      << toMilliseconds(o.jitter) << " loss " << o.loss << " burst " << o.bursts.goodToBad
      << " reorder " << o.reorder << " dup " << o.duplicate << " corrupt " << o.corrupt << " mtu "
      << o.mtu << " ecn " << o.ecnThresholdBytes << " fault " << static_cast<int>(o.ecnFault);
  return out.str();
}

void Chaos::choosePaths() {
  world_.pair(edge_, hub_, chance(0.2) ? 1s : 10s);
  size_t count = 1 + random_.below(4);
  for (size_t i = 0; i < count; ++i) {
    LinkOptions up = chooseLink();
    LinkOptions down = up;
    if (chance(0.3)) {
      down = chooseLink();
      down.mtu = up.mtu;
    }
    Path& path = world_.join(edge_, hub_, "p" + std::to_string(i), up, down, chance(0.2));
    say() << path.name() << " up " << describe(up) << "; down " << describe(down);
    choosePreference(edge_.uplinks.back());
    if (chance(0.3)) path.enableNat(between(5s, 60s), world_.now());
    if (chance(0.1)) path.uplinkMtu = 1300 + random_.below(201);
  }
}

void Chaos::choosePreference(UplinkSpec& uplink) {
  uplink.preference = {};
  uplink.peerCeiling = 0;
  uplink.meter.reset();
  if (chance(0.6)) return;
  PathPreference& p = uplink.preference;
  p.use = static_cast<PathUse>(random_.below(3));
  p.weight = static_cast<uint8_t>(1 + random_.below(PathPreference::kMaxWeight));
  auto ceiling = [&] { return chance(0.5) ? static_cast<uint64_t>(spread(2e5, 1e7)) : 0; };
  p.ceiling = ceiling();
  uplink.peerCeiling = ceiling();
  if (p.use == PathUse::kMetered) uplink.meter = {uint64_t{1} << 40, 0};
  say() << uplink.name << " is " << useName(p.use) << ", weight " << int{p.weight} << ", at most "
        << p.ceiling << " up, " << uplink.peerCeiling << " down";
}

void Chaos::chooseTraffic() {
  size_t transfers = 1 + random_.below(6);
  for (size_t i = 0; i < transfers; ++i) {
    TcpOptions o;
    o.bytes = static_cast<uint64_t>(spread(2000, 1500000));
    o.v6 = chance(0.3);
    o.ecn = chance(0.3);
    bool down = chance(0.6);
    auto port = static_cast<uint16_t>(1000 + i);
    world_.after(between(0s, 3s), [this, o, down, port] {
      tcp_.push_back(&world_.add<TcpFlow>(down ? hub_ : edge_, down ? edge_ : hub_, port, o));
      say() << "tcp " << port << (down ? " down " : " up ") << o.bytes;
    });
  }
  size_t streams = random_.below(4);
  for (size_t i = 0; i < streams; ++i) {
    UdpOptions o;
    o.payload = 16 + random_.below(1184);
    o.interval = between(2ms, 50ms);
    o.count = static_cast<uint64_t>(kTrouble / o.interval);
    o.v6 = chance(0.3);
    o.ecn = chance(0.3);
    bool down = chance(0.5);
    auto port = static_cast<uint16_t>(2000 + i);
    udp_.push_back(&world_.add<UdpFlow>(down ? hub_ : edge_, down ? edge_ : hub_, port, o));
    say() << "udp " << port << (down ? " down " : " up ") << o.payload << " bytes every "
          << toMilliseconds(o.interval);
  }
}

// A recovery class keeps these datagrams in order from the first one on. Their rate is at most that
// of a download. check() requires that each arrives intact and exactly once; order_test.cc checks
// their order.
void Chaos::chooseOrdered() {
  if (lanRandom_.chance(0.5)) return;
  UdpOptions o;
  o.payload = 1000 + lanRandom_.below(200);
  o.interval = 300us + Duration(lanRandom_.below(Duration(5ms).count()));
  o.count = static_cast<uint64_t>(kTrouble / o.interval);
  bool down = lanRandom_.chance(0.7);
  udp_.push_back(&world_.add<UdpFlow>(down ? hub_ : edge_, down ? edge_ : hub_, kOrderedPort, o));
  say() << "ordered datagrams" << (down ? " down " : " up ") << o.payload << " bytes every "
        << toMilliseconds(o.interval) << " ms";
}

void Chaos::chooseTrouble() {
  size_t count = random_.below(25);
  for (size_t i = 0; i < count; ++i) {
    world_.after(between(0s, kTrouble - 1ms), [this] { trouble(); });
  }
}

void Chaos::trouble() {
  Path& path = *world_.paths()[random_.below(world_.paths().size())];
  std::string name = path.name();
  Duration d = fromSeconds(spread(0.02, 2.0));
  Node& node = chance(0.5) ? edge_ : hub_;
  switch (random_.below(12)) {
    case 0:
    case 1: {
      say() << name << " silently dead for " << toMilliseconds(d) << " ms";
      path.change([](LinkOptions& o) { o.down = true; }, world_.now());
      world_.after(
          d, [this, &path] { path.change([](LinkOptions& o) { o.down = false; }, world_.now()); });
      break;
    }
    case 2:
      say() << name << " unplugged for " << toMilliseconds(d) << " ms";
      path.change([](LinkOptions& o) { o.down = true; }, world_.now());
      edge_.setUplink(name, false);
      world_.after(d, [this, &path, name] {
        path.change([](LinkOptions& o) { o.down = false; }, world_.now());
        edge_.setUplink(name, true);
      });
      break;
    case 3:
      say() << name << " gets another NAT mapping";
      path.rebind(chance(0.5));
      break;
    case 4:
      d = fromSeconds(spread(0.001, 20.0));
      say() << node.name() << "'s clock jumps by " << toMilliseconds(d) << " ms";
      node.jumpClock(d);
      jumped_ |= d > 1s;
      break;
    case 5: {
      size_t mtu = 1300 + random_.below(201);
      say() << name << " carries " << mtu << " bytes";
      path.change([&](LinkOptions& o) { o.mtu = mtu; }, world_.now());
      break;
    }
    case 6:
      if (!chance(0.5)) break;
      say() << node.name() << " restarts";
      if (!(chance(0.5) ? node.stop() : node.shutDown()))
        fail("leak: " + node.name() + " kept buffers at its restart");
      node.start();
      break;
    case 7: {
      LinkOptions next = chooseLink();
      next.mtu = path.upOptions().mtu;
      say() << name << " becomes " << describe(next);
      path.change(
          [&](LinkOptions& o) {
            bool down = o.down;
            o = next, o.down = down;
          },
          world_.now());
      break;
    }
    case 8:
      say() << name << " refused by the kernel for " << toMilliseconds(d) << " ms";
      path.unreachable = true;
      world_.after(d, [&path] { path.unreachable = false; });
      break;
    case 9: {
      say() << node.name() << " is configured anew";
      TunnelOptions next = node.options;
      next.scheduler = kPathSchedulerNames[random_.below(std::size(kPathSchedulerNames))];
      next.holdTime = between(20ms, 500ms);
      next.repairTime = between(300ms, 3s);
      next.rekeyPackets = 100 + random_.below(600);
      chooseRecovery(next);
      chooseShim(next);
      node.tunnel().setTunables(next);
      node.tunnel().setPeers(node.peers, node.clock());
      for (UplinkSpec& uplink : edge_.uplinks) choosePreference(uplink);
      edge_.tunnel().setUplinks(edge_.uplinks, edge_.clock());
      break;
    }
    case 10:
      say() << "somebody sends again what he heard, changed or not, from elsewhere or not";
      replay();
      break;
    case 11:
      say() << name << " all paths dead for " << toMilliseconds(d) << " ms";
      for (const auto& each : world_.paths())
        each->change([](LinkOptions& o) { o.down = true; }, world_.now());
      world_.after(d, [this] {
        for (const auto& each : world_.paths())
          each->change([](LinkOptions& o) { o.down = false; }, world_.now());
      });
      break;
  }
}

void Chaos::replay() {
  for (const auto& [path, wire] : heard_) {
    Bytes bytes = wire.bytes;
    if (chance(0.5) && !bytes.empty())
      bytes[random_.below(bytes.size())] ^= static_cast<uint8_t>(1 + random_.below(255));
    if (chance(0.1)) bytes.resize(random_.below(bytes.size() + 1));
    Endpoint from = wire.src;
    if (chance(0.5)) from.port = static_cast<uint16_t>(random_.below(65536));
    world_.inject(hub_, Route{path->far().socket, path->far().endpoint.address, from}, bytes);
  }
}

void Chaos::heal() {
  say() << "paths heal";
  for (const auto& path : world_.paths()) {
    path->change(
        [](LinkOptions& o) {
          o.loss = std::min(o.loss, 0.02);
          o.bursts = {};
          o.corrupt = 0;
        },
        world_.now());
  }
}

void Chaos::checkMemory() {
  for (Node* node : {&edge_, &hub_}) {
    TunnelStatus s = node->status();
    for (const PeerStatus& p : s.peers) {
      size_t queued = 0;
      for (const FlowStatus& f : p.flows) queued += f.queuedBytes;
      if (queued > node->options.queueBytes)
        fail("memory: " + node->name() + " queues more than it may");
      if (s.shim.cachedPackets > node->options.shim.cachePackets ||
          s.shim.flows > node->options.shim.maxFlows)
        fail("memory: the shim of " + node->name() + " keeps more than it may");
      if (p.heldBytes > node->options.holdBytes)
        fail("memory: " + node->name() + " holds more than it may");
    }
  }
}

void Chaos::check() {
  for (const TcpFlow* f : tcp_) {
    if (f->wrongBytes() > 0) fail("wrong bytes: " + f->describe());
  }
  for (const UdpFlow* f : udp_) {
    if (f->wrong() > 0) fail("wrong datagrams: " + std::to_string(f->wrong()));
    if (f->duplicates() > 0) fail("duplicate datagrams: " + std::to_string(f->duplicates()));
  }
  for (Node* node : {&edge_, &hub_}) {
    if (node->badPackets > 0) fail("bad packets out of the device of " + node->name());
  }
  if (!world_.failure().empty()) fail("livelock: " + world_.failure());
}

ChaosResult Chaos::run() {
  chooseOptions();
  choosePaths();
  world_.onWire = [this](Path& path, bool up, const WireDatagram& wire) {
    if (!up || wire.bytes.size() % 7 != 0) return;
    if (heard_.size() >= 32) heard_.erase(heard_.begin());
    heard_.emplace_back(&path, wire);
  };
  world_.start();
  chooseTraffic();
  chooseOrdered();
  chooseTrouble();
  for (int i = 1; i < 20; ++i) world_.after(i * 250ms, [this] { checkMemory(); });
  world_.run(kTrouble);
  heal();
  world_.run(2s);  // time of the last scheduled repair of a path
  bool done = world_.runUntil(
      [&] {
        return std::all_of(tcp_.begin(), tcp_.end(), [](const TcpFlow* f) { return f->done(); });
      },
      kPatience);
  check();
  if (!done) {
    std::string stuck;
    for (const TcpFlow* f : tcp_) {
      if (!f->done()) stuck += f->describe() + "\n";
    }
    fail("stuck: " + stuck + world_.report());
  }
  if (failure_.empty()) {
    // A jump of the clock also gives a wrong RTT sample. Until its effect is gone, losses are
    // detected late.
    world_.run(jumped_ ? 4 * kDrain : kDrain);
    check();
    for (Node* node : {&edge_, &hub_}) {
      if (node->pool().inUse() > 0)
        fail("kept: " + node->name() + " keeps buffers when idle\n" + world_.report());
    }
    uint64_t before = edge_.sentDatagrams + hub_.sentDatagrams;
    world_.run(30s);
    check();
    uint64_t idle = edge_.sentDatagrams + hub_.sentDatagrams - before;
    // Keepalives in both directions with their ACKs, and a few packets for lost ones and the MTU
    // search.
    uint64_t keepalives =
        world_.paths().size() * static_cast<uint64_t>(30s / edge_.peers[0].keepalive + 1) * 4;
    if (idle > keepalives * 2 + 300)
      fail("chatter: " + std::to_string(idle) + " datagrams in 30 idle seconds\n" +
           world_.report());
  }
  ChaosResult result;
  result.virtualSeconds = toSeconds(world_.now().time_since_epoch());
  result.datagrams = edge_.sentDatagrams + hub_.sentDatagrams;
  result.hash = world_.hash();
  if (!failure_.empty()) story_ << "\n" << world_.report();
  for (Node* node : {&edge_, &hub_}) {
    if (!node->stop()) fail("leak: " + node->name() + " kept buffers at its end");
  }
  result.failure = failure_;
  result.story = story_.str();
  return result;
}

}  // namespace

ChaosResult chaosRun(uint64_t seed) {
  return Chaos(seed).run();
}

}  // namespace braid::sim
