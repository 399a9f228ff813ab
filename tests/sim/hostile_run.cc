#include "tests/sim/hostile_run.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "simnet/tcp/tcp_flow.h"
#include "simnet/udp_flow.h"
#include "simnet/world.h"
#include "tests/raw_peer.h"
#include "tunnel/peer/dialing.h"

namespace braid::sim {

namespace {

using Frames = std::vector<uint8_t>;

/// Capacity of the attacker's line per millisecond, bytes of IP packets: 50 Mbit/s.
constexpr size_t kBytesPerTick = 6250;
constexpr Duration kTick = 1ms;
constexpr size_t kOuterHeaders = 28;
constexpr Duration kWarmUp = 1s;
constexpr Duration kAttackTime = 5s;
constexpr uint64_t kCall = 250;
/// Window of the honest transfers, bytes: about two bandwidth-delay products. This TCP has no SACK.
/// With a larger window, repairing the losses of slow start would take longer than an attack lasts.
constexpr uint64_t kWindow = 512 << 10;
constexpr size_t kSlowEdges = 4;
constexpr size_t kFirstSlow = 4;  ///< its number in the world

double cpuMicros() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

/// The attacker: a peer with a key that the gateway knows, which breaks all rules. It has its own
/// path.
class Mallory {
 public:
  Mallory(World& world, Node& hub, Node& self, Path& path)
      : dice(world.random().next()),
        world_(world),
        hub_(hub),
        self_(self),
        secrets_(knownKey(world.random().next())),
        provider_(pinOf(self.number()), world.random().next()),
        route_{path.far().socket, path.far().endpoint.address, path.outside()} {
    world.onWire = [this, &path](Path& p, bool up, const WireDatagram& d) {
      if (&p == &path && !up) inbox_.push_back(d.bytes);
    };
  }
  Mallory(const Mallory&) = delete;
  Mallory& operator=(const Mallory&) = delete;

  Random dice;
  bool acknowledges = true;
  uint64_t datagrams = 0, inner = 0;
  uint64_t closes = 0;  ///< CLOSE frames from the gateway
  double micros = 0;    ///< CPU time that the gateway spent on all these datagrams, microseconds

  /// Begins a handshake. Its session replaces the previous one.
  void begin() {
    initiator_.emplace(provider_, secrets_, pinOf(hub_.number()), world_.now());
    flush();
  }
  bool hasSession() const { return peer_.has_value(); }
  /// Reads the received datagrams, and sends what keeps the session alive.
  void listen() {
    for (Bytes& bytes : std::exchange(inbox_, {})) {
      if (isHandshakeDatagram(bytes)) {
        if (initiator_) onHandshake(bytes);
      } else if (peer_) {
        onSession(bytes);
      }
    }
    for (auto& [subflow, seen] : toAck_) {
      if (!acknowledges || seen.empty()) continue;
      say(ackOf(SubflowId(subflow), seen), SubflowId(subflow));
    }
    if (acknowledges) toAck_.clear();
  }

  /// Sends a datagram with these frames.
  void say(const Frames& frames, SubflowId subflow = SubflowId(0)) {
    PacketNumber pn = next_[subflow.value()]++;
    Packet datagram = peer_->seal(subflow, pn, frames, pool_);
    send(datagram.view());
  }
  /// Sends unsealed bytes with the header of a datagram of the session.
  void sayUnsealed(uint8_t epoch, size_t size) {
    DatagramHeader header = peer_->header(SubflowId(0), next_[0]);
    header.epoch = epoch & 3;
    Bytes bytes(kHeaderSize + size);
    writeHeader(header, bytes.data());
    for (size_t i = kHeaderSize; i < bytes.size(); ++i)
      bytes[i] = static_cast<uint8_t>(dice.next());
    send(bytes);
  }
  void send(ByteView bytes) {
    spent_ += bytes.size() + kOuterHeaders;
    ++datagrams;
    double before = cpuMicros();
    world_.inject(hub_, route_, bytes);
    micros += cpuMicros() - before;
  }
  /// Sends a packet of a host behind the gateway, which may cooperate with the attacker.
  void sendInside(const Bytes& packet) {
    spent_ += packet.size();
    ++inner;
    double before = cpuMicros();
    hub_.send(packet);
    micros += cpuMicros() - before;
  }
  /// True while the line has room in this tick.
  bool mayGo() const { return spent_ < kBytesPerTick; }
  void onTick() { spent_ = 0; }

  Address host() const { return self_.host(); }
  /// Any address behind the attacker.
  Address anyHost() {
    return address("10." + std::to_string(self_.number()) + "." + std::to_string(dice.below(250)) +
                   "." + std::to_string(3 + dice.below(250)));
  }
  const Node& hub() const { return hub_; }
  /// The largest packet number that the gateway has used on the first subflow.
  PacketNumber lastSeen() const { return lastSeen_; }

 private:
  void flush() {
    Packet out = pool_.allocate();
    while (initiator_->pollDatagram(out)) {
      send(out.view());
      out = pool_.allocate();
    }
  }
  void onHandshake(const Bytes& bytes) {
    initiator_->onDatagram(bytes, world_.now());
    flush();
    if (initiator_->handshake().state() != Handshake::State::kDone) return;
    peer_.emplace(initiator_->handshake().secrets(), KeySchedule::Role::kInitiator, world_.now());
    initiator_.reset();
    next_.clear();
    toAck_.clear();
    lastSeen_ = {};
    Frames first = test::framesOf(PathChallengeFrame{}, PingFrame{});
    first.resize(1200 - kHeaderSize - kTagSize);
    say(first);
  }
  void onSession(const Bytes& bytes) {
    Datagram datagram;
    datagram.bytes = pool_.copy(bytes);
    std::optional<test::RawPeer::Opened> opened = peer_->open(datagram, world_.now());
    if (!opened) return;
    if (opened->subflow == SubflowId(0)) lastSeen_ = std::max(lastSeen_, opened->pn);
    for (const WireFrame& frame : opened->frames) {
      if (const auto* challenge = std::get_if<PathChallengeFrame>(&frame))
        say(test::framesOf(PathResponseFrame{challenge->token}), opened->subflow);
      closes += std::holds_alternative<CloseFrame>(frame);
    }
    if (opened->eliciting) toAck_[opened->subflow.value()].push_back(opened->pn);
  }
  /// An ACK of the newest of them.
  static Frames ackOf(SubflowId subflow, std::vector<PacketNumber>& seen) {
    std::sort(seen.begin(), seen.end(), std::greater<>());
    AckFrame ack;
    ack.subflow = subflow;
    for (PacketNumber pn : seen) {
      if (ack.count > 0 && ack.ranges[ack.count - 1].first == pn + 1) {
        ack.ranges[ack.count - 1].first = pn;
      } else if (ack.count < kMaxAckRanges) {
        ack.ranges[ack.count++] = {pn, pn};
      }
    }
    return test::framesOf(ack);
  }

  World& world_;
  Node& hub_;
  Node& self_;
  SecretRandom secrets_;
  FakeHandshakeProvider provider_;
  Route route_;
  PacketPool pool_{2048, 4096};
  std::vector<Bytes> inbox_;
  std::optional<ClientHandshake> initiator_;
  std::optional<test::RawPeer> peer_;
  std::map<uint8_t, PacketNumber> next_;                ///< by subflow
  std::map<uint8_t, std::vector<PacketNumber>> toAck_;  ///< by subflow
  PacketNumber lastSeen_{};
  size_t spent_ = 0;
};

Frames dataFrame(FlowNumber flow, Dsn dsn, const Bytes& packet) {
  Frames out(kDataFrameHeader);
  writeDataHeader(flow, dsn, packet.size(), out.data());
  out.insert(out.end(), packet.begin(), packet.end());
  return out;
}

void add(Frames& to, const Frames& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// A small packet from a host behind the attacker.
Bytes tinyPacket(const Address& from, const Address& to, uint16_t port = 9, size_t size = 1) {
  return udpPacket({from, to, 17, Ecn::kNotEct, true}, port, port, Bytes(size));
}

// ---- the attacks: what each does in one tick

/// Sends every second packet of many ordered flows, so that the gateway holds them all for
/// reordering.
void fillTheHold(Mallory& m, uint64_t& count) {
  Bytes packet = tinyPacket(m.host(), m.hub().host());
  while (m.mayGo()) {
    Frames frames;
    for (int i = 0; i < 24; ++i, ++count)
      add(frames, dataFrame(FlowNumber(static_cast<uint16_t>(count % 1000)),
                            Dsn(2 * (count / 1000) + 1), packet));
    m.say(frames);
  }
}

/// Sends datagrams with as many deliverable packets as fit.
void deliverTiny(Mallory& m, uint64_t& count) {
  Bytes packet = tinyPacket(m.host(), m.hub().host());
  while (m.mayGo()) {
    Frames frames;
    for (int i = 0; i < 30; ++i) add(frames, dataFrame(kDatagramFlow, Dsn(count++), packet));
    m.say(frames);
  }
}

/// Sends data on the maximum number of subflows, and parities over 128 packets that arrive late or
/// never.
void fillTheDecoder(Mallory& m, uint64_t& count) {
  Bytes packet = tinyPacket(m.host(), m.hub().host(), 9, 900);
  while (m.mayGo()) {
    SubflowId subflow(static_cast<uint8_t>(count % 32));
    Frames frames = dataFrame(kDatagramFlow, Dsn(count++), packet);
    // PARITY (docs/protocol.md section 5): its block; index 0 of 16 parities of 1,024 bytes; one
    // group, a single run of 128 packet numbers; 100 bytes of the parity.
    auto first = static_cast<uint8_t>(std::min<uint64_t>(255, count / 32 + 100));
    add(frames, {9, static_cast<uint8_t>(count >> 8), static_cast<uint8_t>(count), 0, 16, 4, 0, 1});
    add(frames, {subflow.value(), 0, 0, 0, first, 1, 0x40, 127, 0, 100});
    frames.resize(frames.size() + 100, 0x5a);
    m.say(frames, subflow);
  }
}

/// Tells the gateway to give up most of what it waits for, in any flow.
void skip(Mallory& m, uint64_t& count) {
  while (m.mayGo()) {
    Frames frames;
    for (size_t i = 0; i < kMaxCostlyFrames; ++i, ++count) {
      FlowNumber flow(static_cast<uint16_t>(count % 0x8000));
      add(frames, test::framesOf(SkipFrame{flow, Dsn(kMaxSkip * (count / 0x8000)), kMaxSkip}));
    }
    m.say(frames);
  }
}

/// The attacker receives data and alternately acknowledges only the last of it and only the first
/// of it.
void acknowledgeAlternately(Mallory& m, uint64_t& count) {
  for (int i = 0; i < 2; ++i) m.sendInside(tinyPacket(m.hub().host(), m.host(), 9, 500));
  while (m.mayGo()) {
    AckFrame ack;
    ack.count = 1;
    PacketNumber pn = count++ % 2 == 0 ? m.lastSeen() : PacketNumber(0);
    ack.ranges[0] = {pn, pn};
    m.say(test::framesOf(ack));
  }
}

/// Sends unsealed datagrams of every epoch.
void nameEpochs(Mallory& m, uint64_t& count) {
  while (m.mayGo()) m.sayUnsealed(static_cast<uint8_t>(count++), kTagSize + 1);
}

/// Uses a new flow for each packet of one host, in both directions.
void openFlows(Mallory& m, uint64_t& count) {
  while (m.mayGo()) {
    ++count;
    auto port = static_cast<uint16_t>(m.dice.next());
    FlowNumber flow(static_cast<uint16_t>(m.dice.next()));
    m.say(dataFrame(flow, Dsn(count), tinyPacket(m.host(), m.hub().host(), port)));
    m.sendInside(tinyPacket(m.hub().host(), m.host(), port));
  }
}

/// Opens flows from all the addresses that the attacker may use as hosts.
void openFlowsOfManyHosts(Mallory& m, uint64_t& count) {
  while (m.mayGo()) {
    ++count;
    auto port = static_cast<uint16_t>(m.dice.next());
    Address host = m.anyHost();
    FlowNumber flow(static_cast<uint16_t>(m.dice.next()));
    m.say(dataFrame(flow, Dsn(count), tinyPacket(host, m.hub().host(), port)));
    m.sendInside(tinyPacket(m.hub().host(), host, port));
  }
}

/// Sends frames that require answers.
void demandAnswers(Mallory& m, uint64_t& count) {
  while (m.mayGo()) {
    Frames frames = test::framesOf(PingFrame{});
    PathToken token;
    store64(token.data(), m.dice.next());
    add(frames, test::framesOf(PathChallengeFrame{token}));
    add(frames, test::framesOf(SubflowStatusFrame{SubflowId(0), ++count, count % 2 == 0}));
    m.say(frames);
  }
}

/// Sends packets with source addresses of the honest peer, of the gateway's own hosts, and of
/// nobody.
void spoof(Mallory& m, uint64_t& count) {
  const Address sources[] = {address("10.1.0.2"), m.hub().host(), address("198.18.0.1")};
  while (m.mayGo()) {
    Frames frames;
    for (int i = 0; i < 10; ++i, ++count)
      add(frames,
          dataFrame(kDatagramFlow, Dsn(count), tinyPacket(sources[count % 3], m.hub().host())));
    m.say(frames);
  }
}

/// Sends packets to destinations without a route, each of which causes an ICMP error.
void provokeErrors(Mallory& m, uint64_t& count) {
  while (m.mayGo()) {
    m.say(dataFrame(kDatagramFlow, Dsn(count++), tinyPacket(m.host(), address("192.0.2.1"))));
    m.sendInside(tinyPacket(m.hub().host(), address("192.0.2.1")));
  }
}

/// Sends peers with slow lines more than these can carry, in tiny packets.
void fillSlowQueues(Mallory& m, uint64_t& count) {
  while (m.mayGo()) {
    Address slow = address("10." + std::to_string(kFirstSlow + count % kSlowEdges) + ".0.2");
    m.sendInside(tinyPacket(m.hub().host(), slow, static_cast<uint16_t>(count++ / kSlowEdges)));
  }
}

/// Receives data and never acknowledges it.
void acknowledgeNothing(Mallory& m, uint64_t& count) {
  m.acknowledges = false;
  while (m.mayGo()) {
    ++count;
    TcpSegment segment;
    segment.sport = 80, segment.dport = static_cast<uint16_t>(1000 + count % 64),
    segment.flags = 0x10;
    segment.seq = static_cast<uint32_t>(count / 64 * 600);
    Bytes payload(600);
    segment.payload = payload;
    m.sendInside(tcpPacket({m.hub().host(), m.host(), 6, Ecn::kNotEct, true}, segment));
  }
}

/// Does one handshake after the other, with a key that the gateway accepts.
void shakeHands(Mallory& m, uint64_t& count) {
  if (++count % 4 == 0) m.begin();
}

/// Acknowledges packets that were not sent yet. This ends the session, and a new one begins.
void acknowledgeTheFuture(Mallory& m, uint64_t& count) {
  m.sendInside(tinyPacket(m.hub().host(), m.host(), 9, 500));
  if (++count % 20 == 0) return m.begin();
  AckFrame ack;
  ack.count = 1;
  ack.ranges[0] = {m.lastSeen() + 1, m.lastSeen() + 3};
  m.say(test::framesOf(ack));
}

struct Entry {
  HostileAttack attack;
  std::function<void(Mallory&, uint64_t&)> tick;
  bool endsSessions = false;  ///< without a session there would be no attack
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all{
      {{"hold", "every second packet of 1,000 ordered flows"}, fillTheHold},
      {{"tiny", "30 packets of 29 bytes in a datagram"}, deliverTiny},
      {{"decoder", "parities that name what never comes, on 32 subflows"}, fillTheDecoder},
      {{"skips", "16 SKIP frames in a datagram, each of 4,096 packets"}, skip},
      {{"acks", "ACKs of the first and the last packet in turn"}, acknowledgeAlternately},
      {{"epochs", "unsealed datagrams of every key epoch"}, nameEpochs},
      {{"flows", "a flow for each packet, of one host"}, openFlows},
      {{"hosts", "a flow for each packet, of 62,500 hosts"}, openFlowsOfManyHosts},
      {{"answers", "PING, PATH_CHALLENGE and SUBFLOW_STATUS"}, demandAnswers},
      {{"sources", "inner packets with sources of others"}, spoof},
      {{"errors", "packets to where nothing leads"}, provokeErrors},
      {{"queues", "tiny packets for four peers with lines of 200 kbit/s"}, fillSlowQueues},
      {{"silence", "takes data and acknowledges none"}, acknowledgeNothing},
      {{"handshakes", "250 handshakes a second with an accepted key"}, shakeHands, true},
      {{"future", "acknowledges what is not yet sent, and comes again"},
       acknowledgeTheFuture,
       true},
  };
  return all;
}

/// A gateway with an honest peer, a hostile one and four with slow lines.
struct Neighbours {
  explicit Neighbours(uint64_t seed)
      : world(seed),
        edge(world.addNode("edge")),
        hub(world.addNode("hub")),
        self(world.addNode("mallory")) {
    world.pair(edge, hub);
    world.join(edge, hub, "dsl", kLine, kLine);
    world.pair(self, hub);
    Path& path = world.join(self, hub, "hostile", kLine, kLine);
    for (size_t i = 0; i < kSlowEdges; ++i) {
      Node& slow = world.addNode("slow" + std::to_string(i));
      world.pair(slow, hub);
      LinkOptions link{.rateBitsPerSecond = 2e5, .delay = 40ms};
      world.join(slow, hub, "slow" + std::to_string(i), link, link);
    }
    world.start();
    self.stop();
    mallory = std::make_unique<Mallory>(world, hub, self, path);
  }
  bool areUp() {
    auto up = [this] {
      TunnelStatus status = hub.status();
      return mallory->hasSession() &&
             std::ranges::all_of(status.peers, [](const PeerStatus& p) { return p.up; });
    };
    mallory->begin();
    every([this] { mallory->listen(); }, [this] { return attacked; });
    return world.runUntil(up, 10s);
  }
  /// Calls f every tick until the time `ends`.
  void every(std::function<void()> f, std::function<bool()> ends) {
    world.after(kTick, [this, f = std::move(f), ends = std::move(ends)]() mutable {
      if (ends()) return;
      f();
      every(std::move(f), std::move(ends));
    });
  }

  static inline const LinkOptions kLine{.rateBitsPerSecond = 1e8, .delay = 10ms};
  World world;
  Node& edge;
  Node& hub;
  Node& self;
  std::unique_ptr<Mallory> mallory;
  bool attacked = false;
};

/// Measures the goodput of the honest peer, with or without the attack.
void measure(const Entry* entry, uint64_t seed, double& down, double& up, HostileResult& result) {
  Neighbours n(seed);
  if (!n.areUp()) {
    result.broken = "not all peers came up";
    return;
  }
  TcpOptions much;
  much.bytes = uint64_t{1} << 32;
  much.content = false;
  much.window = kWindow;
  auto& download = n.world.add<TcpFlow>(n.hub, n.edge, uint16_t{1000}, much);
  auto& upload = n.world.add<TcpFlow>(n.edge, n.hub, uint16_t{1001}, much);
  n.world.run(kWarmUp);
  uint64_t downBefore = download.received(), upBefore = upload.received();
  UdpOptions talk;
  talk.count = kCall;
  auto& call = n.world.add<UdpFlow>(n.hub, n.edge, uint16_t{1002}, talk);
  uint64_t count = 0;
  uint64_t datagrams = n.mallory->datagrams;
  double micros = n.mallory->micros;
  auto tick = [&] {
    n.mallory->onTick();
    if (entry && n.mallory->hasSession()) entry->tick(*n.mallory, count);
    if (entry) result.poolMost = std::max<uint64_t>(result.poolMost, n.hub.pool().inUse());
  };
  Time end = n.world.now() + kAttackTime;
  n.every(tick, [&] { return n.world.now() >= end; });
  n.world.run(kAttackTime);
  double bits = 8 / 1e6 / toSeconds(kAttackTime);
  down = static_cast<double>(download.received() - downBefore) * bits;
  up = static_cast<double>(upload.received() - upBefore) * bits;
  if (!n.world.failure().empty()) result.broken = n.world.failure();
  if (!entry) return;
  n.world.run(1s);
  result.callLost = kCall - call.received();
  result.datagrams = n.mallory->datagrams - datagrams;
  result.inner = n.mallory->inner;
  result.poolLimit = n.hub.poolLimit;
  for (const DropInfo& drop : kDrops) {
    if (uint64_t dropped = n.hub.drops(drop.cause))
      result.drops[std::string(drop.info.name)] = dropped;
  }
  uint64_t pieces = result.datagrams + result.inner;
  result.hostileMicros =
      (n.mallory->micros - micros) / static_cast<double>(std::max<uint64_t>(pieces, 1));
  if (pieces < 1000) result.broken = "too little was sent for an attack";
  if (n.mallory->closes > 0 && !entry->endsSessions)
    result.broken = "the attacker's session ended early";
  n.attacked = true;
}

}  // namespace

double HostileResult::share() const {
  return downAlone > 0 && upAlone > 0 ? std::min(down / downAlone, up / upAlone) : 0;
}

std::vector<HostileAttack> hostileAttacks() {
  std::vector<HostileAttack> all;
  for (const Entry& entry : entries()) all.push_back(entry.attack);
  return all;
}

HostileResult hostileRun(const std::string& attack, uint64_t seed) {
  for (const Entry& entry : entries()) {
    if (entry.attack.name != attack) continue;
    HostileResult result;
    result.attack = attack;
    measure(nullptr, seed, result.downAlone, result.upAlone, result);
    measure(&entry, seed, result.down, result.up, result);
    return result;
  }
  throw std::invalid_argument("there is no attack '" + attack + "'");
}

}  // namespace braid::sim
