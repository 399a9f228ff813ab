#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

#include "base/bytes.h"
#include "base/time.h"
#include "inet/flow_key.h"
#include "inet/inner_packet.h"

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

}  // namespace braid
