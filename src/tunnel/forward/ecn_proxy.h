#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

#include "base/bytes.h"
#include "base/time.h"
#include "inet/flow_key.h"
#include "inet/inner_packet.h"
#include "inet/ip.h"

namespace braid {

/// Speaks ECN (RFC 3168) for local hosts that do not, so that the far gateway's AQM can mark the
/// packets sent to them instead of dropping them. A drop costs an ordered stream a whole round
/// trip, a mark costs nothing.
///
/// The proxy adds the ECN offer to the SYN of such a local host and removes the acceptance from the
/// SYN-ACK. From then on, when a CE mark arrives, it sets ECE on the host's ACKs until the sender
/// sets CWR. The host never sees any of this. Most servers accept an offer although they make none.
/// A resent SYN does not carry the offer (RFC 3168 section 6.1.1.1). The host's packets are not
/// changed otherwise and stay Not-ECT.
class EcnProxy {
 public:
  /// Maximum number of connections that the proxy handles. Further ones are not changed, until one
  /// has been idle for kIdle.
  static constexpr size_t kMaxFlows = 8192;
  static constexpr Duration kIdle = 120s;

  /// `k0`, `k1`: key of the flow table's hash; must be unpredictable outside of tests.
  EcnProxy(uint64_t k0, uint64_t k1) : flows_(16, FlowKeyHash(k0, k1)) {}

  /// A packet from a local host to the peer. `parsed`: parseInnerPacket(packet).
  void onOutgoing(ByteSpan packet, const InnerPacket& parsed, Time now);
  /// A packet from the peer to a local host.
  void onIncoming(ByteSpan packet, const InnerPacket& parsed, Time now);
  size_t flows() const { return flows_.size(); }

 private:
  static constexpr uint8_t kEcnFlags = TcpFields::kEce | TcpFields::kCwr;

  static void setTcpFlags(ByteSpan packet, const InnerPacket& parsed, uint8_t flags) {
    uint8_t* tcp = packet.data() + parsed.l4Offset;
    replaceWord(tcp + 12, static_cast<uint16_t>(tcp[12] << 8 | flags), tcp + 16);
  }

  enum class State : uint8_t { kOffered, kRefused, kActive };
  struct Flow {
    State state = State::kOffered;
    bool echo = false;  ///< set ECE on the host's ACKs
    uint32_t isn = 0;   ///< sequence number of the SYN
    Time lastUse;
    std::list<FlowKey>::iterator place;  ///< in order_
  };
  void onSyn(ByteSpan packet, const InnerPacket& parsed, const FlowKey& key, Time now);
  Flow* find(const FlowKey& key, Time now);
  Flow* add(const FlowKey& key, Time now);
  void erase(const FlowKey& key);

  std::unordered_map<FlowKey, Flow, FlowKeyHash> flows_;  ///< by the local host's direction
  std::list<FlowKey> order_;                              ///< least recently used first
};

inline void EcnProxy::onOutgoing(ByteSpan packet, const InnerPacket& parsed, Time now) {
  if (!parsed.tcp) return;
  FlowKey key = parsed.flowKey();
  if (parsed.tcp->isSyn() && !parsed.tcp->isAck()) return onSyn(packet, parsed, key, now);
  Flow* flow = find(key, now);
  if (!flow || flow->state != State::kActive) return;
  if (flow->echo && parsed.tcp->isAck())
    setTcpFlags(packet, parsed, parsed.tcp->flags | TcpFields::kEce);
}

inline void EcnProxy::onSyn(ByteSpan packet, const InnerPacket& parsed, const FlowKey& key,
                            Time now) {
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

inline void EcnProxy::onIncoming(ByteSpan packet, const InnerPacket& parsed, Time now) {
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

inline EcnProxy::Flow* EcnProxy::find(const FlowKey& key, Time now) {
  auto found = flows_.find(key);
  if (found == flows_.end()) return nullptr;
  found->second.lastUse = now;
  order_.splice(order_.end(), order_, found->second.place);
  return &found->second;
}

inline EcnProxy::Flow* EcnProxy::add(const FlowKey& key, Time now) {
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

inline void EcnProxy::erase(const FlowKey& key) {
  auto found = flows_.find(key);
  if (found == flows_.end()) return;
  order_.erase(found->second.place);
  flows_.erase(found);
}

}  // namespace braid
