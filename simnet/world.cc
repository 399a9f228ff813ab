#include "simnet/world.h"

#include <algorithm>
#include <sstream>

namespace braid::sim {

namespace {
constexpr size_t kMaxEvents = 100000;
/// Size of a datagram's IP and UDP headers.
size_t outerBytes(const WireDatagram& d) {
  return d.bytes.size() + (d.dst.address.isV6() ? 48 : 28);
}
}  // namespace

World::World(uint64_t seed) : Timeline(seed), seed_(seed) {}

World::~World() {
  for (auto& node : nodes_) node->stop();
}

Node& World::addNode(std::string name, TunnelOptions options) {
  auto number = static_cast<unsigned>(nodes_.size() + 1);
  nodes_.push_back(
      std::make_unique<Node>(*this, number, std::move(name), std::move(options), random().next()));
  wakes_.add();
  return *nodes_.back();
}

namespace {
PeerOptions describe(const Node& node, Duration keepalive) {
  PeerOptions p;
  p.name = node.name();
  p.pin = pinOf(node.number());
  std::string n = std::to_string(node.number());
  p.prefixes = {Prefix::parse("10." + n + ".0.0/16").value(),
                Prefix::parse("fd00:" + n + "::/32").value()};
  p.keepalive = keepalive;
  return p;
}

Endpoint farEndpoint(const Node& node, bool v6) {
  std::string n = std::to_string(node.number());
  return {address(v6 ? "2001:db8:ffff::" + n : "203.0.113." + n), 4500};
}
}  // namespace

void World::pair(Node& initiator, Node& responder, Duration keepalive) {
  initiator.peers.push_back(describe(responder, keepalive));
  responder.peers.push_back(describe(initiator, keepalive));
}

Path& World::join(Node& initiator, Node& responder, const std::string& name, LinkOptions up,
                  LinkOptions down, bool v6) {
  auto id = static_cast<SocketId>(paths_.size() + 10);
  std::string n = std::to_string(id);
  Endpoint own{
      address(v6 ? "2001:db8:" + n + "::1"
                 : "198." + std::to_string(51 + id / 256) + "." + std::to_string(id % 256) + ".1"),
      static_cast<uint16_t>(40000 + id)};
  Endpoint remote = farEndpoint(responder, v6);
  PathEnd near{&initiator, id, own};
  PathEnd far{&responder, static_cast<SocketId>(v6 ? 2 : 1), remote};
  paths_.push_back(std::make_unique<Path>(name, near, far, std::move(up), std::move(down),
                                          random().next(), now_));
  pathNext_.resize(2 * paths_.size(), kNever);
  for (size_t i = 0; i < paths_.size(); ++i) {
    paths_[i]->up_.publish(&pathNext_[2 * i]);
    paths_[i]->down_.publish(&pathNext_[2 * i + 1]);
  }

  UplinkSpec uplink;
  uplink.name = name;
  uplink.sockets = {{id, own.address.family}};
  initiator.uplinks.push_back(uplink);
  for (PeerOptions& p : initiator.peers) {
    if (p.name != responder.name()) continue;
    if (std::find(p.endpoints.begin(), p.endpoints.end(), remote) == p.endpoints.end())
      p.endpoints.push_back(remote);
  }
  return *paths_.back();
}

Path& World::path(std::string_view name) {
  for (auto& p : paths_) {
    if (p->name() == name) return *p;
  }
  throw std::invalid_argument("no path " + std::string(name));
}

SharedLink& World::addLink(LinkOptions options) {
  links_.push_back(std::make_unique<SharedLink>(std::move(options), random().next(), now_));
  linkNext_.resize(links_.size(), kNever);
  for (size_t i = 0; i < links_.size(); ++i) links_[i]->publish(&linkNext_[i]);
  return *links_.back();
}

void World::start() {
  for (auto& node : nodes_) node->start();
}

void World::inject(Node& to, const Route& from, ByteView bytes, Ecn ecn) {
  Packet packet = to.pool_->copy(bytes);
  if (!packet) return;
  to.tunnel_->onDatagram(from, ecn, std::move(packet), to.clock());
  to.touch();
}

// ---- the event loop

Time World::wakeTime(const Node& node) const {
  if (!node.tunnel_) return kNever;
  if (node.dirty_) return now_;
  if (node.deadline_ == kNever) return kNever;
  Time due = node.deadline_ < Time{} ? Time{} : node.deadline_ - node.ahead_;
  return std::max({due, node.retryAt_, now_});
}

Time World::nextWake() {
  if (wakes_.next(0) < wakes_.size()) return now_;
  Time next =
      std::min(nextTimer(), wakes_.nextTime([this](size_t i) { return wakeTime(*nodes_[i]); }));
  for (Time t : pathNext_) next = std::min(next, t);
  for (Time t : linkNext_) next = std::min(next, t);
  for (const Node* node : withLan_) next = std::min(next, node->nextOnLan());
  return next;
}

bool World::step(Time limit) {
  if (!failure_.empty()) return false;
  Time next = nextWake();
  if (next > limit) return false;
  now_ = std::max(now_, next);
  forward();
  for (size_t i = 0; i < paths_.size(); ++i) {
    if (std::min(pathNext_[2 * i], pathNext_[2 * i + 1]) <= now_) deliver(*paths_[i]);
  }
  for (Node* node : withLan_) node->moveLan();
  runTimers();
  wakes_.collect(now_, [this](size_t i) { return wakeTime(*nodes_[i]); });
  for (size_t i = wakes_.next(0); i < wakes_.size(); i = wakes_.next(i + 1)) serve(*nodes_[i]);
  return failure_.empty();
}

void World::run(Duration d) {
  Time end = now_ + d;
  while (step(end)) {
  }
  if (failure_.empty()) now_ = end;
}

bool World::runUntil(const std::function<bool()>& done, Duration d) {
  Time end = now_ + d;
  while (!done()) {
    if (!step(end)) return done();
  }
  return true;
}

void World::carry(Path& path, bool up, WireDatagram wire, size_t bytes) {
  const std::vector<SharedLink*>& via = up ? path.upVia : path.downVia;
  if (!via.empty()) {
    via[0]->push({&path, up, 0, bytes, std::move(wire)}, bytes, now_);
  } else {
    (up ? path.up_ : path.down_).push(std::move(wire), bytes, now_);
  }
}

// Moves datagrams from shared link to shared link while any arrives at the current moment.
void World::forward() {
  bool moved = true;
  while (moved) {
    moved = false;
    for (size_t i = 0; i < links_.size(); ++i) {
      while (linkNext_[i] <= now_) {
        std::optional<Transit> t = links_[i]->pop(now_);
        if (!t) break;
        const std::vector<SharedLink*>& via = t->up ? t->path->upVia : t->path->downVia;
        size_t bytes = t->bytes;
        if (++t->hop < via.size()) {
          SharedLink& next = *via[t->hop];
          next.push(std::move(*t), bytes, now_);
        } else {
          (t->up ? t->path->up_ : t->path->down_).push(std::move(t->wire), bytes, now_);
        }
        moved = true;
      }
    }
  }
}

void World::arrive(Node& to, const Route& from, const WireDatagram& wire) {
  if (!to.tunnel_) return;
  Packet packet = to.pool_->copy(wire.bytes);
  if (!packet) {
    ++to.deviceDrops;
    return;
  }
  ++to.receivedDatagrams;
  to.tunnel_->onDatagram(from, wire.ecn, std::move(packet), to.clock());
  to.touch();
}

void World::deliver(Path& path) {
  auto hand = [&](const PathEnd& end, const WireDatagram& wire) {
    bool far = &end == &path.far_;
    arrive(*end.node, {end.socket, far ? end.endpoint.address : Address{}, wire.src}, wire);
  };
  while (auto wire = path.up_.pop(now_)) hand(path.far_, *wire);
  while (auto wire = path.down_.pop(now_)) {
    if (wire->dst != path.outside_) {
      ++path.natDrops_;
      continue;
    }
    wire->dst = path.near_.endpoint;
    hand(path.near_, *wire);
  }
}

void World::serve(Node& node) {
  Time clock = node.clock();
  if (node.deadline_ <= clock) node.tunnel_->onTimer(clock);
  poll(node);
  wakes_.clear(node.number() - 1);
  if (!node.tunnel_) return;
  node.deadline_ = node.tunnel_->nextDeadline();
  node.retryAt_ = node.deadline_ > clock ? Time::min() : now_ + 1us;
  wakes_.arm(node.number() - 1, wakeTime(node));
  if (node.deadline_ > clock) {
    node.spins_ = 0;
    return;
  }
  // The deadline is overdue right after the gateway was served. retryAt_ lets a little time pass
  // before the next call, as in reality.
  if (++node.spins_ > kMaxSpins)
    fail(node.name() + " wants to be woken again and again and does nothing");
}

void World::poll(Node& node) {
  Datagram datagram;
  Packet packet;
  StreamEvent streamEvent;
  Event event;
  int sent = 0;
  do {
    node.dirty_ = false;
    while (node.tunnel_->pollDatagram(datagram, node.clock())) {
      transmit(node, datagram);
      if (++sent > kMaxBurst) return fail(node.name() + " sends without end");
    }
    while (node.tunnel_->pollInnerPacket(packet)) {
      node.leave(packet.view());
      packet.reset();
    }
    while (node.tunnel_->streams().pollStream(streamEvent)) {
      if (node.onStream) node.onStream(streamEvent);
    }
    while (node.tunnel_->pollEvent(event)) {
      if (node.events.size() < kMaxEvents) node.events.emplace_back(now_, std::move(event));
    }
  } while (node.dirty_);
}

void World::note(const WireDatagram& wire) {
  auto mix = [&](uint64_t v) { hash_ = (hash_ ^ v) * 0x9e3779b97f4a7c15, hash_ ^= hash_ >> 29; };
  mix(static_cast<uint64_t>(now_.time_since_epoch().count()));
  mix(uint64_t{wire.src.port} << 32 | uint64_t{wire.dst.port} << 8 |
      static_cast<uint8_t>(wire.ecn));
  for (const Endpoint* e : {&wire.src, &wire.dst})
    mix(load64(e->address.bytes.data()) ^ e->address.bytes[15]);
  size_t i = 0;
  for (; i + 8 <= wire.bytes.size(); i += 8) mix(load64(&wire.bytes[i]));
  for (; i < wire.bytes.size(); ++i) mix(wire.bytes[i]);
  mix(wire.bytes.size());
}

void World::transmit(Node& from, Datagram& datagram) {
  ++from.sentDatagrams;
  from.sentBytes += datagram.bytes.size();
  WireDatagram wire;
  wire.dst = datagram.route.remote;
  wire.ecn = datagram.ecn;
  wire.bytes.assign(datagram.bytes.data(), datagram.bytes.data() + datagram.bytes.size());
  for (auto& path : paths_) {
    if (path->near_.node != &from || path->near_.socket != datagram.route.socket) continue;
    if (path->far_.endpoint != wire.dst) continue;
    size_t size = outerBytes(wire);
    bool tooBig = path->uplinkMtu > 0 && size > path->uplinkMtu;
    if (path->unreachable) {
      from.tunnel_->onSendError(datagram, from.clock());
    } else if (tooBig) {
      from.tunnel_->onTooBig(datagram, from.clock());
    }
    datagram.bytes.reset();
    if (path->unreachable || tooBig) return;
    if (path->nat_ && path->natIdle_ > 0ns && now_ - path->natUsed_ > path->natIdle_)
      path->rebind(false);
    path->natUsed_ = now_;
    wire.src = path->outside_;
    note(wire);
    if (onWire) onWire(*path, true, wire);
    carry(*path, true, std::move(wire), size);
    return;
  }
  datagram.bytes.reset();
  transmitFar(from, datagram, wire);
}

void World::transmitFar(Node& from, Datagram& datagram, WireDatagram& wire) {
  for (auto& path : paths_) {
    if (path->far_.node != &from || path->far_.socket != datagram.route.socket) continue;
    if (!path->isOutside(wire.dst)) continue;
    bool expired = path->nat_ && path->natIdle_ > 0ns && now_ - path->natUsed_ > path->natIdle_;
    wire.src = path->far_.endpoint;
    note(wire);
    if (onWire) onWire(*path, false, wire);
    if (expired || wire.dst != path->outside_) {
      ++path->natDrops_;
      return;
    }
    path->natUsed_ = now_;
    size_t size = outerBytes(wire);
    carry(*path, false, std::move(wire), size);
    return;
  }
  if (medium_) {
    wire.src = medium_->source(from, datagram.route.socket);
    note(wire);
    size_t size = outerBytes(wire);
    return medium_->carry(std::move(wire), size);
  }
  ++unroutable_;
}

// ---- diagnosis

void World::fail(std::string why) {
  if (failure_.empty()) failure_ = why + "\n" + report();
}

std::string World::report() const {
  std::ostringstream out;
  out << "seed " << seed_ << ", " << toMilliseconds(now_.time_since_epoch()) << " ms\n";
  for (const auto& node : nodes_) {
    if (!node->tunnel_) {
      out << node->name() << ": stopped\n";
      continue;
    }
    Time clock = node->clock();
    Time next = node->tunnel_->nextDeadline();
    out << node->name() << ": clock " << toMilliseconds(clock.time_since_epoch())
        << " ms, deadline ";
    if (next == kNever)
      out << "never";
    else
      out << toMilliseconds(next.time_since_epoch()) << " ms";
    TunnelStatus s = node->status();
    out << ", buffers " << s.buffersInUse << ", handshakes " << s.handshakes << "\n";
    for (const PeerStatus& p : s.peers) {
      out << "  peer " << p.name << (p.up ? " up" : " down") << ", inner MTU " << p.innerMtu
          << ", epoch " << p.keyEpoch << ", held " << p.heldPackets << ", repaired "
          << p.retransmitted << "\n";
      for (const SubflowStatus& f : p.subflows) {
        out << "    subflow " << f.id << " " << f.uplink << " " << f.remote << " " << f.state
            << " srtt " << toMilliseconds(f.srtt) << " ms window " << f.window << " inflight "
            << f.inFlight << " sent " << f.sentPackets << " received " << f.receivedPackets
            << " lost " << f.lostPackets << " spurious " << f.spuriousLosses << " copies "
            << f.copies << " parities " << f.parities << " mtu " << f.mtu << "\n";
      }
      for (const FlowStatus& f : p.flows) {
        if (f.queuedBytes + f.unacked > 0)
          out << "    flow " << f.name << " queued " << f.queuedBytes << " unacked " << f.unacked
              << "\n";
      }
    }
    out << "  drops";
    for (size_t i = 0; i < kDropCount; ++i) {
      if (s.drops[i] > 0) out << " " << dropName(static_cast<Drop>(i)) << "=" << s.drops[i];
    }
    out << "\n";
    size_t from = node->events.size() > 12 ? node->events.size() - 12 : 0;
    for (size_t i = from; i < node->events.size(); ++i) {
      out << "  " << toMilliseconds(node->events[i].first.time_since_epoch()) << " ms "
          << node->events[i].second.text << "\n";
    }
  }
  return out.str();
}

}  // namespace braid::sim
