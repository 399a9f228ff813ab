#include <algorithm>

#include "inet/ip.h"
#include "simnet/world.h"

namespace braid::sim {

namespace {
/// Largest inner packet or datagram.
constexpr size_t kBuffer = 2048;
constexpr size_t kMaxStrays = 64;
constexpr size_t kMaxNotes = 100000;
}  // namespace

Node::Node(World& world, unsigned number, std::string name, TunnelOptions o, uint64_t seed)
    : options(std::move(o)),
      world_(world),
      number_(number),
      name_(std::move(name)),
      random_(seed) {}

Address Node::host(bool v6) const {
  std::string n = std::to_string(number_);
  return address(v6 ? "fd00:" + n + "::2" : "10." + n + ".0.2");
}

Time Node::clock() const {
  return world_.now() + ahead_;
}

void Node::touch() {
  dirty_ = true;
  if (tunnel_) world_.wakes_.mark(number_ - 1);
}

void Node::jumpClock(Duration ahead) {
  ahead_ += ahead;
  touch();
}

void Node::goOn(unsigned copy) {
  tunnel_->forgetKeys("this machine was suspended", knownKey(random_.next() + copy), clock());
  touch();
}

TunnelStatus Node::status() const {
  constexpr size_t kAllFlows = 1 << 20;
  return tunnel_ ? tunnel_->status(clock(), kAllFlows) : TunnelStatus{};
}

uint64_t Node::drops(Drop cause) const {
  return status().drops[static_cast<size_t>(cause)];
}

void Node::start() {
  pool_ = std::make_unique<PacketPool>(kBuffer, poolLimit);
  handshakes_ = std::make_unique<FakeHandshakeProvider>(pinOf(number_), random_.next());
  handshakes_->setVersions(versions);
  tunnel_ = std::make_unique<Tunnel>(options, *pool_, *handshakes_, knownKey(random_.next()));
  tunnel_->setPeers(peers, clock());
  tunnel_->setUplinks(uplinks, clock());
  if (callsBack) tunnel_->sendRestartNotices(callers_, clock());
  deadline_ = kNever;
  spins_ = 0;
  touch();
}

bool Node::stop() {
  if (!tunnel_) return true;
  if (callsBack) callers_ = tunnel_->knownInitiators(clock());
  tunnel_.reset();
  world_.wakes_.clear(number_ - 1);
  bool clean = pool_->inUse() == 0;
  handshakes_.reset();
  pool_.reset();
  deadline_ = kNever;
  return clean;
}

bool Node::shutDown() {
  std::vector<KnownInitiator> callers = tunnel_->knownInitiators(clock());
  tunnel_->close();
  world_.poll(*this);
  bool clean = stop();
  callers_ = std::move(callers);
  return clean;
}

void Node::setUplink(const std::string& uplink, bool up) {
  for (UplinkSpec& u : uplinks) {
    if (u.name == uplink) u.up = up;
  }
  if (!tunnel_) return;
  tunnel_->setUplinks(uplinks, clock());
  touch();
}

void Node::setLan(const LinkOptions& both) {
  if (!lan_) world_.withLan_.push_back(this);
  lan_ = std::make_unique<Lan>(Lan{Link<Bytes>(both, random_.next(), world_.now()),
                                   Link<Bytes>(both, random_.next(), world_.now())});
}

MacAddress Node::macOf(const Address& host) {
  MacAddress mac{};
  for (size_t i = 0; i < host.bytes.size(); ++i) mac[i % mac.size()] ^= host.bytes[i];
  mac[0] = 2;  // locally administered unicast address
  return mac;
}

// Wraps a host's packet in an Ethernet frame.
Bytes Node::framed(ByteView packet) {
  std::optional<InnerPacket> ip = parseInnerPacket(packet);
  Bytes frame;
  for (const MacAddress& mac : {macOf(ip->dst), macOf(ip->src)})
    frame.insert(frame.end(), mac.begin(), mac.end());
  uint16_t type = ip->isV4() ? Frame::kIpV4 : Frame::kIpV6;
  frame.push_back(static_cast<uint8_t>(type >> 8));
  frame.push_back(static_cast<uint8_t>(type));
  frame.insert(frame.end(), packet.begin(), packet.end());
  return frame;
}

// The packet in a frame. Empty, and counted as bad, when the frame is malformed or its MAC
// addresses are not those of the packet's hosts.
ByteView Node::unframed(ByteView bytes) {
  std::optional<Frame> frame = parseFrame(bytes);
  if (!frame || !frame->ip || frame->dst != macOf(frame->ip->dst) ||
      frame->src != macOf(frame->ip->src)) {
    ++badPackets;
    return {};
  }
  return bytes.subspan(frame->payloadOffset);
}

void Node::send(ByteView bytes) {
  if (lanLoses && lanLoses(false, bytes)) return;
  if (!lan_) return enter(bytes);
  lan_->fromHost.push({bytes.begin(), bytes.end()}, bytes.size(), world_.now());
}

void Node::leave(ByteView bytes) {
  if (bridged && (bytes = unframed(bytes)).empty()) return;
  if (lanLoses && lanLoses(true, bytes)) return;
  if (!lan_) return deliver(bytes);
  lan_->toHost.push({bytes.begin(), bytes.end()}, bytes.size(), world_.now());
}

void Node::moveLan() {
  if (!lan_) return;
  while (std::optional<Bytes> packet = lan_->fromHost.pop(world_.now())) enter(*packet);
  while (std::optional<Bytes> packet = lan_->toHost.pop(world_.now())) deliver(*packet);
}

Time Node::nextOnLan() const {
  return lan_ ? std::min(lan_->toHost.nextDelivery(), lan_->fromHost.nextDelivery()) : kNever;
}

void Node::enter(ByteView bytes) {
  if (!tunnel_) return;
  Packet packet = bridged ? pool_->copy(framed(bytes)) : pool_->copy(bytes);
  if (!packet) {
    ++deviceDrops;
    return;
  }
  tunnel_->onInnerPacket(std::move(packet), clock());
  touch();
}

void Node::listen(uint8_t protocol, uint16_t port, Handler handler) {
  handlers_[{protocol, port}] = std::move(handler);
}

size_t Node::countEvents(Event::Kind kind) const {
  return static_cast<size_t>(std::count_if(events.begin(), events.end(),
                                           [&](const auto& e) { return e.second.kind == kind; }));
}

// A packet has arrived at the host.
void Node::deliver(ByteView packet) {
  if (tap && tap(packet)) return;
  std::optional<InnerPacket> ip = parseInnerPacket(packet);
  if (!ip || ip->size != packet.size() || !checksumsValid(packet, *ip)) {
    ++badPackets;
    return;
  }
  if (ip->protocol == ip::kIcmp || ip->protocol == ip::kIcmpV6) return deliverIcmp(packet, *ip);
  auto handler = handlers_.find({ip->protocol, ip->dport});
  if (handler != handlers_.end()) return handler->second(packet, *ip);
  ++unclaimed;
  if (strays.size() < kMaxStrays) strays.emplace_back(packet.begin(), packet.end());
}

void Node::deliverIcmp(ByteView packet, const InnerPacket& ip) {
  ByteView message = packet.subspan(ip.l4Offset, ip.l4Length);
  if (message.size() < 8) return;
  bool v4 = ip.isV4();
  uint8_t type = message[0];
  if (type == (v4 ? 8 : 128)) {
    IpFields back{ip.dst, ip.src, ip.protocol, Ecn::kNotEct, true};
    return send(
        echoPacket(back, true, load16(&message[4]), load16(&message[6]), message.subspan(8)));
  }
  uint16_t port = load16(&message[4]);
  uint8_t protocol = ip.protocol;
  if (type != (v4 ? 0 : 129)) {
    // An ICMP error is delivered to the handler of the packet that it quotes.
    std::optional<InnerPacket> offender = parseInnerPacket(message.subspan(8));
    ByteView inner = message.subspan(8);
    size_t header = v4 ? ip::kV4Header : ip::kV6Header;
    if (!offender && inner.size() >= header + 8) {
      protocol = inner[v4 ? 9 : 6];
      port = load16(&inner[header]);
    } else if (offender) {
      protocol = offender->protocol;
      port = offender->hasPorts ? offender->sport
                                : load16(&inner[offender->l4Offset + 4]);  // or identifier
    }
  }
  auto handler = handlers_.find({protocol, port});
  if (handler != handlers_.end()) return handler->second(packet, ip);
  ++unclaimed;
  if (strays.size() < kMaxStrays) strays.emplace_back(packet.begin(), packet.end());
}

}  // namespace braid::sim
