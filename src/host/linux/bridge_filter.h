#pragma once

#include <string>

namespace braid {

/// Whether the kernel shows the packets that come in by this interface to the packet filter of IP
/// while they are still a bridge's (br_netfilter). Their way to this host is the same either way,
/// but a socket that a rule chose for one (TPROXY) is forgotten: it then belongs to nobody, and is
/// answered by a reset. False for an interface that is no bridge. `root`: a folder used instead of
/// /.
bool isFilteredBridge(const std::string& interface, bool v6, const std::string& root = {});

}  // namespace braid
