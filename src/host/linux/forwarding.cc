#include "host/linux/forwarding.h"

#include <fcntl.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>

#include "host/linux/netlink.h"
#include "host/linux/netlink_monitor.h"
#include "host/system.h"

namespace braid {

namespace {

const char* nameOf(Address::Family family) {
  return family == Address::Family::kV4 ? "ipv4" : "ipv6";
}

std::string pathOf(const char* folder, Address::Family family, const std::string& name) {
  return std::string(folder) + "/" + nameOf(family) + "/conf/" + name;
}

std::string sysctlOf(Address::Family family) {
  return std::string("net.") + nameOf(family) + ".conf.all.forwarding";
}

std::vector<std::string> wordsOf(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

bool isOne(const std::string& value) {
  return value == "1" || value == "1\n";
}

}  // namespace

std::map<int, bool> Forwarding::states() const try {
  std::map<int, bool> out;
  socket_.dump(RTM_GETNETCONF, socketFamily(family_), [&](const nlmsghdr& m) {
    if (m.nlmsg_type != RTM_NEWNETCONF || m.nlmsg_len < mnl_nlmsg_size(sizeof(netconfmsg))) return;
    int index = 0;
    bool on = false;
    forEachAttribute(m, sizeof(netconfmsg), [&](const nlattr* a) {
      if (mnl_attr_get_payload_len(a) < sizeof(uint32_t)) return;
      if (mnl_attr_get_type(a) == NETCONFA_IFINDEX) index = static_cast<int>(mnl_attr_get_u32(a));
      if (mnl_attr_get_type(a) == NETCONFA_FORWARDING) on = mnl_attr_get_u32(a) != 0;
    });
    out[index] = on;
  });
  return out;
} catch (const SystemError& e) {
  if (e.code() == EOPNOTSUPP || e.code() == EAFNOSUPPORT)
    return {};  // a machine without the family
  throw;
}

bool Forwarding::isKnown() const {
  return states().contains(NETCONFA_IFINDEX_ALL);
}

bool Forwarding::isOn() const {
  std::map<int, bool> all = states();
  auto at = all.find(NETCONFA_IFINDEX_ALL);
  return at != all.end() && at->second;
}

bool Forwarding::forwards(NetlinkSocket& socket, Address::Family family, int index) {
  std::map<int, bool> all = Forwarding(socket, family, {}).states();
  auto at = all.find(family == Address::Family::kV4 ? index : NETCONFA_IFINDEX_ALL);
  return at != all.end() && at->second;
}

std::string Forwarding::folder() const {
  for (const char* folder : {kServiceFolder, kFolder}) {
    if (::access(pathOf(folder, family_, "all/forwarding").c_str(), F_OK) == 0) return folder;
  }
  return kFolder;
}

std::string Forwarding::value(const std::string& name) const {
  UniqueFd file(::open(pathOf(folder().c_str(), family_, name).c_str(), O_RDONLY | O_CLOEXEC));
  char text[16];
  ssize_t got = file ? ::read(file.get(), text, sizeof text) : -1;
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : std::string();
}

int Forwarding::write(const std::string& name, const std::string& value) const {
  UniqueFd file(::open(pathOf(folder().c_str(), family_, name).c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), value.data(), value.size()) < 0) return errno;
  return 0;
}

std::string Forwarding::look() const {
  std::string redirects = family_ == Address::Family::kV4 ? value("all/accept_redirects") : "";
  std::string out = redirects.empty() ? "-" : redirects.substr(0, redirects.find('\n'));
  for (const auto& [index, on] : states()) {
    char name[IF_NAMESIZE];
    if (index > 0 && ::if_indextoname(static_cast<unsigned>(index), name))
      out += std::string(on ? " " : " /") + name;
  }
  return out;
}

// A program that runs guests or another tunnel (Docker, libvirt, podman, WireGuard) makes an
// interface for that, and finds forwarding switched on already, so it does not say that it needs
// it. A network card that was plugged in says nothing. Releases before 2026-11-29 did not remember
// which interfaces there were.
bool Forwarding::isNeededByOthers() const {
  std::vector<std::string> known = wordsOf(before_);
  if (std::ranges::none_of(known, [](const std::string& word) { return word[0] == '/'; }))
    return false;
  std::set<int> ours;  // devices of gateways, which switch it on themselves
  known.insert(known.end(), hosts_.begin(), hosts_.end());
  NetworkTable table;
  socket_.dump(RTM_GETLINK, AF_UNSPEC, [&](const nlmsghdr& m) {
    applyNetlink(m, table);
    forEachAttribute(m, sizeof(ifinfomsg), [&](const nlattr* a) {
      bool isGroup = mnl_attr_get_type(a) == IFLA_GROUP && mnl_attr_validate(a, MNL_TYPE_U32) >= 0;
      if (isGroup && mnl_attr_get_u32(a) == kDeviceGroup)
        ours.insert(static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(&m))->ifi_index);
    });
  });
  return std::ranges::any_of(table.links(), [&](const auto& entry) {
    const Link& link = entry.second;
    auto isMeant = [&](std::string_view word) {
      if (word.starts_with('/')) word.remove_prefix(1);
      return word == link.name;
    };
    return !link.kind.empty() && !ours.contains(link.index) && std::ranges::none_of(known, isMeant);
  });
}

std::vector<std::string> Forwarding::forwardersIn(const std::string& before) {
  std::vector<std::string> words = wordsOf(before);
  if (!words.empty()) words.erase(words.begin());  // IPv4's accept_redirects
  std::erase_if(words, [](const std::string& word) {
    return word.find('/') != std::string::npos || word == "." || word == ".." ||
           word.size() >= IF_NAMESIZE;
  });
  return words;
}

std::string Forwarding::found(NetlinkSocket& socket, Address::Family family) {
  Forwarding now(socket, family, "");
  return now.isKnown() && !now.isOn() ? now.look() : "";
}

std::vector<std::string> Forwarding::advertised() const {
  std::vector<std::string> out;
  socket_.dump(RTM_GETROUTE, AF_INET6, [&](const nlmsghdr& m) {
    auto route = parseRoute(m);
    char name[IF_NAMESIZE];
    bool counts = route && route->protocol == RTPROT_RA && route->spec.destination.length == 0 &&
                  ::if_indextoname(static_cast<unsigned>(route->device), name);
    if (counts) out.emplace_back(name);
  });
  return out;
}

bool Forwarding::ensure() {
  bool switched = !isOn();
  if (switched) {
    before_ = look();
    switchOn();
  }
  if (before_.empty() || family_ == Address::Family::kV4) return switched;
  for (const std::string& name : takers()) stayHost(name);
  return switched;
}

std::vector<std::string> Forwarding::takers() const {
  std::vector<std::string> out = hosts_;
  out.insert(out.end(), routed_.begin(), routed_.end());
  return out;
}

// An interface that forwards ignores router advertisements (if net.ipv6.conf.*.accept_ra is 1). So
// one that must continue to accept them must have its own forwarding off. It still forwards,
// because IPv6 decides by the value of the whole host alone.
void Forwarding::stayHost(const std::string& interface) const {
  std::vector<std::string> names = forwardersIn(before_);
  bool forwarded = std::find(names.begin(), names.end(), interface) != names.end();
  if (!forwarded && isOne(value(interface + "/forwarding"))) write(interface + "/forwarding", "0");
}

// Switching on makes the kernel give every interface the new value, and remove the default routes
// from router advertisements, except on interfaces with an accept_ra of 2. So the interfaces that
// remain hosts are set to 2 meanwhile.
void Forwarding::switchOn() {
  std::vector<std::string> lifted;
  if (family_ == Address::Family::kV6) {
    routed_ = advertised();
    for (const std::string& name : takers()) {
      if (isOne(value(name + "/accept_ra")) && write(name + "/accept_ra", "2") == 0)
        lifted.push_back(name);
    }
  }
  int error = write("all/forwarding", "1");
  for (const std::string& name : lifted) write(name + "/accept_ra", "1");
  if (error == 0) return;
  before_.clear();
  throw SystemError(
      error, "cannot switch " + sysctlOf(family_) + " on: " + std::strerror(error) +
                 "; run 'sysctl -w " + sysctlOf(family_) +
                 "=1' on the host, or let the service write it (braid@.service binds it to " +
                 kServiceFolder + "; a container gets it by --sysctl)");
}

void Forwarding::reclaim() {
  std::vector<std::string> words = wordsOf(before_);
  if (words.empty() || !isOn() || isNeededByOthers()) return before_.clear();
  if (int error = write("all/forwarding", "0"))
    throw SystemError(error,
                      "cannot switch " + sysctlOf(family_) + " off again: " + std::strerror(error));
  for (const std::string& name : forwardersIn(before_)) write(name + "/forwarding", "1");
  if (words[0] != "-") write("all/accept_redirects", words[0]);
  before_.clear();
}

}  // namespace braid
