#include "ctl/join/guard.h"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "ctl/client/client.h"
#include "ctl/views/format.h"
#include "gateway/network/tunnel_routes.h"
#include "host/linux/netlink_config.h"
#include "host/linux/netlink_monitor.h"
#include "host/linux/nft_filter.h"
#include "host/system.h"

namespace braid {

namespace {

// A guard must be there before key and certificate are.
Config readForGuard(const std::string& file) {
  LoadOptions options;
  options.checkIdentity = false;
  ConfigResult result = loadConfig(configFile(file), options);
  auto* errors = std::get_if<ConfigErrors>(&result);
  if (!errors) return std::get<Config>(std::move(result));
  std::string text;
  for (const ConfigError& e : *errors) text += (text.empty() ? "" : "\n") + e.toString();
  throw std::runtime_error(text);
}

// Whether a gateway with this configuration runs, and so keeps the guard itself. The socket of one
// is its user's: root without capabilities is refused there (braid-guard@.service).
bool isKept(const Config& config) {
  try {
    ask(config.control.socket, "status");
    return true;
  } catch (const NoPermission&) {
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
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
  Config config = readForGuard(file);
  const std::string& device = config.device.name;
  if (isKept(config)) {
    return tell(true, "the gateway runs and keeps its guard", json, out);
  }
  RouteSituation situation{device, numbersOf(config), false, {}, false};
  NetlinkMonitor monitor;
  unsigned number = 0;
  for (const std::string& interface : interfacesOf(config.uplinks, monitor.table())) {
    uint32_t mark = situation.numbers.replyMark(number++);
    if (!interface.empty()) situation.replies.push_back({interface, mark});
  }
  RoutePlan guard = planGuard(config, monitor.table(), situation);
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
  Config config = readForGuard(file);
  bool runs = isKept(config);
  if (runs && config.device.whenDown == DeviceConfig::WhenDown::kBlock)
    throw std::runtime_error(
        "the gateway runs and would put its guard back; stop it first (systemctl stop "
        "braid@NAME), or remove 'when-down' and reload");
  NetlinkConfig network;
  NftFilter filter(config.device.name);
  try {
    releaseGuard(network, filter, config.device.name, numbersOf(config));
  } catch (const SystemError& e) {
    // A table that ends with the gateway is its own, and no guard.
    if (!runs || e.code() != EPERM) throw;
  }
  tell(false,
       "the guard of " + config.device.name +
           " is gone: packets take the host's own routes in clear",
       json, out);
}

}  // namespace braid
