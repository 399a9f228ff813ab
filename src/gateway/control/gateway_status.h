#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/recovery/recovery.h"

namespace braid {

/// An uplink as the host sees it now.
struct UplinkStatus {
  std::string name;
  std::string interface;
  bool up = false;
  std::vector<std::string> addresses;  ///< local ones in use
  std::string gateway;                 ///< empty: the main table's
  std::string use = "normal";          ///< useName()
  unsigned weight = 1;
  uint64_t upLimit = 0, downLimit = 0;  ///< bytes per second; 0: none
  struct Meter {
    uint64_t used = 0, cap = 0;  ///< bytes
    bool closed = false;         ///< at its cap
    int64_t until = 0;           ///< end of the period, seconds since 1970
  };
  std::optional<Meter> meter = std::nullopt;
};

/// What was lost between the kernel and the tunnel since the start of the daemon, in datagrams and packets.
struct HostDrops {
  uint64_t socketOverflow = 0;       ///< the kernel's receive buffer of a socket was full
  uint64_t socketTruncated = 0;      ///< longer than a packet buffer
  uint64_t socketNoBuffer = 0;       ///< no packet buffer was free
  uint64_t socketQueueFull = 0;      ///< too many waited for room in a send buffer
  uint64_t socketSendFailed = 0;     ///< refused by the kernel: no route, no memory
  uint64_t socketTooBig = 0;         ///< above the interface's MTU; MTU probes among them
  uint64_t socketClosed = 0;         ///< for a socket that is gone
  uint64_t deviceReadTruncated = 0;  ///< longer than a packet buffer
  uint64_t deviceReadNoBuffer = 0;   ///< no packet buffer was free
  uint64_t deviceWriteFull = 0;      ///< the device's queue was full
  uint64_t deviceWriteFailed = 0;    ///< refused by the kernel: malformed, or the device is down
};

/// The recovery trace (trace_writer.h).
struct TraceStatus {
  bool on = false;
  uint64_t written = 0;  ///< events
  uint64_t dropped = 0;  ///< events
  std::string problem;   ///< why the last ones were dropped; empty: none, or too many came at once
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
  HostDrops drops;
  RecoveryOptions recovery;  ///< with the decode times that were measured
  TraceStatus trace;
};

}  // namespace braid
