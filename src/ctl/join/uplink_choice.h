#pragma once

// The uplinks of a gateway that is being made: what they are called, and which are paid for by
// volume.

#include <iosfwd>
#include <string>
#include <vector>

#include "ctl/join/gateway_yaml.h"
#include "ctl/join/new_gateway.h"
#include "host/network.h"

namespace braid {

/// What the command line says of uplinks.
struct UplinkWords {
  std::vector<std::string> uplinks;  ///< INTERFACE or INTERFACE=NAME; empty: those that are found
  std::vector<std::string> metered;  ///< INTERFACE or INTERFACE=CAP; {"none"}: none is metered;
                                     ///< empty: asks, or takes modems
};

/// Whether the interface is that of a cellular modem, by what the kernel calls it (its kind, or
/// DEVTYPE of /sys/class/net/NAME/uevent), or by a name that begins with "wwan". `classes`: that
/// folder.
bool isModem(const Link& link, const std::string& classes = "/sys/class/net");

/// The uplinks, named and metered as the words say. What they leave open is asked at the terminal;
/// without one, or with `yes`, an uplink has its interface's name, and modems are metered without a
/// cap. Throws std::runtime_error with a remedy.
std::vector<PlannedUplink> chooseUplinks(const UplinkWords& words, bool yes,
                                         const NetworkTable& table, const std::string& device,
                                         UserTerminal& terminal);

/// "wifi0, lte (wwan0; metered, 50GB a month)"
std::string describe(const std::vector<PlannedUplink>& uplinks);
std::vector<std::string> interfacesOf(const std::vector<PlannedUplink>& uplinks);

}  // namespace braid
