#include "ctl/join/guard.h"

#include <linux/capability.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ctl/client/client.h"
#include "ctl/client/host_record.h"
#include "ctl/join/gateway_yaml.h"
#include "ctl/views/format.h"
#include "gateway/control/control.h"
#include "gateway/network/tunnel_routes.h"
#include "host/linux/files.h"
#include "host/linux/netlink_config.h"
#include "host/linux/netlink_monitor.h"
#include "host/linux/nft_filter.h"
#include "host/system.h"

namespace braid {

namespace {

// What a guard was made with.
struct Guard {
  std::string device;
  HostNumbers numbers;
  std::string socket;  ///< of the gateway that keeps it while it runs
  bool operator==(const Guard& other) const {
    return device == other.device && numbers.markMask == other.numbers.markMask &&
           numbers.rulePriority == other.numbers.rulePriority;
  }
};

Guard guardOf(const Config& config) {
  return {config.device.name, numbersOf(config), config.control.socket};
}

HostRecord recordFor(const std::string& file) {
  return {file, "guard"};
}

std::optional<Guard> recall(const HostRecord& record) {
  std::vector<std::string> words = record.read();
  if (words.size() != 4) return std::nullopt;
  HostNumbers numbers;
  auto read = [](const std::string& word, uint32_t& to) {
    const char* end = word.data() + word.size();
    return std::from_chars(word.data(), end, to).ptr == end;
  };
  if (!read(words[1], numbers.markMask) || !read(words[2], numbers.rulePriority))
    return std::nullopt;
  return Guard{words[0], numbers, words[3]};
}

// A guard that cannot be recorded is better than none: then release needs the configuration.
void keep(const HostRecord& record, const Guard& guard) {
  record.write({guard.device, std::to_string(guard.numbers.markMask),
                std::to_string(guard.numbers.rulePriority), guard.socket});
}

// Whether the gateway runs, and so keeps the guard itself. Its socket is its user's: root without
// capabilities is refused there (braid-guard@.service), also at one that a killed daemon has left.
bool isKept(const Guard& guard) {
  try {
    ask(guard.socket, "status");
    return true;
  } catch (const NoPermission&) {
    return LockFile::isHeld(ControlPath::lockOf(guard.socket));
  } catch (const std::runtime_error&) {
    return false;
  }
}

struct GuardedConfig {
  Config config;
  std::string mistakes;  ///< of the file, when `config` is the one that was good last
};

// A mistake in the file must not end the guard at the next boot.
GuardedConfig readGuarded(const std::string& path, const KeptConfig& kept) {
  try {
    return {readConfig(path), ""};
  } catch (const std::runtime_error& e) {
    std::optional<std::string> text = kept.read();
    if (!text || access(path.c_str(), F_OK) != 0) throw;
    LoadOptions options;
    options.checkIdentity = false;
    ConfigResult result = parseConfig(*text, path, options);
    auto* config = std::get_if<Config>(&result);
    if (!config) throw;
    return {std::move(*config), e.what()};
  }
}

// Whether this process has CAP_NET_ADMIN.
bool mayConfigure() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  return ::syscall(SYS_capget, &header, sets) == 0 &&
         (sets[0].effective & uint32_t{1} << CAP_NET_ADMIN) != 0;
}

// A packet filter that ends with a gateway that runs is that gateway's own, and no guard. The
// kernel's answer is then the same as without CAP_NET_ADMIN.
void remove(const Guard& guard) {
  try {
    NetlinkConfig network;
    NftFilter filter(guard.device);
    releaseGuard(network, filter, guard.device, guard.numbers);
  } catch (const SystemError& e) {
    if (e.code() != EPERM) throw;
    if (!mayConfigure())
      throw std::runtime_error("taking away the guard of " + guard.device +
                               " needs CAP_NET_ADMIN: use root");
    if (!isKept(guard)) throw;
  }
}

// The guard that this configuration asks for on this host.
RoutePlan planOf(const Config& config, const Guard& guard) {
  RouteSituation situation{guard.device, guard.numbers, false, {}, false};
  NetlinkMonitor monitor;
  unsigned number = 0;
  for (const std::string& interface : interfacesOf(config.uplinks, monitor.table())) {
    uint32_t mark = situation.numbers.replyMark(number++);
    if (!interface.empty()) situation.replies.push_back({interface, mark});
  }
  return planGuard(config, monitor.table(), situation);
}

std::vector<FoundRule> rulesOfBraid() {
  std::vector<FoundRule> out;
  NetlinkSocket(0).dump(RTM_GETRULE, AF_UNSPEC, [&](const nlmsghdr& message) {
    std::optional<FoundRule> rule = parseRule(message);
    if (rule && rule->protocol == kBraidProtocol) out.push_back(std::move(*rule));
  });
  return out;
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
  const std::string path = configFile(file);
  const KeptConfig kept(path);
  const auto [config, mistakes] = readGuarded(path, kept);
  const Guard now = guardOf(config);
  HostRecord record = recordFor(path);
  std::optional<Guard> before = recall(record);
  // The record of another guard is kept until that is removed: nothing else knows of it.
  const bool isOther = before && *before != now;
  if (isKept(now)) {
    if (config.device.whenDown == DeviceConfig::WhenDown::kBlock) {
      if (!isOther) keep(record, now);
      if (mistakes.empty()) kept.keep();
    }
    return tell(true, "the gateway runs and keeps its guard", json, out);
  }
  RoutePlan guard = planOf(config, now);
  if (!guard.filter.guard) {
    remove(now);
    if (isOther) remove(*before);
    record.remove();
    kept.remove();
    return tell(false, "no guard: 'device.when-down' is not 'block', or there are no routes", json,
                out);
  }
  if (!isOther) keep(record, now);
  if (mistakes.empty()) kept.keep();
  NetlinkConfig network;
  NftFilter filter(now.device);
  applyGuard(network, filter, now.device, guard);
  // The other guard stays until the new one is there. One of the same device has its packet filter
  // and its routes.
  if (isOther && before->device == now.device) {
    removeGuardRules(network, now.device, before->numbers);
  } else if (isOther) {
    remove(*before);
  }
  keep(record, now);
  std::string text = "packets to device.routes leave by " + now.device + " only, or not at all";
  if (!mistakes.empty()) text += ", as the file said when it was good last; now: " + mistakes;
  tell(true, text, json, out);
}

void releaseGuard(const std::string& file, bool json, std::ostream& out) {
  const std::string path = configFile(file);
  HostRecord record = recordFor(path);
  std::optional<Guard> before = recall(record), now;
  bool isWanted = true;
  try {
    Config config = readConfig(path);
    now = guardOf(config);
    isWanted = config.device.whenDown == DeviceConfig::WhenDown::kBlock;
  } catch (const std::runtime_error&) {
    if (!before) throw;
  }
  if (isWanted && isKept(now ? *now : *before))
    throw std::runtime_error(
        "the gateway runs and would put its guard back; stop it first (systemctl stop "
        "braid@NAME), or remove 'device.when-down: block' and reload");
  if (now) remove(*now);
  if (before && before != now) remove(*before);
  record.remove();
  KeptConfig(path).remove();
  tell(false,
       "the guard of " + (now ? now : before)->device +
           " is gone: packets take the host's own routes in clear",
       json, out);
}

bool isGuarded(const Config& config) {
  const Guard guard = guardOf(config);
  std::vector<FoundRule> rules = rulesOfBraid();
  const bool hasV6 = ::access("/proc/net/if_inet6", F_OK) == 0;
  auto isThere = [&](const RuleSpec& wanted) {
    if (wanted.family == Address::Family::kV6 && !hasV6) return true;  // nor is anything guarded
    return std::ranges::any_of(rules, [&](const FoundRule& rule) {
      return rule.spec.family == wanted.family && rule.spec.priority == wanted.priority &&
             rule.spec.table == wanted.table;
    });
  };
  return std::ranges::all_of(planOf(config, guard).rules, isThere) &&
         NftFilter(guard.device).isThere();
}

std::vector<StandingGuard> standingGuards() {
  std::vector<StandingGuard> out;
  std::vector<FoundRule> rules = rulesOfBraid();
  for (const std::string& file : HostRecord::configsWith("guard")) {
    std::optional<Guard> guard = recall(recordFor(file));
    if (!guard) continue;
    uint32_t table = HostNumbers::guardTable(guard->device);
    if (std::ranges::any_of(rules, [&](const FoundRule& r) { return r.spec.table == table; }))
      out.push_back({file, guard->device, isKept(*guard)});
  }
  return out;
}

}  // namespace braid
