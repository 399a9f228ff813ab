#include "tunnel/forward/ecn_proxy.h"

#include "inet/ip.h"

namespace braid {

namespace {
constexpr uint8_t kEcnFlags = TcpFields::kEce | TcpFields::kCwr;

void setTcpFlags(ByteSpan packet, const InnerPacket& parsed, uint8_t flags) {
  uint8_t* tcp = packet.data() + parsed.l4Offset;
  replaceWord(tcp + 12, static_cast<uint16_t>(tcp[12] << 8 | flags), tcp + 16);
}
}  // namespace

void EcnProxy::onOutgoing(ByteSpan packet, const InnerPacket& parsed, Time now) {
  if (!parsed.tcp) return;
  FlowKey key = parsed.flowKey();
  if (parsed.tcp->isSyn() && !parsed.tcp->isAck()) return onSyn(packet, parsed, key, now);
  Flow* flow = find(key, now);
  if (!flow || flow->state != State::kActive) return;
  if (flow->echo && parsed.tcp->isAck())
    setTcpFlags(packet, parsed, parsed.tcp->flags | TcpFields::kEce);
}

void EcnProxy::onSyn(ByteSpan packet, const InnerPacket& parsed, const FlowKey& key, Time now) {
  Flow* flow = find(key, now);
  if (parsed.tcp->flags & kEcnFlags) {  // the host uses ECN itself
    if (flow) erase(key);
    return;
  }
  if (flow && flow->isn == parsed.tcp->seq) {  // resent: perhaps the ECN offer was dropped
    flow->state = State::kRefused;
    return;
  }
  if (!flow) flow = add(key, now);
  if (!flow) return;
  flow->state = State::kOffered;
  flow->echo = false;
  flow->isn = parsed.tcp->seq;
  setTcpFlags(packet, parsed, parsed.tcp->flags | kEcnFlags);
}

void EcnProxy::onIncoming(ByteSpan packet, const InnerPacket& parsed, Time now) {
  if (!parsed.tcp) return;
  Flow* flow = find(parsed.flowKey().reversed(), now);
  if (!flow || flow->state == State::kRefused) return;
  uint8_t flags = parsed.tcp->flags;
  if (parsed.tcp->isSyn()) {
    bool accepts = (flags & kEcnFlags) == TcpFields::kEce;
    flow->state = accepts ? State::kActive : State::kRefused;
    if (accepts) setTcpFlags(packet, parsed, flags & ~kEcnFlags);
    return;
  }
  if (flow->state != State::kActive) return;
  if (flags & TcpFields::kCwr) {
    flow->echo = false;
    setTcpFlags(packet, parsed, flags & ~TcpFields::kCwr);
  }
  if (parsed.ecn == Ecn::kCe) flow->echo = true;
  if (parsed.ecn != Ecn::kNotEct) setEcn(packet, Ecn::kNotEct);
}

EcnProxy::Flow* EcnProxy::find(const FlowKey& key, Time now) {
  auto found = flows_.find(key);
  if (found == flows_.end()) return nullptr;
  found->second.lastUse = now;
  order_.splice(order_.end(), order_, found->second.place);
  return &found->second;
}

EcnProxy::Flow* EcnProxy::add(const FlowKey& key, Time now) {
  if (flows_.size() >= kMaxFlows) {
    FlowKey oldest = order_.front();
    if (now - flows_.at(oldest).lastUse < kIdle) return nullptr;
    erase(oldest);
  }
  Flow& flow = flows_[key];
  flow.lastUse = now;
  flow.place = order_.insert(order_.end(), key);
  return &flow;
}

void EcnProxy::erase(const FlowKey& key) {
  auto found = flows_.find(key);
  if (found == flows_.end()) return;
  order_.erase(found->second.place);
  flows_.erase(found);
}

}  // namespace braid
