#pragma once

#include <string>

#include "tunnel/peer_set.h"
#include "tunnel/session/measure_request.h"
#include "tunnel/status.h"

namespace braid {

/// The load test of a peer's paths, one at a time: which peer's it is. The test itself belongs to the peer's session
/// (Measurement), with which it ends.
class PeerLoadTest {
 public:
  /// `peers` must outlive this.
  explicit PeerLoadTest(PeerSet& peers) : peers_(peers) {}

  /// Fills paths of the peer with datagrams that hold nothing, within the bounds of the request. Gives what is wrong;
  /// empty: it runs.
  std::string start(const std::string& peer, const MeasureRequest& request, Time now);
  void stop();
  MeasureStatus status(Time now) const;
  /// The figures of the peer whose test was the last one; empty without one.
  PeerStatus peer(Time now) const;

 private:
  Peer* named(const std::string& name) const;
  Session* session() const;

  PeerSet& peers_;
  MeasureStatus last_;  ///< whose paths, and which
};

}  // namespace braid
