#include "ackshim/handshake_tracker.h"

#include <algorithm>
#include <utility>

namespace braid {

void SynReplay::onSyn(const FlowKey& key, uint64_t hash, ByteView packet, const TcpSegment& s,
                      const Patience& patience, Time now) {
  auto id = static_cast<uint32_t>(hash % kPlaces);
  Entry& entry = entries_[id];
  if (holds(key, id) && entry.seq != s.seq) wheel_.cancel(id);  // another connection attempt
  if (wheel_.isArmed(id) || s.length > 0 || packet.size() > kMaxSize ||
      patience.first >= kSenderTimer)
    return;
  entry.key = key;
  entry.seq = s.seq;
  entry.first = entry.last = now;
  entry.patience = patience;
  entry.carried = true;
  entry.replays = 0;
  entry.size = static_cast<uint8_t>(packet.size());
  std::copy(packet.begin(), packet.end(), entry.bytes.begin());
  arm(id, now + entry.firstTimer());
}

// An answer that comes sooner than half a round trip after the replay must be for the first SYN.
std::optional<Duration> SynReplay::onAnswer(const FlowKey& key, uint64_t hash,
                                            ShimCounters& counters, Time now) {
  auto id = static_cast<uint32_t>(hash % kPlaces);
  if (!holds(key, id)) return std::nullopt;
  const Entry& entry = entries_[id];
  wheel_.cancel(id);
  if (entry.replays == 0) return std::nullopt;
  bool soon = now - entry.last < entry.patience.rtt / 2;
  ++(soon ? counters[Actuator::kSynReplay].spurious : counters[Actuator::kSynReplay].useful);
  return now - (soon ? entry.first : entry.last);
}

void SynReplay::cancel(const FlowKey& key, uint64_t hash) {
  auto id = static_cast<uint32_t>(hash % kPlaces);
  if (holds(key, id)) wheel_.cancel(id);
}

namespace {
/// A half-open flow that the present segment does not fit is replaced once it is at least this old.
/// So nobody can keep another's flow from being joined for longer.
constexpr Duration kStaleOpening = 3s;
}  // namespace

uint32_t HandshakeTracker::onSegment(const HashedKey& hashed, ByteView packet, const TcpSegment& s,
                                     bool fromHost) {
  if (s.isRst()) {
    towards(!fromHost).syns.cancel(hashed.key, hashed.hash);
    return kNone;
  }
  uint32_t i = flows_.table().findHalfOpen(hashed.key, hashed.hash);
  if (s.isSyn()) {
    onSyn(hashed, i, packet, s, fromHost);
    return kNone;
  }
  if (!s.isAck()) return kNone;
  if (i == kNone) {
    join(hashed, s, fromHost);
    return kNone;
  }
  ShimFlow& flow = flows_[i];
  if (isProof(flow, s, fromHost)) return prove(i, hashed.hash);
  if (flows_.stamp() - flow.lastUse >= kStaleOpening) join(hashed, s, fromHost);
  return kNone;
}

// Also handles simultaneous open (RFC 9293 section 3.5): both directions begin with a SYN, in any
// order.
void HandshakeTracker::onSyn(const HashedKey& hashed, uint32_t i, ByteView packet,
                             const TcpSegment& s, bool fromHost) {
  auto dataOf = [&](ShimFlow& f) -> TcpDirection& { return fromHost ? f.out : f.in; };
  auto ackedOf = [&](ShimFlow& f) -> TcpDirection& { return fromHost ? f.in : f.out; };
  bool opened = i != kNone && !flows_[i].joined;
  if (s.isAck()) {
    if (!opened) return;
    const TcpDirection& acked = ackedOf(flows_[i]);
    if (!acked.known || s.ack < acked.base || s.ack > acked.nxt) return;
  } else {
    bool again = opened && dataOf(flows_[i]).known && dataOf(flows_[i]).base == s.seq + 1;
    bool other = opened && !dataOf(flows_[i]).known;
    if (!again && !other) {
      if (!isEnabled(hashed.key)) return;
      i = open(hashed, fromHost);
    }
  }
  ShimFlow& flow = flows_[i];
  TcpDirection& data = dataOf(flow);
  if (!data.known || data.base != s.seq + 1) {
    data = TcpDirection{};
    data.begin(s, flows_.stamp());
  } else if (data.timing && !data.timestamps) {
    data.timing = false;  // Karn's rule: sent twice, so not a sample
  }
  keepSyn(hashed, packet, s, fromHost);
  if (!s.isAck()) return;
  TcpDirection& acked = ackedOf(flow);
  acked.onAck(s, data.nxt, options_.gamma, flows_.stamp());
  if (flow.isProvenByHandshake()) prove(i, hashed.hash);
}

bool HandshakeTracker::isEnabled(const FlowKey& key) const {
  for (const ShimRule& rule : options_.rules) {
    auto hasPort = [&](uint16_t port) { return port >= rule.firstPort && port <= rule.lastPort; };
    bool anywhere = rule.prefix.address.family == Address::Family::kNone;
    bool here =
        anywhere || rule.prefix.contains(key.source()) || rule.prefix.contains(key.destination());
    if (here && (hasPort(key.sport) || hasPort(key.dport))) return rule.enabled;
  }
  return true;
}

// The hash of one host's address, of the local host or of the other one. All connections of a host
// share it, as they share the path to the host.
uint64_t HandshakeTracker::hostHash(const FlowKey& key, bool local) const {
  return flows_.table().hash({key.family, 0, 0, 0, local ? key.src : key.dst, {}});
}

// Keeps a SYN to repeat it if it is not answered. A SYN for a live connection is not repeated: the
// host must judge it (RFC 5961 section 4.2). To a host behind the tunnel the SYN is repeated after
// T-RACKs' alpha round trips only, because the tunnel and the far gateway repair losses by
// themselves.
void HandshakeTracker::keepSyn(const HashedKey& hashed, ByteView packet, const TcpSegment& s,
                               bool fromHost) {
  if (!options_.replay || flows_.table().findProven(hashed.key, hashed.hash) != kNone) return;
  Side& side = towards(!fromHost);
  const LegRtt* leg = side.legs.find(hostHash(hashed.key, !fromHost));
  if (!leg) return;
  Duration rtt = leg->smoothed();
  Duration first =
      fromHost ? std::max(options_.alpha, 1u) * rtt : leg->patience() + options_.replayMargin;
  side.syns.onSyn(hashed.key, hashed.hash, packet, s, {rtt, first, fromHost}, flows_.now());
}

void HandshakeTracker::onPossibleAnswer(const HashedKey& hashed, const TcpSegment& s,
                                        bool fromHost) {
  Side& side = towards(fromHost);
  if (s.isAck() || s.isRst()) {
    if (auto likely = side.syns.onAnswer(hashed.key, hashed.hash, counters_, flows_.now())) {
      // The time measured with a repeated SYN is not a sample for the flow (Karn), but it shows
      // when the path to the host has become slower.
      side.legs.note(hostHash(hashed.key, fromHost), *likely);
      uint32_t i = flows_.table().findHalfOpen(hashed.key, hashed.hash);
      if (i != kNone) (fromHost ? flows_[i].in : flows_[i].out).timing = false;
    }
  }
  if (s.isSyn() && !s.isAck()) side.syns.cancel(hashed.key, hashed.hash);
}

// If the handshake gave no RTT sample for the local leg, uses the one from the host's other
// connections.
void HandshakeTracker::recallLeg(ShimFlow& flow) {
  if (flow.out.rtt.hasSample()) onMeasured(flow, false);
  if (flow.in.rtt.hasSample()) return onMeasured(flow, true);
  if (const LegRtt* leg = hosts_.legs.find(hostHash(flow.key, true))) flow.in.rtt = *leg;
}

uint32_t HandshakeTracker::open(const HashedKey& hashed, bool fromHost) {
  ++counters_.halfOpen;
  uint32_t i = flows_.table().addHalfOpen(hashed.key, hashed.hash);
  flows_[i].fromLocal = fromHost;
  flows_[i].lastUse = flows_.stamp();
  return i;
}

// Tracks a connection whose beginning was not seen, from a data segment on. Its options are
// unknown.
void HandshakeTracker::join(const HashedKey& hashed, const TcpSegment& s, bool fromHost) {
  if (s.length == 0 || !isEnabled(hashed.key)) return;
  ShimFlow& flow = flows_[open(hashed, fromHost)];
  flow.joined = true;
  (fromHost ? flow.out : flow.in).begin(s, flows_.stamp());
  (fromHost ? flow.in : flow.out).beginAt(s.ack, flows_.stamp());
}

// Whether the segment proves that both ends hear each other. It does if it is the third segment of
// a handshake. In the middle of a connection it does if it is an ACK for data that were seen, with
// the same sequence number that those data acknowledged: nobody else knows both numbers.
bool HandshakeTracker::isProof(ShimFlow& flow, const TcpSegment& s, bool fromHost) {
  TcpDirection& data = fromHost ? flow.out : flow.in;
  TcpDirection& acked = fromHost ? flow.in : flow.out;
  if (!data.known || !acked.known || !data.mayCarry(s) || !acked.mayAcknowledge(s.ack))
    return false;
  if (!flow.joined) {
    acked.onAck(s, data.nxt, options_.gamma, flows_.stamp());
    return flow.isProvenByHandshake();
  }
  if (fromHost != flow.fromLocal) {
    if (s.ack <= acked.una) return false;
    acked.onAck(s, data.nxt, options_.gamma, flows_.stamp());
    return true;
  }
  data.onData(s, data.before(s, acked, options_.inactivity, flows_.stamp()), flows_.stamp());
  if (s.ack > acked.una) acked.beginAt(s.ack, flows_.stamp());
  return false;
}

uint32_t HandshakeTracker::prove(uint32_t halfOpen, uint64_t hash) {
  FlowTable& table = flows_.table();
  uint32_t old = table.findProven(table[halfOpen].key, hash);
  if (old != kNone) flows_.erase(old);
  if (!makeRoom()) {
    ++counters_.tableFull;
    return kNone;
  }
  uint32_t i = table.prove(halfOpen, hash);
  ++counters_.proven;
  ShimFlow& flow = flows_[i];
  if (!flow.joined) {
    flow.sack = flow.out.offersSack && flow.in.offersSack;
    // The window scale in a SYN is for its sender's own windows, which come with the ACKs for the
    // other side's data.
    if (flow.out.offersShift && flow.in.offersShift) {
      std::swap(flow.out.shift, flow.in.shift);
    } else {
      flow.out.shift = flow.in.shift = 0;
    }
  }
  recallLeg(flow);
  flow.lastUse = flows_.stamp();
  flows_.arm(i, options_.idle);
  return i;
}

// If the table is full, evicts a quiet flow for a new one. False when none was found.
bool HandshakeTracker::makeRoom() {
  FlowTable& table = flows_.table();
  if (!table.isFull()) return true;
  uint32_t victim = table.findEvictable([&](const ShimFlow& f) {
    bool quiet = !f.out.isOutstanding() && !f.in.isOutstanding();
    return quiet && (f.out.fin || f.in.fin || flows_.stamp() - f.lastUse >= options_.inactivity);
  });
  if (victim != kNone) flows_.erase(victim);
  return victim != kNone;
}

void HandshakeTracker::onTimer() {
  auto isCarried = [&](const FlowKey& key) { return tunnel_ && tunnel_->isCarrying(key); };
  hosts_.syns.onTimer(flows_.now(), counters_, isCarried,
                      [&](ByteView p) { return outbox_.replayToHost(p); });
  peers_.syns.onTimer(flows_.now(), counters_, isCarried,
                      [&](ByteView p) { return outbox_.replayToPeer(p); });
}

}  // namespace braid
