#pragma once

#include <string>
#include <vector>

#include "host/network_table.h"
#include "host/resolver.h"
#include "inet/endpoint.h"
#include "inet/prefix.h"

namespace braid {

/// Where others may reach this gateway, as far as the host can tell.
struct PublicAddresses {
  std::vector<HostPort> addresses;  ///< at most kMaxInvitationAddresses
  std::string note;                 ///< what is doubtful about them; empty: nothing
};

/// What is listened on; in the place of 0.0.0.0 and [::] the addresses of the interfaces that have a default route,
/// public ones alone where there are any.
PublicAddresses publicAddresses(const std::vector<Endpoint>& listen, const NetworkTable& table);

/// Whether an address is for a private network only (RFC 1918, RFC 6598, RFC 4193).
bool isPrivate(const Address& address);
/// All of the network's addresses are.
bool isPrivate(const Prefix& network);

}  // namespace braid
