#include "tests/sim/stream_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <sstream>

#include "scheduler/path/path_scheduler.h"
#include "simnet/tcp/tcp_flow.h"
#include "simnet/world.h"

namespace braid::sim {

namespace {

/// Faults are injected for this time.
constexpr Duration kTrouble = 6s;
/// Every stream must have ended this long after the last fault.
constexpr Duration kPatience = 120s;
/// This much later no memory of any stream may be held.
constexpr Duration kDrain = 30s;

uint8_t byteOf(uint64_t key, uint64_t offset) {
  uint64_t z = (key + offset / 8) * 0x9e3779b97f4a7c15;
  z ^= z >> 29;
  return static_cast<uint8_t>(z >> (8 * (offset % 8)));
}

enum class Kind : uint8_t { kWhole, kHalfClosed, kStalled, kReset, kRefused, kIdle };

/// One end of a stream.
struct End {
  Node* node = nullptr;
  StreamHandle handle;
  uint64_t key = 0;       ///< of what it sends
  uint64_t otherKey = 0;  ///< of what it gets
  uint64_t toSend = 0;
  uint64_t sent = 0, received = 0;
  bool stalls = false;     ///< does not read for now
  bool waits = false;      ///< sends only after the other end has finished
  bool keepsOpen = false;  ///< never finishes; only a reset ends its stream
  bool lost = false;       ///< its gateway has crashed
  bool finished = false;
  bool atEnd = false;
  bool done = false;
  bool resetsItself = false;
  bool wasHalfClosed = false;  ///< it received the other's end and continued to send
  bool hasStalled = false;     ///< bytes have waited until it read again
  std::optional<StreamCause> reset;
  bool isCut() const { return reset || lost || resetsItself; }
  bool isOver() const { return done || isCut(); }
};

struct Connection {
  Kind kind = Kind::kWhole;
  StreamEnds ends;
  End client, server;
  End* troubled = nullptr;  ///< the end that resets, or that does not read for a while
  bool isHalfClosed() const { return client.wasHalfClosed || server.wasHalfClosed; }
  bool isStalled() const { return client.hasStalled || server.hasStalled; }
  bool isTroubled() const {
    return client.isCut() || server.isCut() || isHalfClosed() || isStalled();
  }
};

class StreamChaos {
 public:
  explicit StreamChaos(uint64_t seed)
      : random_(seed ^ 0x57e4),
        world_(seed),
        edge_(world_.addNode("edge")),
        hub_(world_.addNode("hub")) {}

  StreamRunResult run();

 private:
  double between(double a, double b) { return a + (b - a) * random_.uniform(); }
  Duration between(Duration a, Duration b) {
    return a + Duration(random_.below(static_cast<uint64_t>((b - a).count()) + 1));
  }
  double spread(double a, double b) { return a * std::pow(b / a, random_.uniform()); }
  bool chance(double p) { return random_.chance(p); }
  std::ostringstream& say() {
    story_ << "\n" << toMilliseconds(world_.now().time_since_epoch()) << " ms: ";
    return story_;
  }
  void fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }

  LinkOptions chooseLink();
  void choose();
  void chooseTrouble();
  void trouble();
  void restart(Node& node);
  void choose(Connection& c, size_t number);
  void open(size_t number);
  void resetAfter(Connection& c, Duration wait);
  void wakeAfter(Connection& c, Duration wait);
  void listen(Node& node);
  void onEvent(Node& node, const StreamEvent& event);
  void pump(End& end);
  void write(End& end);
  void read(End& end);
  void resetNow(End& end, StreamCause cause);
  void judge();
  bool allOver() const;
  std::string describe(size_t number) const;

  Random random_;
  World world_;
  Node& edge_;
  Node& hub_;
  std::deque<Connection> connections_;
  std::map<std::pair<Node*, StreamHandle>, End*> ends_;
  std::vector<uint8_t> space_;
  uint64_t bytes_ = 0;
  bool calm_ = true;  ///< true while nothing has happened that may end a stream
  std::ostringstream story_;
  std::string failure_;
};

LinkOptions StreamChaos::chooseLink() {
  LinkOptions o;
  o.rateBitsPerSecond = spread(2e6, 200e6);
  o.delay = fromSeconds(spread(0.001, 0.100));
  if (chance(0.3)) o.jitter = o.delay / 4;
  if (chance(0.6)) o.loss = between(0.0, chance(0.2) ? 0.2 : 0.04);
  if (chance(0.2)) o.bursts = {between(0.0, 0.01), between(0.05, 0.5), 0, between(0.5, 1.0)};
  if (chance(0.3)) o.reorder = between(0.0, 0.1), o.reorderDelay = o.delay * 2 / 3;
  if (chance(0.2)) o.duplicate = between(0.0, 0.1);
  if (chance(0.1)) o.corrupt = between(0.0, 0.02);
  if (chance(0.3)) o.mtu = 1300 + random_.below(201);
  return o;
}

void StreamChaos::choose() {
  TunnelOptions o;
  o.streams.on = true;
  o.streams.firstUpload = static_cast<size_t>(spread(2000, 200000));
  o.streams.firstCredit = static_cast<size_t>(spread(2000, 400000));
  o.streams.mostCredit = static_cast<size_t>(spread(400000, 8e6));
  o.repairTime = between(1s, 3s);
  static constexpr std::array kPolicies{"none",      "fuso",      "cofuso",
                                        "redundant", "proactive", "adaptive"};
  o.recovery = kPolicies[random_.below(kPolicies.size())];
  o.scheduler = kPathSchedulerNames[random_.below(std::size(kPathSchedulerNames))];
  o.decodeBuffer = chance(0.2) ? 0 : 1024;
  if (chance(0.3)) o.rekeyPackets = 100 + random_.below(600);
  edge_.options = hub_.options = o;
  edge_.poolLimit = hub_.poolLimit = chance(0.2) ? 2000 : 16384;
  say() << o.recovery << ", " << o.scheduler << ", pool " << edge_.poolLimit << ", credit "
        << o.streams.firstUpload << " up " << o.streams.firstCredit << " back, repair "
        << toMilliseconds(o.repairTime);
  world_.pair(edge_, hub_);
  size_t paths = 1 + random_.below(3);
  for (size_t i = paths; i > 0; --i) {
    LinkOptions up = chooseLink(), down = chance(0.3) ? chooseLink() : up;
    // Loss bursts are counted in packets. A single silent path sends few packets, so a burst may
    // last longer than repairTime.
    if (paths == 1 && (up.bursts.goodToBad > 0 || down.bursts.goodToBad > 0)) calm_ = false;
    down.mtu = up.mtu;
    Path& path = world_.join(edge_, hub_, "p" + std::to_string(i), up, down);
    say() << path.name() << " " << up.rateBitsPerSecond / 1e6 << " Mbit/s "
          << toMilliseconds(up.delay) << " ms, loss " << up.loss << ", mtu " << up.mtu;
  }
}

void StreamChaos::chooseTrouble() {
  if (chance(0.3)) return;
  for (size_t i = random_.below(12); i > 0; --i)
    world_.after(between(1s, kTrouble), [this] { trouble(); });
}

void StreamChaos::restart(Node& node) {
  for (Connection& c : connections_)
    for (End* end : {&c.client, &c.server})
      if (end->node == &node && !end->isOver() && end->handle) end->lost = true;
  std::erase_if(ends_, [&](const auto& e) { return e.first.first == &node; });
  if (!node.stop()) fail("leak: " + node.name() + " kept buffers at its restart");
  node.start();
}

void StreamChaos::trouble() {
  Path& path = *world_.paths()[random_.below(world_.paths().size())];
  auto setDown = [&](Path& p, bool down) {
    p.change([&](LinkOptions& o) { o.down = down; }, world_.now());
  };
  switch (random_.below(7)) {
    case 0:
    case 1: {
      Duration d = fromSeconds(spread(0.02, 6.0));
      calm_ &= world_.paths().size() > 1 && d < 500ms;
      say() << path.name() << " dead for " << toMilliseconds(d);
      setDown(path, true);
      world_.after(d, [&path, setDown] { setDown(path, false); });
      break;
    }
    case 2: {
      size_t mtu = 1300 + random_.below(201);
      say() << path.name() << " carries " << mtu;
      calm_ = false;  // a path with a reduced MTU is silent until that is noticed
      path.change([&](LinkOptions& o) { o.mtu = mtu; }, world_.now());
      break;
    }
    case 3: {
      if (!chance(0.3)) break;
      calm_ = false;
      Node& node = chance(0.5) ? edge_ : hub_;
      say() << node.name() << " crashes";
      restart(node);
      break;
    }
    case 4: {
      calm_ = false;
      Duration d = fromSeconds(spread(0.1, 10.0));
      say() << "all paths dead for " << toMilliseconds(d);
      for (const auto& each : world_.paths()) setDown(*each, true);
      world_.after(d, [this, setDown] {
        for (const auto& each : world_.paths()) setDown(*each, false);
      });
      break;
    }
    case 5: {
      calm_ = false;
      Duration d = fromSeconds(spread(0.1, 4.0));
      say() << path.name() << " unplugged for " << toMilliseconds(d);
      std::string name = path.name();
      edge_.setUplink(name, false);
      world_.after(d, [this, name] { edge_.setUplink(name, true); });
      break;
    }
    default:
      say() << path.name() << " loses more";
      path.change([&](LinkOptions& o) { o.loss = between(0.0, 0.1); }, world_.now());
  }
}

std::string StreamChaos::describe(size_t number) const {
  const Connection& c = connections_[number];
  std::ostringstream out;
  out << "stream " << number << " of kind " << static_cast<int>(c.kind);
  for (const End* end : {&c.client, &c.server}) {
    out << ", " << (end == &c.client ? "client" : "server") << " sent " << end->sent << " of "
        << end->toSend << " got " << end->received << (end->finished ? " finished" : "")
        << (end->atEnd ? " at end" : "") << (end->done ? " done" : "") << (end->lost ? " lost" : "")
        << (end->handle ? "" : " unknown");
    if (end->reset) out << " reset " << static_cast<int>(*end->reset);
  }
  return out.str();
}

// Every second stream is half-closed, stalled or reset.
void StreamChaos::choose(Connection& c, size_t number) {
  bool up = chance(0.7), v6 = chance(0.3);
  c.client.node = up ? &edge_ : &hub_;
  c.server.node = up ? &hub_ : &edge_;
  c.ends.source = {c.client.node->host(v6), static_cast<uint16_t>(1000 + number)};
  c.ends.destination = {c.server.node->host(v6), 443};
  c.client.key = c.server.otherKey = random_.next();
  c.server.key = c.client.otherKey = random_.next();
  c.client.toSend = static_cast<uint64_t>(spread(1, chance(0.2) ? 500000 : 3000));
  c.server.toSend = static_cast<uint64_t>(spread(1, chance(0.3) ? 1500000 : 30000));
  c.troubled = chance(0.5) ? &c.client : &c.server;
  bool second = number % 2 == 0;
  if (second) {
    c.kind = static_cast<Kind>(1 + random_.below(3));
  } else {
    c.kind = chance(0.6) ? Kind::kWhole : static_cast<Kind>(1 + random_.below(5));
  }
  if (c.kind == Kind::kReset) c.troubled->keepsOpen = second;
  if (c.kind == Kind::kStalled) c.troubled->stalls = true;
  if (c.kind == Kind::kHalfClosed) c.server.waits = true;
  if (c.kind == Kind::kHalfClosed || c.kind == Kind::kStalled) return;
  if (chance(0.05)) c.client.toSend = 0;
  if (chance(0.05)) c.server.toSend = 0;
}

void StreamChaos::open(size_t number) {
  Connection& c = connections_[number];
  if (!c.client.node->isRunning()) return;
  StreamApi& lanes = c.client.node->streams();
  if (!lanes.canOpen(c.ends.destination.address)) {
    // No path is available now. In reality the connection would use the packet lane; here it is
    // retried.
    world_.after(200ms, [this, number] { open(number); });
    return;
  }
  c.client.handle = lanes.open(c.ends, c.client.node->clock());
  if (!c.client.handle) {
    world_.after(200ms, [this, number] { open(number); });
    return;
  }
  ends_[{c.client.node, c.client.handle}] = &c.client;
  pump(c.client);
  if (c.kind == Kind::kReset) resetAfter(c, fromSeconds(spread(0.001, 4.0)));
  if (c.kind == Kind::kStalled) wakeAfter(c, between(100ms, 5s));
}

void StreamChaos::resetAfter(Connection& c, Duration wait) {
  world_.after(wait, [this, &c] {
    if (c.troubled->isOver()) return;
    if (c.troubled->handle) return resetNow(*c.troubled, StreamCause::kReset);
    if (!c.client.isOver()) resetAfter(c, 200ms);  // the server does not know the stream yet
  });
}

// Wakes the stalled end after `wait`, or later if no bytes wait for it yet.
void StreamChaos::wakeAfter(Connection& c, Duration wait) {
  world_.after(wait, [this, &c] {
    End& slow = *c.troubled;
    if (slow.isOver() || (!slow.handle && c.client.isOver())) return;
    if (!slow.handle || slow.node->streams().readable(slow.handle) == 0) return wakeAfter(c, 200ms);
    slow.stalls = false;
    slow.hasStalled = true;
    pump(slow);
  });
}

void StreamChaos::resetNow(End& end, StreamCause cause) {
  end.resetsItself = true;
  ends_.erase({end.node, end.handle});
  end.node->streams().reset(end.handle, cause, end.node->clock());
}

void StreamChaos::listen(Node& node) {
  node.onStream = [this, &node](const StreamEvent& event) { onEvent(node, event); };
}

void StreamChaos::onEvent(Node& node, const StreamEvent& event) {
  if (event.opened) {
    const StreamEnds* ends = node.streams().ends(event.stream);
    if (!ends) return fail("opened: a stream that is not there");
    size_t number = ends->source.port - 1000u;
    if (number >= connections_.size()) return fail("opened: a stream that nobody opened");
    Connection& c = connections_[number];
    if (c.server.node != &node || c.ends != *ends)
      return fail("opened: with other ends, " + describe(number));
    if (c.server.handle && !c.server.isOver()) return fail("opened twice: " + describe(number));
    c.server.handle = event.stream;
    if (c.kind == Kind::kRefused) return resetNow(c.server, StreamCause::kRefused);
    ends_[{&node, event.stream}] = &c.server;
  }
  auto found = ends_.find({&node, event.stream});
  if (found == ends_.end()) return;
  End& end = *found->second;
  if (event.reset) end.reset = event.reset;
  if (event.done) end.done = end.atEnd = true;
  if (end.isOver()) {
    ends_.erase(found);
    return;
  }
  pump(end);
}

// Acts like a driver: reads what is there, writes what the stream accepts, and signals the end.
void StreamChaos::pump(End& end) {
  if (!end.stalls) read(end);
  if (end.isOver() || (end.waits && !end.atEnd)) return;
  end.wasHalfClosed |= end.waits && !end.finished;
  write(end);
}

void StreamChaos::read(End& end) {
  StreamApi& lanes = end.node->streams();
  while (lanes.readable(end.handle) > 0) {
    std::array<ByteView, 4> views;
    size_t n = lanes.peek(end.handle, views);
    size_t most = 1 + random_.below(100000), taken = 0;
    for (size_t i = 0; i < n && taken < most; ++i) {
      ByteView view = views[i].first(std::min(views[i].size(), most - taken));
      for (uint8_t byte : view) {
        if (byte != byteOf(end.otherKey, end.received))
          return fail("wrong byte at " + std::to_string(end.received));
        ++end.received;
      }
      taken += view.size();
    }
    bytes_ += taken;
    lanes.consume(end.handle, taken, end.node->clock());
  }
  if (lanes.isAtEnd(end.handle)) end.atEnd = true;
}

void StreamChaos::write(End& end) {
  StreamApi& lanes = end.node->streams();
  Time now = end.node->clock();
  while (end.sent < end.toSend) {
    size_t want =
        static_cast<size_t>(std::min<uint64_t>(end.toSend - end.sent, 1 + random_.below(60000)));
    size_t may = lanes.writable(end.handle, want);
    if (may == 0) return;
    want = std::min(want, may);
    if (chance(0.5)) {
      std::array<ByteSpan, 16> buffers;
      size_t n = lanes.room(end.handle, buffers), filled = 0;
      for (size_t i = 0; i < n; ++i)
        for (uint8_t& byte : buffers[i].first(std::min(buffers[i].size(), want - filled)))
          byte = byteOf(end.key, end.sent + filled++);
      lanes.commit(end.handle, filled, now);
      end.sent += filled;
      if (filled == 0) return;
    } else {
      space_.resize(want);
      for (size_t i = 0; i < want; ++i) space_[i] = byteOf(end.key, end.sent + i);
      size_t taken = lanes.write(end.handle, space_, now);
      end.sent += taken;
      if (taken == 0) return;
    }
  }
  if (end.finished || end.keepsOpen) return;
  end.finished = true;
  lanes.finish(end.handle, now);
}

bool StreamChaos::allOver() const {
  return std::all_of(connections_.begin(), connections_.end(), [](const Connection& c) {
    return (c.client.isOver() && (!c.server.handle || c.server.isOver()));
  });
}

void StreamChaos::judge() {
  for (size_t i = 0; i < connections_.size(); ++i) {
    const Connection& c = connections_[i];
    const End &a = c.client, &b = c.server;
    if (!a.isOver() || (b.handle && !b.isOver())) fail("hangs: " + describe(i));
    for (const End* end : {&a, &b})
      if (end->done && (end->received != (end == &a ? b : a).toSend || end->sent != end->toSend))
        fail("done and not whole: " + describe(i));
    // An end that reports "done" must really be complete. An end that was reset must have the right
    // reason.
    if (!calm_) continue;
    switch (c.kind) {
      case Kind::kRefused:
        if (a.reset != StreamCause::kRefused) fail("not refused: " + describe(i));
        break;
      case Kind::kReset:
        if ((a.resetsItself && !(b.reset == StreamCause::kReset || b.done || !b.handle)) ||
            (b.resetsItself && !(a.reset == StreamCause::kReset || a.done)))
          fail("no reset: " + describe(i));
        break;
      default:
        if (!a.done || !b.done) fail("not done: " + describe(i));
    }
  }
  auto troubled = std::count_if(connections_.begin(), connections_.end(),
                                [](const Connection& c) { return c.isTroubled(); });
  if (2 * static_cast<size_t>(troubled) < connections_.size())
    fail("tame: " + std::to_string(troubled) + " of " + std::to_string(connections_.size()) +
         " streams were reset, half-closed or stalled");
  for (Node* node : {&edge_, &hub_}) {
    for (const PeerStatus& p : node->status().peers) {
      if (p.streamCount > 0 || p.streamsHeldBytes > 0)
        fail("kept: " + node->name() + " keeps streams");
    }
    if (node->pool().inUse() > 0)
      fail("kept: " + node->name() + " keeps buffers when idle\n" + world_.report());
  }
}

StreamRunResult StreamChaos::run() {
  choose();
  for (Node* node : {&edge_, &hub_}) listen(*node);
  world_.start();
  size_t count = 10 + random_.below(60);
  for (size_t i = 0; i < count; ++i) {
    Connection& c = connections_.emplace_back();
    choose(c, i);
    Duration begins = between(500ms, 4s);
    if (c.kind == Kind::kIdle) {
      End& idle = chance(0.5) ? c.client : c.server;
      uint64_t rest = idle.toSend;
      idle.waits = true;
      world_.after(kTrouble + 2s, [this, &idle, rest] {
        idle.waits = false;
        idle.toSend = rest;
        if (idle.handle && !idle.isOver()) pump(idle);
      });
    }
    world_.after(begins, [this, i] { open(i); });
  }
  chooseTrouble();
  world_.run(kTrouble + 11s);
  for (const auto& path : world_.paths())
    path->change(
        [](LinkOptions& o) {
          o.down = false;
          o.loss = std::min(o.loss, 0.02);
          o.bursts = {};
          o.corrupt = 0;
        },
        world_.now());
  world_.runUntil([this] { return allOver() || !failure_.empty(); }, kPatience);
  world_.run(kDrain);
  if (failure_.empty()) judge();
  if (!world_.failure().empty()) fail("livelock: " + world_.failure());
  StreamRunResult result;
  result.virtualSeconds = toSeconds(world_.now().time_since_epoch());
  result.datagrams = edge_.sentDatagrams + hub_.sentDatagrams;
  result.hash = world_.hash();
  result.bytes = bytes_;
  for (const Connection& c : connections_) {
    ++result.streams;
    result.whole += c.client.done && c.server.done;
    result.reset += c.client.reset || c.server.reset;
    result.halfClosed += c.isHalfClosed();
    result.stalled += c.isStalled();
    result.troubled += c.isTroubled();
  }
  if (!failure_.empty()) story_ << "\n" << world_.report();
  for (Node* node : {&edge_, &hub_}) {
    if (!node->stop()) fail("leak: " + node->name() + " kept buffers at its end");
  }
  result.failure = failure_;
  result.story = story_.str();
  return result;
}

}  // namespace

StreamRunResult streamRun(uint64_t seed) {
  return StreamChaos(seed).run();
}

}  // namespace braid::sim
