#pragma once

// Asks a concentrator to let this gateway join: a handshake over plain UDP sockets, without a
// daemon.

#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/dtls/identity.h"
#include "gateway/join/invitation.h"
#include "gateway/join/join_messages.h"

namespace braid {

/// The parameters of a join.
struct JoinCall {
  const Identity& identity;
  const Invitation& invitation;
  std::vector<Prefix> networks;  ///< behind this gateway
  std::vector<std::string>
      uplinks;  ///< tried one after the other after the host's own route; needs CAP_NET_RAW
  Duration patience = 12s;  ///< longest time until the concentrator answers for the first time
};

/// Returns the concentrator's answer, whatever it says. Throws std::runtime_error with a reason and
/// remedy when there is none.
JoinAnswer callToJoin(const JoinCall& call);

/// What a refusal says, in one line with a remedy; empty: the answer is kJoined.
std::string refusalText(const JoinAnswer& answer, const Invitation& invitation);

}  // namespace braid
