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

/// Speaks ECN (RFC 3168) for local hosts that do not, so that the far gateway's AQM can mark the packets sent
/// to them instead of dropping them: a drop costs an ordered stream a whole round trip, a mark costs nothing.
///
/// The proxy offers ECN in the SYN of a local host that did not, takes the acceptance out of the SYN-ACK, then
/// turns CE marks that arrive into ECE on the host's ACKs until the sender says CWR. The host never sees any of it.
/// Most servers accept an offer without making one. A SYN that is sent again goes without the offer (RFC 3168
/// section 6.1.1.1). What the host sends is not changed otherwise and stays Not-ECT.
class EcnProxy {
 public:
  /// Connections that the proxy speaks for; further ones are left alone until one has been idle for kIdle.
  static constexpr size_t kMaxFlows = 8192;
  static constexpr Duration kIdle = 120s;

  /// `k0`, `k1` key the hash of flows; unpredictable outside of tests.
  EcnProxy(uint64_t k0, uint64_t k1) : flows_(16, FlowKeyHash(k0, k1)) {}

  /// A packet of a local host on its way to the peer. `parsed` is parseInnerPacket(packet).
  void onOutgoing(ByteSpan packet, const InnerPacket& parsed, Time now);
  /// A packet of the peer on its way to a local host.
  void onIncoming(ByteSpan packet, const InnerPacket& parsed, Time now);
  size_t flows() const { return flows_.size(); }

 private:
  enum class State : uint8_t { kOffered, kRefused, kActive };
  struct Flow {
    State state = State::kOffered;
    bool echo = false;  ///< ACKs carry ECE
    uint32_t isn = 0;   ///< sequence number of the SYN
    Time lastUse;
    std::list<FlowKey>::iterator place;  ///< in order of last use
  };
  void onSyn(ByteSpan packet, const InnerPacket& parsed, const FlowKey& key, Time now);
  Flow* find(const FlowKey& key, Time now);
  Flow* add(const FlowKey& key, Time now);
  void erase(const FlowKey& key);

  std::unordered_map<FlowKey, Flow, FlowKeyHash> flows_;  ///< by the local host's direction
  std::list<FlowKey> order_;                              ///< least recently used first
};

}  // namespace braid
