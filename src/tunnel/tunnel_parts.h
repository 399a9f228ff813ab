#pragma once

// What is behind the interface of a tunnel (tunnel.h).

#include <algorithm>

#include "base/memory_quota.h"
#include "tunnel/forward/forwarder.h"
#include "tunnel/peer/accepting.h"
#include "tunnel/peer/load_test.h"
#include "tunnel/peer/peer_groups.h"
#include "tunnel/peer/peer_set.h"
#include "tunnel/peer/restart_notice.h"
#include "tunnel/peer/uplinks.h"
#include "tunnel/tunnel.h"
#include "tunnel/tunnel_streams.h"

namespace braid {

/// The parts of a tunnel, and what several of its calls do with them.
class Tunnel::Parts {
 public:
  Parts(TunnelOptions options, PacketPool& pool, HandshakeProvider& handshakes,
        const RandomKey& key);
  /// Ends the sessions while the objects they refer to still exist.
  ~Parts() { peers_.clear(); }

 private:
  friend class Tunnel;

  void count(const Route& route, size_t bytes, Time now);
  void onHandshake(const Route& from, ByteSpan bytes, Time now);
  bool pollReply(Datagram& out, Time now);
  void takeOutcomes(Time now);
  void shareUplinks();
  void settle();
  void settle(const Peer& changed);
  Time forward(Time now) { return now_ = std::max(now_, now); }

  TunnelOptions options_;
  PacketPool& pool_;
  HandshakeProvider& handshakes_;
  SecretRandom random_;
  Time now_ = Time::min();
  MemoryQuota memory_{Tunnel::kMemory};
  MemoryQuota streamMemory_;
  TunnelStreams streams_;
  SharedResources shared_;
  UplinkMeters uplinks_;
  EventQueue events_;
  PacketEventQueue packets_;
  PeerSet peers_;
  PeerLoadTest loadTest_{peers_};
  PeerGroups groups_;
  HandshakeServer handshakeServer_;
  RestartNotices restartNotices_;
  /// Sessions take turns with handshake replies and restart notices: true when the next poll asks
  /// for a reply first.
  bool replyNext_ = false;
  Forwarder forwarder_;
  DropCounts drops_{};
};

}  // namespace braid
