#pragma once

// Calls to return. A gateway that has restarted is unknown to nobody: its peers still use sessions whose keys it has
// lost, and notice that only when something that they send stays without an answer. So it keeps a list of the peers
// that came to it (Caller) where it survives a restart, and calls each of them back.
//
//     before   Tunnel::callers() --> the driver keeps them in a file
//     after    the file --> Tunnel::callBack() --> ReturnCalls --> a ReturnCall to each of their routes
//     there    the initiator knows the token: its session is over, and it begins a new handshake at once
//
// A call is made at start and at no other time, and by nobody's wish: what strangers send causes none, and no call is
// answered by another one. It says nothing but that a session is over which is over. Its token is good for one time:
// who repeats it ends nothing.

#include <cstddef>
#include <map>
#include <vector>

#include "base/packet.h"
#include "base/time.h"
#include "tunnel/subflow/datagram.h"
#include "tunnel/subflow/route.h"
#include "tunnel/wire/return_call.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// A peer that came to this gateway: what is to be known of it after a restart.
struct Caller {
  /// Routes of one that are kept. Ours.
  static constexpr size_t kMostRoutes = 8;

  Pin pin{};
  ReturnCall call;            ///< that ends its session
  std::vector<Route> routes;  ///< where the peer has answered

  bool operator==(const Caller&) const = default;
};

/// The calls that a gateway makes after its start.
class ReturnCalls {
 public:
  /// How often a peer is called that does not come: the pauses double, so that the last call goes after 6.3 s. Ours.
  static constexpr unsigned kRounds = 7;
  static constexpr Duration kFirstPause = 100ms;
  /// From one peer to the next, so that they do not come all at once: the pace of Door::kBegins.
  static constexpr Duration kSpacing = 2ms;

  /// Begins to call these, and forgets all others.
  void begin(std::vector<Caller> callers, Time now);
  /// The peer has come.
  void end(const Pin& pin);
  /// The next call that is due; false when none is, or there is no buffer: then that call is lost, as on the way.
  bool pollDatagram(PacketPool& pool, Datagram& out, Time now);
  /// kNever: no peer is to be called any more.
  Time nextDeadline() const { return calls_.empty() ? kNever : calls_.begin()->first; }

 private:
  struct Call {
    Caller caller;
    unsigned round = 0;
    size_t route = 0;  ///< the next one in this round
  };
  std::multimap<Time, Call> calls_;  ///< by the time of the next one
};

}  // namespace braid
