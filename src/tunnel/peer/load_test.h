#pragma once

#include <string>

#include "base/time.h"
#include "tunnel/api/status.h"
#include "tunnel/session/session_options.h"

namespace braid {

class Peer;
class PeerSet;
class Session;

/// Starts load tests of a peer's paths, one test at a time. The test itself belongs to the peer's
/// session (LoadTest) and ends with it.
class PeerLoadTest {
 public:
  /// `peers` must outlive this object.
  explicit PeerLoadTest(PeerSet& peers) : peers_(peers) {}

  /// Fills paths of the peer with datagrams without content, within the limits of the request.
  /// Returns what is wrong; empty: the test runs.
  std::string start(const std::string& peer, const MeasureRequest& request, Time now);
  void stop();
  MeasureStatus status(Time now) const;
  /// The status of the peer that was tested last; empty if there was no test.
  PeerStatus peer(Time now) const;

 private:
  Peer* named(const std::string& name) const;
  Session* session() const;

  PeerSet& peers_;
  MeasureStatus last_;  ///< the peer and the path of the last test
};

}  // namespace braid
