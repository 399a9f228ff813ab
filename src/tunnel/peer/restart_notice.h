#pragma once

// Restart notices. A gateway that has restarted has lost the keys of its sessions, but its peers
// still use these. They would notice that only when their packets stay without an answer. So the
// gateway keeps a list of the peers that connected to it (KnownInitiator) in a file, and after a
// restart it sends each of them a notice. A running gateway that has forgotten the keys of a
// session on purpose (Peer::forgetKeys()) sends its peer one, too.
//
//     before   Tunnel::knownInitiators() --> the driver keeps them in a file
//     after    the file --> Tunnel::sendRestartNotices() --> RestartNotices --> a notice to each
//     route there    the initiator knows the token: it drops the session and begins a handshake at
//     once
//
// Notices are sent only after a start, or after keys were forgotten: nothing that a stranger sends
// causes one, and no notice is answered by another. A notice only says that a session is over which
// is over anyway. Its token is valid once, so that a replayed notice ends nothing.

#include <map>
#include <utility>
#include <vector>

#include "base/packet.h"
#include "base/time.h"
#include "tunnel/api/options.h"
#include "tunnel/subflow/route.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// The notices that a gateway sends after its start, or after it has forgotten keys.
class RestartNotices {
 public:
  /// How often each route of a peer gets a notice until the peer connects. The pauses double, so
  /// that the last notice is sent after 6.3 s.
  static constexpr unsigned kRounds = 7;
  static constexpr Duration kFirstPause = 100ms;
  /// Pause between the first notices to one peer and to the next, so that they do not all connect
  /// at once. Chosen: half the rate of HandshakeLimiter::kKnownBegins.
  static constexpr Duration kSpacing = 2ms;

  /// Begins to notify these peers, and forgets all others.
  void begin(std::vector<KnownInitiator> initiators, Time now);
  /// Begins to notify these peers, too.
  void add(std::vector<KnownInitiator> initiators, Time now);
  /// The peer has connected: it gets no more notices.
  void end(const Pin& pin);
  /// The next notice that is due. False when none is due, or there is no buffer: that notice is
  /// then lost, as it might be on its way.
  bool pollDatagram(PacketPool& pool, Datagram& out, Time now);
  /// When the next notice is due; kNever: no peer is to be notified.
  Time nextDeadline() const { return calls_.empty() ? kNever : calls_.begin()->first; }

 private:
  struct Call {
    KnownInitiator initiator;
    unsigned round = 0;
    size_t route = 0;  ///< the next one in this round
  };
  std::multimap<Time, Call> calls_;  ///< by the time of the next notice
};

inline void RestartNotices::begin(std::vector<KnownInitiator> initiators, Time now) {
  calls_.clear();
  add(std::move(initiators), now);
}

inline void RestartNotices::add(std::vector<KnownInitiator> initiators, Time now) {
  for (KnownInitiator& initiator : initiators) {
    if (initiator.routes.empty()) continue;
    if (initiator.routes.size() > KnownInitiator::kMostRoutes)
      initiator.routes.resize(KnownInitiator::kMostRoutes);
    calls_.emplace(now, Call{std::move(initiator)});
    now += kSpacing;
  }
}

inline void RestartNotices::end(const Pin& pin) {
  std::erase_if(calls_, [&](const auto& entry) { return entry.second.initiator.pin == pin; });
}

inline bool RestartNotices::pollDatagram(PacketPool& pool, Datagram& out, Time now) {
  if (nextDeadline() > now) return false;
  auto node = calls_.extract(calls_.begin());
  Call& call = node.mapped();
  const KnownInitiator& initiator = call.initiator;
  Packet packet = pool.allocate();
  bool sent = static_cast<bool>(packet);
  if (sent) {
    writeRestartNotice(initiator.notice, packet);
    out = {initiator.routes[call.route], Ecn::kNotEct, std::move(packet)};
  }
  if (++call.route == initiator.routes.size()) {
    node.key() = now + kFirstPause * (1 << call.round);
    call.route = 0;
    ++call.round;
  }
  if (call.round < kRounds) calls_.insert(std::move(node));
  return sent;
}

}  // namespace braid
