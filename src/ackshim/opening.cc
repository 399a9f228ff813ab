#include "ackshim/opening.h"

#include <algorithm>
#include <utility>

namespace braid {

namespace {
/// A half-open flow that does not fit is replaced by what is seen now when it is older. Ours: nobody can keep
/// another's flow from being joined for longer.
constexpr Duration kStaleOpening = 3s;
}  // namespace

uint32_t Openings::onSegment(const FlowPlace& place, ByteView packet, const TcpSegment& s, bool fromHost) {
  if (s.isRst()) {
    towards(!fromHost).syns.cancel(place.key, place.hash);
    return kNone;
  }
  uint32_t i = flows_.table().findHalfOpen(place.key, place.hash);
  if (s.isSyn()) {
    onSyn(place, i, packet, s, fromHost);
    return kNone;
  }
  if (!s.isAck()) return kNone;
  if (i == kNone) {
    join(place, s, fromHost);
    return kNone;
  }
  ShimFlow& flow = flows_[i];
  if (isProof(flow, s, fromHost)) return prove(i, place.hash);
  if (flows_.stamp() - flow.lastUse >= kStaleOpening) join(place, s, fromHost);
  return kNone;
}

// Also for simultaneous open (RFC 9293 section 3.5): both halves begin with a SYN, whichever comes first.
void Openings::onSyn(const FlowPlace& place, uint32_t i, ByteView packet, const TcpSegment& s,
                     bool fromHost) {
  auto dataOf = [&](ShimFlow& f) -> Half& { return fromHost ? f.out : f.in; };
  auto ackedOf = [&](ShimFlow& f) -> Half& { return fromHost ? f.in : f.out; };
  bool opened = i != kNone && !flows_[i].joined;
  if (s.isAck()) {
    if (!opened) return;
    const Half& acked = ackedOf(flows_[i]);
    if (!acked.known || s.ack < acked.base || s.ack > acked.nxt) return;
  } else {
    bool again = opened && dataOf(flows_[i]).known && dataOf(flows_[i]).base == s.seq + 1;
    bool other = opened && !dataOf(flows_[i]).known;
    if (!again && !other) {
      if (!isEnabled(place.key)) return;
      i = open(place, fromHost);
    }
  }
  ShimFlow& flow = flows_[i];
  Half& data = dataOf(flow);
  if (!data.known || data.base != s.seq + 1) {
    data = Half{};
    data.begin(s, flows_.stamp());
  } else if (data.timing && !data.timestamps) {
    data.timing = false;  // Karn
  }
  keepSyn(place, packet, s, fromHost);
  if (!s.isAck()) return;
  Half& acked = ackedOf(flow);
  acked.onAck(s, data.nxt, options_.gamma, flows_.stamp());
  if (flow.isProvenByHandshake()) prove(i, place.hash);
}

bool Openings::isEnabled(const FlowKey& key) const {
  for (const ShimRule& rule : options_.rules) {
    auto hasPort = [&](uint16_t port) { return port >= rule.firstPort && port <= rule.lastPort; };
    bool anywhere = rule.prefix.address.family == Address::Family::kNone;
    bool here = anywhere || rule.prefix.contains(key.source()) || rule.prefix.contains(key.destination());
    if (here && (hasPort(key.sport) || hasPort(key.dport))) return rule.enabled;
  }
  return true;
}

// Of one host alone, the local one or the other: all its connections share the way there.
uint64_t Openings::hostHash(const FlowKey& key, bool local) const {
  return flows_.table().hash({key.family, 0, 0, 0, local ? key.src : key.dst, {}});
}

// A SYN of a live connection is for the host to judge (RFC 5961 section 4.2), and for nobody to repeat. To a host behind
// the tunnel it goes again after T-RACKs' alpha round trips: the tunnel and the far gateway have means of their own.
void Openings::keepSyn(const FlowPlace& place, ByteView packet, const TcpSegment& s, bool fromHost) {
  if (!options_.replay || flows_.table().findProven(place.key, place.hash) != kNone) return;
  Side& side = towards(!fromHost);
  const LegRtt* leg = side.legs.find(hostHash(place.key, !fromHost));
  if (!leg) return;
  Duration rtt = leg->smoothed();
  Duration first = fromHost ? std::max(options_.alpha, 1u) * rtt : leg->patience() + options_.replayMargin;
  side.syns.onSyn(place.key, place.hash, packet, s, {rtt, first, fromHost}, flows_.now());
}

void Openings::onPossibleAnswer(const FlowPlace& place, const TcpSegment& s, bool fromHost) {
  Side& side = towards(fromHost);
  if (s.isAck() || s.isRst()) {
    if (auto likely = side.syns.onAnswer(place.key, place.hash, counters_, flows_.now())) {
      // What a repeated SYN measured is not the flow's sample (Karn), but tells of a leg that is slower now.
      side.legs.note(hostHash(place.key, fromHost), *likely);
      uint32_t i = flows_.table().findHalfOpen(place.key, place.hash);
      if (i != kNone) (fromHost ? flows_[i].in : flows_[i].out).timing = false;
    }
  }
  if (s.isSyn() && !s.isAck()) side.syns.cancel(place.key, place.hash);
}

// What the handshake did not measure, other connections of the host did.
void Openings::recallLeg(ShimFlow& flow) {
  if (flow.out.rtt.hasSample()) onMeasured(flow, false);
  if (flow.in.rtt.hasSample()) return onMeasured(flow, true);
  if (const LegRtt* leg = hosts_.legs.find(hostHash(flow.key, true))) flow.in.rtt = *leg;
}

uint32_t Openings::open(const FlowPlace& place, bool fromHost) {
  ++counters_.halfOpen;
  uint32_t i = flows_.table().addHalfOpen(place.key, place.hash);
  flows_[i].fromLocal = fromHost;
  flows_[i].lastUse = flows_.stamp();
  return i;
}

// Data after silence, of a connection whose beginning was not seen: nothing is known of its options.
void Openings::join(const FlowPlace& place, const TcpSegment& s, bool fromHost) {
  if (s.length == 0 || !isEnabled(place.key)) return;
  ShimFlow& flow = flows_[open(place, fromHost)];
  flow.joined = true;
  (fromHost ? flow.out : flow.in).begin(s, flows_.stamp());
  (fromHost ? flow.in : flow.out).beginAt(s.ack, flows_.stamp());
}

// The segment shows that both ends hear each other: the third of a handshake, or in the middle an ACK of data
// that were seen with the very sequence number that they acknowledged. Nobody else knows both numbers.
bool Openings::isProof(ShimFlow& flow, const TcpSegment& s, bool fromHost) {
  Half& data = fromHost ? flow.out : flow.in;
  Half& acked = fromHost ? flow.in : flow.out;
  if (!data.known || !acked.known || !data.mayCarry(s) || !acked.mayAcknowledge(s.ack)) return false;
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

uint32_t Openings::prove(uint32_t halfOpen, uint64_t hash) {
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
    // A SYN says how its sender's own windows are scaled: those that acknowledge the other's data.
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

// A quiet flow goes for a new one.
bool Openings::makeRoom() {
  FlowTable& table = flows_.table();
  if (!table.isFull()) return true;
  uint32_t victim = table.victim([&](const ShimFlow& f) {
    bool quiet = !f.out.isOutstanding() && !f.in.isOutstanding();
    return quiet && (f.out.fin || f.in.fin || flows_.stamp() - f.lastUse >= options_.inactivity);
  });
  if (victim != kNone) flows_.erase(victim);
  return victim != kNone;
}

void Openings::onTimer() {
  auto isCarried = [&](const FlowKey& key) { return tunnel_ && tunnel_->isCarrying(key); };
  hosts_.syns.onTimer(flows_.now(), counters_, isCarried,
                      [&](ByteView p) { return outbox_.replayToHost(p); });
  peers_.syns.onTimer(flows_.now(), counters_, isCarried,
                      [&](ByteView p) { return outbox_.replayToPeer(p); });
}

}  // namespace braid
