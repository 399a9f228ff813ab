// The part of NetlinkConfig that changes interfaces themselves.

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "host/linux/netlink.h"
#include "host/linux/netlink_config.h"
#include "host/system.h"

namespace braid {

namespace {

struct LinkState {
  bool on = false;
  uint32_t mtu = 0;
  uint32_t master = 0;
  uint32_t group = 0;
};

LinkState readLink(NetlinkSocket& socket, const std::string& device, int index) {
  LinkState out;
  NetlinkRequest request(RTM_GETLINK, 0);
  request.body<ifinfomsg>().ifi_index = index;
  NetlinkSocket::Answer answer = socket.request(request.header(), [&](const nlmsghdr& m) {
    if (m.nlmsg_type != RTM_NEWLINK || m.nlmsg_len < mnl_nlmsg_size(sizeof(ifinfomsg))) return;
    out.on = static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(&m))->ifi_flags & IFF_UP;
    forEachAttribute(m, sizeof(ifinfomsg), [&](const nlattr* a) {
      if (mnl_attr_get_payload_len(a) < sizeof(uint32_t)) return;
      if (mnl_attr_get_type(a) == IFLA_MTU) out.mtu = mnl_attr_get_u32(a);
      if (mnl_attr_get_type(a) == IFLA_MASTER) out.master = mnl_attr_get_u32(a);
      if (mnl_attr_get_type(a) == IFLA_GROUP) out.group = mnl_attr_get_u32(a);
    });
  });
  if (answer.error != 0)
    throw SystemError(answer.error, "cannot read the state of interface " + device + ": " +
                                        std::strerror(answer.error));
  return out;
}

}  // namespace

void NetlinkConfig::changeLink(const std::string& device, const std::string& text,
                               const FillLink& fill) {
  NetlinkRequest request(RTM_NEWLINK, 0);
  auto& body = request.body<ifinfomsg>();
  body.ifi_index = indexOf(device);
  fill(request, body);
  NetlinkSocket::Answer answer = socket_.request(request.header());
  if (answer.error == 0) return;
  std::string what = "cannot set " + text + ": ";
  what += answer.error == EPERM ? kNetAdminRemedy : std::strerror(answer.error);
  if (!answer.message.empty()) what += " (kernel: " + answer.message + ")";
  throw SystemError(answer.error, what);
}

void NetlinkConfig::takeBackLink(const std::string& device, const std::string& text,
                                 const FillLink& fill) {
  if (findIndex(device) != 0) changeLink(device, text, fill);
}

void NetlinkConfig::setLinkUp(const std::string& device) {
  struct Parts {
    bool up, group;
  };
  // A group of somebody else's stays.
  auto lacking = [=, this] {
    LinkState now = readLink(socket_, device, indexOf(device));
    return Parts{!now.on, now.group == 0};
  };
  auto set = [](Parts what, bool on) {
    return [=](NetlinkRequest& request, ifinfomsg& body) {
      if (what.up) body.ifi_change = IFF_UP;
      if (what.up && on) body.ifi_flags = IFF_UP;
      if (what.group) request.put(IFLA_GROUP, on ? kDeviceGroup : uint32_t{0});
    };
  };
  auto complete = [=, this] {
    Parts now = lacking();
    if (!now.up && !now.group) return false;
    changeLink(device, "interface " + device + " up", set(now, true));
    return true;
  };
  std::string text = device + " up";
  LinkState before = readLink(socket_, device, indexOf(device));
  // A process that was killed may have left the group.
  Parts changed{!before.on, before.group == 0 || before.group == kDeviceGroup};
  complete();
  if (remembers(text)) return;
  auto takeBack = [=, this] {
    if (changed.up || changed.group) takeBackLink(device, text, set(changed, false));
  };
  remember(text, takeBack, complete);
}

void NetlinkConfig::setMtu(const std::string& device, uint32_t mtu) {
  auto set = [](uint32_t value) {
    return [value](NetlinkRequest& r, ifinfomsg&) { r.put(IFLA_MTU, value); };
  };
  uint32_t before = readLink(socket_, device, indexOf(device)).mtu;
  auto change = [=, this] {
    if (readLink(socket_, device, indexOf(device)).mtu == mtu) return false;
    changeLink(device, "MTU " + std::to_string(mtu) + " on " + device, set(mtu));
    return true;
  };
  change();
  std::string text = device + " MTU";
  if (Step* known = find(text)) {
    known->again = change;
  } else {
    remember(
        text, [=, this] { takeBackLink(device, text, set(before)); }, change);
  }
}

void NetlinkConfig::setMaster(const std::string& device, const std::string& bridge) {
  auto set = [](uint32_t value) {
    return [value](NetlinkRequest& r, ifinfomsg&) { r.put(IFLA_MASTER, value); };
  };
  std::string text = device + " master " + bridge;
  auto join = [=, this] {
    uint32_t before = readLink(socket_, device, indexOf(device)).master;
    auto wanted = static_cast<uint32_t>(indexOf(bridge));
    if (before == wanted) return false;
    if (before != 0) {
      throw SystemError(EBUSY,
                        device + " is a port of " + nameOf(static_cast<int>(before)) + " already");
    }
    changeLink(device, text, set(wanted));
    return true;
  };
  bool joined = join();
  if (remembers(text)) return;
  auto leave = [=, this] {
    if (joined) takeBackLink(device, text, set(0));
  };
  remember(text, leave, join);
}

}  // namespace braid
