#include "ctl/join/guard.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/client/client.h"
#include "ctl/join/gateway_yaml.h"
#include "ctl/views/format.h"
#include "gateway/network/tunnel_routes.h"
#include "host/linux/netlink_config.h"
#include "host/linux/netlink_monitor.h"
#include "host/linux/nft_filter.h"

namespace braid {

namespace {

// Whether a gateway with this configuration runs, and so keeps the guard itself.
bool isKept(const Config& config) {
  try {
    ask(config.control.socket, "status");
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

HostNumbers numbersOf(const Config& config) {
  return {config.device.markMask, config.device.rulePriority, 0};
}

// Prints what was done. `guarded`: a guard is in effect now.
void tell(bool guarded, const std::string& text, bool json, std::ostream& out) {
  if (json) {
    out << prettyJson({{"guarded", guarded}, {"text", text}});
  } else {
    out << text << '\n';
  }
}

}  // namespace

void applyGuard(const std::string& file, bool json, std::ostream& out) {
  Config config = readConfig(configFile(file));
  const std::string& device = config.device.name;
  if (isKept(config)) {
    return tell(true, "the gateway runs and keeps its guard", json, out);
  }
  RouteSituation situation{device, numbersOf(config), false, {}};
  for (const UplinkConfig& uplink : config.uplinks) {
    auto number = static_cast<unsigned>(situation.replies.size());
    situation.replies.push_back({uplink.interface, situation.numbers.replyMark(number)});
  }
  RoutePlan guard = planGuard(config, NetlinkMonitor().table(), situation);
  NetlinkConfig network;
  NftFilter filter(device);
  if (!guard.filter.guard) {
    releaseGuard(network, filter, device, situation.numbers);
    return tell(false, "no guard: 'device.when-down' is not 'block', or there are no routes", json,
                out);
  }
  applyGuard(network, filter, device, guard);
  tell(true, "packets to device.routes leave by " + device + " only, or not at all", json, out);
}

void releaseGuard(const std::string& file, bool json, std::ostream& out) {
  Config config = readConfig(configFile(file));
  if (isKept(config) && config.device.whenDown == DeviceConfig::WhenDown::kBlock)
    throw std::runtime_error(
        "the gateway runs and would put its guard back; stop it first (systemctl stop "
        "braid@NAME), or remove 'device.when-down: block' and reload");
  NetlinkConfig network;
  NftFilter filter(config.device.name);
  releaseGuard(network, filter, config.device.name, numbersOf(config));
  tell(false,
       "the guard of " + config.device.name +
           " is gone: packets take the host's own routes in clear",
       json, out);
}

}  // namespace braid
