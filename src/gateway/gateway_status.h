#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace braid {

/// An uplink as the host sees it now.
struct UplinkStatus {
  std::string name;
  std::string interface;
  bool up = false;
  std::vector<std::string> addresses;  ///< local ones in use
  std::string gateway;                 ///< empty: the main table's
};

/// What the daemon knows beside the tunnel.
struct GatewayStatus {
  std::string version;
  std::string config;  ///< path of the configuration file
  std::string pin;     ///< this gateway's own, "sha256:BASE64"
  std::string device;
  std::string mode;  ///< "tun" or "tap"
  uint64_t pid = 0;
  Duration uptime{};
  uint64_t deviceMtu = 0;  ///< bytes
  std::vector<std::string> listen;
  std::vector<UplinkStatus> uplinks;
};

}  // namespace braid
