#include "host/linux/netlink_config.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include "host/linux/forwarding.h"
#include "host/linux/netlink.h"
#include "host/system.h"

namespace braid {

namespace {

// The metric that the kernel gives an IPv6 route without one (IP6_RT_PRIO_USER).
constexpr uint32_t kDefaultMetricV6 = 1024;

[[noreturn]] void fail(const std::string& wanted, const NetlinkSocket::Answer& answer) {
  std::string what = "cannot add " + wanted + ": ";
  switch (answer.error) {
    case EPERM:
    case EACCES:
      what += kNetAdminRemedy;
      break;
    case ENETUNREACH:
    case EHOSTUNREACH:
      what +=
          "the gateway is not reachable on that interface; check the interface's address and the "
          "gateway's";
      break;
    case ENETDOWN:
      what += "the interface is down";
      break;
    default:
      what += std::strerror(answer.error);
  }
  if (!answer.message.empty()) what += " (kernel: " + answer.message + ")";
  throw SystemError(answer.error, what);
}

[[noreturn]] void failTaken(const std::string& wanted, const std::string& other) {
  throw SystemError(EEXIST, "cannot add " + wanted + ": there is already " + other +
                                "; remove one of them or change the configuration");
}

bool alreadyGone(int error) {
  return error == ENOENT || error == ESRCH || error == ENODEV || error == ENXIO ||
         error == EADDRNOTAVAIL || error == ENETDOWN;
}

// Whether a step failed because its device is gone or down. It will be done when the device is
// back.
bool waitsForDevice(int error) {
  return error == ENODEV || error == ENXIO || error == ENETDOWN;
}

void check(const std::string& step, const NetlinkSocket::Answer& answer) {
  if (answer.error == 0 || alreadyGone(answer.error)) return;
  std::string what = "cannot take back " + step + ": ";
  what += answer.error == EPERM ? kNetAdminRemedy : std::strerror(answer.error);
  throw SystemError(answer.error, what);
}

std::string addressText(const std::string& device, const InterfaceAddress& a) {
  return "address " + a.toString() + " on " + device;
}

// Whether two routes have the same key: the kernel keeps one route for each combination of
// destination, table and metric.
bool sameKey(const FoundRoute& found, const RouteSpec& wanted) {
  uint32_t metric = wanted.metric;
  if (metric == 0 && wanted.destination.address.isV6()) metric = kDefaultMetricV6;
  return found.spec.destination == wanted.destination && found.spec.table == wanted.table &&
         found.spec.metric == metric;
}

}  // namespace

NetlinkConfig::NetlinkConfig() : socket_(0) {}
NetlinkConfig::~NetlinkConfig() {
  try {
    undo();
  } catch (const std::exception&) {  // no memory to describe a failure
  }
}

void NetlinkConfig::remember(std::string text, std::function<void()> takeBack,
                             std::function<bool()> again) {
  makeRoom();
  keep({std::move(text), std::move(takeBack), std::move(again)});
}

void NetlinkConfig::makeRoom() {
  if (steps_.size() == steps_.capacity()) steps_.reserve(2 * steps_.size() + 8);
}

void NetlinkConfig::keep(Step step) {
  forget(step.text);  // the kernel may have dropped it, for example with its link
  steps_.push_back(std::move(step));
}

void NetlinkConfig::forget(std::string_view text) {
  std::erase_if(steps_, [&](const Step& s) { return s.text == text; });
}

NetlinkConfig::Step* NetlinkConfig::find(std::string_view text) {
  auto at =
      std::find_if(steps_.begin(), steps_.end(), [&](const Step& s) { return s.text == text; });
  return at == steps_.end() ? nullptr : &*at;
}

// In the original order, because a route needs its link to be up.
HostNetwork::Restored NetlinkConfig::restore() {
  Restored out;
  for (const Step& s : steps_) {
    try {
      if (s.again()) out.back.push_back(s.text);
    } catch (const SystemError& e) {
      if (!waitsForDevice(e.code())) out.failed.push_back(e.what());
    }
  }
  return out;
}

bool NetlinkConfig::addAgain(const std::string& text, const NetlinkSocket::Answer& answer) {
  if (answer.error != 0 && answer.error != EEXIST) fail(text, answer);
  return answer.error == 0;
}

// Steps that fail are tried a second time, because what is not undone now stays on the host.
std::vector<std::string> NetlinkConfig::undo() {
  std::vector<std::string> failures;
  std::vector<Step> refused;
  refused.reserve(steps_.size());
  for (int round = 0; round < 2; ++round) {
    for (; !steps_.empty(); steps_.pop_back()) {
      try {
        if (!steps_.back().stays) steps_.back().takeBack();
      } catch (const std::exception& e) {
        if (round == 0) refused.push_back(std::move(steps_.back()));
        if (round == 1) failures.push_back(e.what());
      }
    }
    std::reverse(refused.begin(), refused.end());
    std::swap(steps_, refused);
  }
  return failures;
}

std::vector<std::string> NetlinkConfig::done() const {
  std::vector<std::string> out;
  for (const Step& s : steps_) out.push_back(s.text);
  return out;
}

int NetlinkConfig::findIndex(const std::string& device) {
  int index = 0;
  NetlinkRequest request(RTM_GETLINK, 0);
  request.body<ifinfomsg>();
  request.put(IFLA_IFNAME, device);
  NetlinkSocket::Answer answer = socket_.request(request.header(), [&](const nlmsghdr& m) {
    if (m.nlmsg_type == RTM_NEWLINK && m.nlmsg_len >= mnl_nlmsg_size(sizeof(ifinfomsg)))
      index = static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(&m))->ifi_index;
  });
  if (answer.error == 0 || answer.error == ENODEV) return index;
  throw SystemError(answer.error,
                    "cannot look at interface '" + device + "': " + std::strerror(answer.error));
}

int NetlinkConfig::indexOf(const std::string& device) {
  int index = findIndex(device);
  if (index == 0) throw SystemError(ENODEV, "there is no interface named '" + device + "'");
  return index;
}

std::string NetlinkConfig::nameOf(int index) {
  char name[IF_NAMESIZE];
  return if_indextoname(static_cast<unsigned>(index), name) ? name : std::to_string(index);
}

void NetlinkConfig::addAddress(const std::string& device, const InterfaceAddress& address) {
  Step step{addressText(device, address), [=, this] { deleteAddress(device, address); },
            [=, this] {
              NetlinkRequest again = addressRequest(RTM_NEWADDR, address, indexOf(device));
              return addAgain(addressText(device, address), socket_.request(again.header()));
            }};
  const std::string& text = step.text;
  makeRoom();
  int index = indexOf(device);
  NetlinkSocket::Answer answer =
      socket_.request(addressRequest(RTM_NEWADDR, address, index).header());
  if (answer.error == EEXIST && !remembers(text)) {
    bool ours = false;
    std::string other = conflicting(index, address, ours);
    if (!ours) failTaken(text, other);
  } else if (answer.error != 0 && answer.error != EEXIST) {
    fail(text, answer);
  }
  keep(std::move(step));
}

std::string NetlinkConfig::conflicting(int index, const InterfaceAddress& address, bool& ours) {
  std::string other = "another address";
  socket_.dump(RTM_GETADDR, socketFamily(address.address.family), [&](const nlmsghdr& m) {
    auto found = parseAddress(m);
    if (!found || found->device != index || found->address.address != address.address) return;
    other = "address " + found->address.toString() + " that was set by others";
    ours = found->address == address && found->protocol == kBraidProtocol;
  });
  return other;
}

void NetlinkConfig::deleteAddress(const std::string& device, const InterfaceAddress& address) {
  int index = findIndex(device);
  if (index == 0) return;
  check(addressText(device, address),
        socket_.request(addressRequest(RTM_DELADDR, address, index).header()));
}

void NetlinkConfig::removeAddress(const std::string& device, const InterfaceAddress& address) {
  deleteAddress(device, address);
  forget(addressText(device, address));  // after a failure the step is kept, and undo() tries again
}

void NetlinkConfig::addRoute(const RouteSpec& route) {
  Step step{route.toString(), [=, this] { deleteRoute(route); },
            [=, this] {
              NetlinkRequest again = routeRequest(RTM_NEWROUTE, route, indexOf(route));
              return addAgain(route.toString(), socket_.request(again.header()));
            },
            route.stays};
  const std::string& text = step.text;
  makeRoom();
  int index = indexOf(route);
  NetlinkSocket::Answer answer = socket_.request(routeRequest(RTM_NEWROUTE, route, index).header());
  if (answer.error == EEXIST) {
    bool ours = false;
    std::string other = conflicting(route, ours);
    if (!ours) failTaken(text, other);
  } else if (answer.error != 0) {
    fail(text, answer);
  }
  keep(std::move(step));
}

std::string NetlinkConfig::conflicting(const RouteSpec& route, bool& ours) {
  std::string other = "another route";
  int index = indexOf(route);
  socket_.dump(
      RTM_GETROUTE, socketFamily(route.destination.address.family), [&](const nlmsghdr& m) {
        auto found = parseRoute(m);
        if (!found || ours || !sameKey(*found, route)) return;
        found->spec.device = found->device ? nameOf(found->device) : "";
        other = found->spec.toString() + " (protocol " + std::to_string(found->protocol) + ")";
        ours = found->protocol == kBraidProtocol && found->spec.via == route.via &&
               found->spec.kind == route.kind && (!route.hasDevice() || found->device == index);
      });
  return other;
}

void NetlinkConfig::deleteRoute(const RouteSpec& route) {
  int index = route.hasDevice() ? findIndex(route.device) : 0;
  if (index == 0 && route.hasDevice()) return;
  check(route.toString(), socket_.request(routeRequest(RTM_DELROUTE, route, index).header()));
}

void NetlinkConfig::removeRoute(const RouteSpec& route) {
  deleteRoute(route);
  forget(route.toString());
}

void NetlinkConfig::removeStaleRoutes(uint32_t table) {
  removeStaleRoutes(table, 1);
}

void NetlinkConfig::removeStaleRoutes(uint32_t first, uint32_t count) {
  std::vector<RouteSpec> stale;
  for (uint8_t family : {AF_INET, AF_INET6}) {
    socket_.dump(RTM_GETROUTE, family, [&](const nlmsghdr& m) {
      auto found = parseRoute(m);
      if (!found || found->spec.table - first >= count || found->protocol != kBraidProtocol) return;
      found->spec.device = found->spec.hasDevice() ? nameOf(found->device) : "";
      if (!remembers(found->spec.toString())) stale.push_back(found->spec);
    });
  }
  for (const RouteSpec& route : stale) deleteRoute(route);
}

std::vector<Prefix> NetlinkConfig::networksElsewhere(const std::string& device) {
  int own = findIndex(device);
  std::vector<Prefix> out;
  for (uint8_t family : {AF_INET, AF_INET6}) {
    socket_.dump(RTM_GETROUTE, family, [&](const nlmsghdr& m) {
      auto found = parseRoute(m);
      // Other gateways of the host have theirs in tables of their own.
      bool isMeant =
          found && (found->spec.table == kMainTable || found->protocol == kBraidProtocol);
      bool counts = isMeant && found->unicast && found->spec.destination.length > 0 &&
                    (own == 0 || found->device != own);
      if (counts) out.push_back(found->spec.destination);
    });
  }
  return out;
}

std::vector<RuleSpec> NetlinkConfig::rules() {
  std::vector<RuleSpec> out;
  for (const FoundRule& found : readRules(socket_))
    if (found.protocol == kBraidProtocol) out.push_back(found.spec);
  return out;
}

void NetlinkConfig::removeStaleRules(uint32_t priority, uint32_t table) {
  for (const RuleSpec& rule : rules()) {
    bool isMeant = rule.priority == priority && rule.table == table;
    if (isMeant && !remembers(rule.toString())) deleteRule(rule);
  }
}

void NetlinkConfig::removeStaleTables(uint32_t first, uint32_t count) {
  const std::vector<RuleSpec> all = rules();
  for (const RuleSpec& rule : all) {
    if (rule.table - first >= count || remembers(rule.toString())) continue;
    deleteRule(rule);
    RuleSpec before = rule;
    --before.priority;
    before.table = kMainTable;
    before.suppressPrefixLength = 0;
    bool isThere = std::ranges::find(all, before) != all.end();
    if (isThere && !remembers(before.toString())) deleteRule(before);
  }
  removeStaleRoutes(first, count);
}

bool NetlinkConfig::hasOtherRule(uint32_t priority, uint32_t table) {
  return std::ranges::any_of(rules(), [&](const RuleSpec& rule) {
    return rule.priority == priority && rule.table != table;
  });
}

namespace {

std::string forwardingText(Address::Family family) {
  return family == Address::Family::kV4 ? "IPv4 forwarding" : "IPv6 forwarding";
}

size_t placeOf(Address::Family family) {
  return family == Address::Family::kV6;
}

}  // namespace

void NetlinkConfig::setForwarding(Address::Family family, const std::vector<std::string>& hosts,
                                  const std::string& before) {
  std::unique_ptr<Forwarding>& own = forwarding_[placeOf(family)];
  if (!own) own = std::make_unique<Forwarding>(socket_, family, before);
  if (!own->isKnown()) return;
  makeRoom();
  own->setHosts(hosts);
  own->ensure();
  std::string text = forwardingText(family);
  if (remembers(text)) return;
  Forwarding* sysctl = own.get();
  keep({text, [sysctl] { sysctl->reclaim(); }, [sysctl] { return sysctl->ensure(); }});
}

bool NetlinkConfig::forwards(Address::Family family, const std::string& interface) {
  return Forwarding::forwards(socket_, family,
                              static_cast<int>(::if_nametoindex(interface.c_str())));
}

void NetlinkConfig::removeForwarding(Address::Family family) {
  if (Step* step = find(forwardingText(family))) {
    step->takeBack();
    forget(forwardingText(family));
  }
  forwarding_[placeOf(family)].reset();
}

std::string NetlinkConfig::forwardingBefore(Address::Family family) {
  const std::unique_ptr<Forwarding>& own = forwarding_[placeOf(family)];
  return own ? own->before() : Forwarding::found(socket_, family);
}

void NetlinkConfig::addRule(const RuleSpec& rule) {
  Step step{rule.toString(), [=, this] { deleteRule(rule); },
            [=, this] {
              return addAgain(rule.toString(),
                              socket_.request(ruleRequest(RTM_NEWRULE, rule).header()));
            },
            rule.stays};
  const std::string& text = step.text;
  makeRoom();
  NetlinkSocket::Answer answer = socket_.request(ruleRequest(RTM_NEWRULE, rule).header());
  if (answer.error == EEXIST) {
    if (!ruleIsOurs(rule)) failTaken(text, "the same rule, set by others");
  } else if (answer.error != 0) {
    fail(text, answer);
  }
  keep(std::move(step));
}

bool NetlinkConfig::ruleIsOurs(const RuleSpec& rule) {
  bool ours = false;
  RuleSpec like = rule;
  like.stays = false;  // the kernel does not know it
  socket_.dump(RTM_GETRULE, socketFamily(rule.family), [&](const nlmsghdr& m) {
    auto found = parseRule(m);
    ours |= found && found->spec == like && found->protocol == kBraidProtocol;
  });
  return ours;
}

void NetlinkConfig::deleteRule(const RuleSpec& rule) {
  check(rule.toString(), socket_.request(ruleRequest(RTM_DELRULE, rule).header()));
}

void NetlinkConfig::removeRule(const RuleSpec& rule) {
  deleteRule(rule);
  forget(rule.toString());
}

}  // namespace braid
