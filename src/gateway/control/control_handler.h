#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gateway/control/gateway_status.h"
#include "gateway/control/history.h"
#include "gateway/control/invite_request.h"
#include "host/unique_fd.h"
#include "tunnel/session/measure_request.h"
#include "tunnel/status.h"

namespace braid {

/// What the control socket asks of the daemon. Called on the event loop; must not block.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  /// Of all peers together, none of them listed.
  virtual TunnelStatus tunnelStatus() = 0;
  /// The names of the peers, each at its place.
  virtual std::vector<std::string> peers() = 0;
  /// The peer at this place, with so many of its inner flows; nullopt: there is none any more.
  virtual std::optional<PeerStatus> peerStatus(size_t place, size_t flows) = 0;
  virtual GatewayStatus gatewayStatus() = 0;
  /// Reads the configuration file again. Gives what is wrong with the file (several lines); empty: the new
  /// configuration holds now.
  virtual std::string reload() = 0;
  /// Writes the recovery trace to this file from now on; with a `file` that owns nothing, ends the trace. Gives
  /// what is wrong with the file; empty: done.
  virtual std::string trace(UniqueFd file) = 0;
  /// Makes an invitation for another gateway.
  virtual InviteResult invite(const InviteRequest& request) = 0;
  virtual const History& history() = 0;
  /// A load test of a peer's paths (PeerLoadTest). Gives what is wrong; empty: it runs.
  virtual std::string startTest(const std::string& peer, const MeasureRequest& request) = 0;
  virtual void stopTest() = 0;
  /// The last one, and the figures of its peer; without one empty.
  virtual std::pair<MeasureStatus, PeerStatus> testStatus() = 0;
};

}  // namespace braid
