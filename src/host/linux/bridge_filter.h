#pragma once

#include <string>

namespace braid {

/// Whether br_netfilter hands packets that arrive by this bridge to the packet filter of IP before
/// the bridge passes them up to this host. Such a packet then forgets the socket that a rule chose
/// for it (TPROXY), and the host answers it with a reset. False: `interface` is not a bridge.
/// `root`: a folder used instead of /.
bool isFilteredBridge(const std::string& interface, bool v6, const std::string& root = {});

}  // namespace braid
