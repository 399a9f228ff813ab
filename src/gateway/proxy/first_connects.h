#pragma once

#include <cstddef>
#include <optional>

#include "base/packet.h"
#include "base/time.h"
#include "gateway/control/gateway_status.h"
#include "gateway/proxy/given_back.h"
#include "gateway/proxy/intercept_policy.h"
#include "gateway/proxy/pending_connects.h"
#include "host/stream_host.h"
#include "tunnel/api/streams.h"

namespace braid {

/// `streams.connect: first`: finds the packets that begin connections of local hosts among those
/// that come out of the device, opens a stream for each that the policy takes over, and lets the
/// host's listener have it when its destination has accepted.
class FirstConnects {
 public:
  /// All must outlive this. Counts in `figures` what becomes of connections.
  FirstConnects(StreamHost& host, StreamApi& lanes, InterceptPolicy& policy, PacketPool& pool,
                StreamFigures& figures)
      : host_(host), lanes_(lanes), policy_(policy), figures_(figures), pending_(pool) {}

  /// A packet from the device. Returns the ends of the connection that it begins when it is taken;
  /// nullopt: it is to cross the tunnel. `hasRoom`: whether there is room for another connection.
  std::optional<StreamEnds> take(Packet& packet, bool hasRoom, Time now);
  /// Returns false, and does nothing, when the event's stream is not of a connection that waits.
  bool onEvent(const StreamEvent& event, Time now);
  /// As PendingConnects::join(). Later copies of the SYN begin nothing.
  std::optional<StreamHandle> join(const StreamEnds& ends);
  /// Gives up the connections that nobody waits for any more.
  void expire(Time now) { giveUp(now, StreamCause::kTimedOut, now); }
  /// Gives up all connections.
  void clear(Time now) { giveUp(kNever, StreamCause::kReset, now); }
  Time deadline() const { return pending_.deadline(); }
  /// Takes the next packet for the device or the tunnel; nullopt when there is none.
  std::optional<PendingConnects::Output> poll(Time now);
  bool hasOutput() const { return pending_.hasOutput(); }
  /// Connections that wait.
  size_t size() const { return pending_.size(); }

 private:
  void giveBack(ByteView syn, Time now);
  void leave(const StreamEnds& ends, Time now);
  void giveUp(Time then, StreamCause cause, Time now);

  StreamHost& host_;
  StreamApi& lanes_;
  InterceptPolicy& policy_;
  StreamFigures& figures_;
  PendingConnects pending_;
  GivenBack givenBack_;
};

}  // namespace braid
