#pragma once

#include <string>
#include <vector>

#include "ackshim/options.h"
#include "base/time.h"
#include "inet/endpoint.h"
#include "inet/prefix.h"
#include "tunnel/session/session_options.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// Settings of the whole tunnel. Ranges are checked by the configuration reader.
struct TunnelOptions : SessionOptions {
  bool ecnProxy = true;   ///< speak ECN for local hosts that do not (ecn_proxy.h)
  bool ackShim = true;    ///< wake local TCP senders (docs/ackshim.md); kTun only
  AckShimOptions shim{};  ///< its settings
};

/// What the configuration says of one peer.
struct PeerOptions {
  std::string name;
  Pin pin{};
  std::vector<Endpoint> endpoints;  ///< where to reach the peer; empty: it must come to us
  std::vector<Prefix>
      prefixes;              ///< inner addresses behind the peer: routed there, and enforced on what it sends
  Duration keepalive = 10s;  ///< idle subflows send a PING so often; 0: never
};

}  // namespace braid
