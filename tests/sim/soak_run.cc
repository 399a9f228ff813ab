#include "tests/sim/soak_run.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "inet/ip.h"
#include "simnet/tcp/tcp_flow.h"
#include "simnet/world.h"

namespace braid::sim {

namespace {

constexpr uint64_t kTransfer = 100'000'000;  // bytes
constexpr Duration kRekey = 60s, kFlapEvery = 47s, kMoveEvery = 5min + 13s,
                   kReloadEvery = 5min + 3s;
constexpr Duration kStill = 60s;
// After this time nothing of a complete transfer is under way, and none of its timers is armed.
constexpr Duration kOver = 10min;

class Soak {
 public:
  explicit Soak(uint64_t seed)
      : random_(seed ^ 0x50a4),
        world_(seed),
        edge_(world_.addNode("edge")),
        hub_(world_.addNode("hub")) {}

  SoakResult run(Duration length, const std::function<void()>& eachMinute);

 private:
  void transfer(size_t which);
  void flap();
  void move();
  void reload();
  void look(size_t which);
  void takeEvents();
  void forgetTransfers();

  struct Transfer {
    std::unique_ptr<TcpFlow> flow;
    uint16_t port = 0;
  };

  Random random_;
  World world_;
  Node& edge_;
  Node& hub_;
  std::array<Transfer, 2> transfers_;            // one each way
  std::deque<std::pair<Time, Transfer>> ended_;  // those before, and when they ended
  uint16_t nextPort_ = 1000;
  bool ending_ = false;
  std::vector<std::unique_ptr<TcpFlow>> unfinished_;
  SoakResult result_;
};

void Soak::transfer(size_t which) {
  TcpOptions o;
  o.bytes = kTransfer;
  o.v6 = random_.chance(0.3);
  o.ecn = random_.chance(0.3);
  nextPort_ = static_cast<uint16_t>(nextPort_ < 60000 ? nextPort_ + 1 : 1000);
  if (transfers_[which].flow) ended_.emplace_back(world_.now(), std::move(transfers_[which]));
  transfers_[which] = {
      std::make_unique<TcpFlow>(world_, which ? edge_ : hub_, which ? hub_ : edge_, nextPort_, o),
      nextPort_};
}

// Runs every second: starts the next transfer when the last one is complete.
void Soak::look(size_t which) {
  const TcpFlow& flow = *transfers_[which].flow;
  bool still = world_.now() - flow.finishedAt() > kStill;
  if (flow.done() || still) {
    result_.resets += !flow.done();
    result_.wrongBytes += flow.wrongBytes();
    result_.transferred += flow.received();
    if (!ending_) transfer(which);
  }
  if (!ending_) world_.after(1s, [this, which] { look(which); });
}

// Fails one path at a time, so that the peer stays up, with and without notice.
void Soak::flap() {
  if (ending_) return;
  ++result_.flaps;
  Path* path = world_.paths()[random_.below(2)].get();
  bool told = random_.chance(0.5);
  path->change([](LinkOptions& o) { o.down = true; }, world_.now());
  if (told) edge_.setUplink(path->name(), false);
  world_.after(fromSeconds(0.05 + 5 * random_.uniform()), [this, path, told] {
    path->change([](LinkOptions& o) { o.down = false; }, world_.now());
    if (told) edge_.setUplink(path->name(), true);
  });
  world_.after(kFlapEvery, [this] { flap(); });
}

void Soak::move() {
  if (ending_) return;
  ++result_.moves;
  world_.paths()[random_.below(2)]->rebind(random_.chance(0.5));
  world_.after(kMoveEvery, [this] { move(); });
}

// Every gateway uses every policy within each hour, so that the memory use of the hours can be
// compared.
void Soak::reload() {
  if (ending_) return;
  static constexpr std::array kPolicies{"none", "fuso", "cofuso", "adaptive", "corrective"};
  Node& node = result_.reloads % 2 ? hub_ : edge_;
  TunnelOptions next = node.options;
  next.recovery = kPolicies[result_.reloads / 2 % kPolicies.size()];
  ++result_.reloads;
  next.ackShim = random_.chance(0.5);
  node.tunnel().setTunables(next);
  node.tunnel().setPeers(node.peers, node.clock());
  edge_.tunnel().setUplinks(edge_.uplinks, edge_.clock());
  world_.after(kReloadEvery, [this] { reload(); });
}

// Otherwise the simulated hosts' memory would grow with every transfer, beside that of the
// gateways.
void Soak::forgetTransfers() {
  for (; !ended_.empty() && world_.now() - ended_.front().first > kOver; ended_.pop_front()) {
    Transfer& transfer = ended_.front().second;
    if (!transfer.flow->done()) {  // its sender goes on
      unfinished_.push_back(std::move(transfer.flow));
      continue;
    }
    for (Node* node : {&edge_, &hub_})
      node->listen(ip::kTcp, transfer.port, [](ByteView, const InnerPacket&) {});
  }
}

void Soak::takeEvents() {
  for (Node* node : {&edge_, &hub_}) {
    result_.rekeys += node->countEvents(Event::Kind::kRekeyed);
    result_.resets += node->countEvents(Event::Kind::kPeerDown);
    node->events.clear();
  }
}

SoakResult Soak::run(Duration length, const std::function<void()>& eachMinute) {
  edge_.options.rekeyAfter = hub_.options.rekeyAfter = kRekey;
  edge_.options.recovery = hub_.options.recovery = "cofuso";  // block numbers wrap after some hours
  world_.pair(edge_, hub_, 10s);
  LinkOptions dsl{.rateBitsPerSecond = 0.8e6, .delay = 15ms, .loss = 0.005};
  LinkOptions lte{.rateBitsPerSecond = 0.4e6, .delay = 40ms, .loss = 0.01};
  world_.join(edge_, hub_, "dsl", dsl, dsl).enableNat(0s, world_.now());
  world_.join(edge_, hub_, "lte", lte, lte).enableNat(0s, world_.now());
  world_.start();
  world_.run(2s);
  edge_.events.clear();
  hub_.events.clear();
  for (size_t which : {0, 1}) {
    transfer(which);
    look(which);
  }
  flap();
  move();
  reload();
  for (Duration gone{}; gone < length && world_.failure().empty();) {
    Duration part = std::min<Duration>(length - gone, 1min);
    world_.run(part);
    gone += part;
    takeEvents();
    forgetTransfers();
    for (Node* node : {&edge_, &hub_}) node->pool().shrink();  // as the gateway does
    if (eachMinute) eachMinute();
  }
  for (const Transfer& transfer : transfers_) {
    result_.wrongBytes += transfer.flow->wrongBytes();
    result_.transferred += transfer.flow->received();
  }
  ending_ = true;
  result_.datagrams = edge_.sentDatagrams + hub_.sentDatagrams;
  result_.broken = world_.failure();
  for (Node* node : {&edge_, &hub_}) {
    if (node->badPackets > 0) result_.broken += node->name() + " delivered malformed packets";
    if (!node->shutDown()) ++result_.keptPackets;
  }
  return result_;
}

}  // namespace

SoakResult soakRun(uint64_t seed, Duration length, const std::function<void()>& eachMinute) {
  return Soak(seed).run(length, eachMinute);
}

}  // namespace braid::sim
