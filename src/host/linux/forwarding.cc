#include "host/linux/forwarding.h"

#include <fcntl.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/linux/netlink_message.h"
#include "host/system_error.h"
#include "host/unique_fd.h"

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
  if (e.code() == EOPNOTSUPP || e.code() == EAFNOSUPPORT) return {};  // a machine without the family
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

// The kernel gives every interface the new value. One that shall go on taking router advertisements must not have it:
// IPv6 forwards by the value of the whole host alone.
void Forwarding::switchOn() {
  std::map<int, bool> before = states();
  wereOn_.clear();
  for (const auto& [index, on] : before) {
    char name[IF_NAMESIZE];
    if (on && index > 0 && ::if_indextoname(static_cast<unsigned>(index), name)) wereOn_.emplace_back(name);
  }
  if (family_ == Address::Family::kV4) redirects_ = value("all/accept_redirects");
  if (int error = write("all/forwarding", "1")) {
    throw SystemError(error, "cannot switch " + sysctlOf(family_) + " on: " + std::strerror(error) +
                                 "; run 'sysctl -w " + sysctlOf(family_) +
                                 "=1' on the host, or let the service write it (braid@.service binds it to " +
                                 kServiceFolder + "; a container gets it by --sysctl)");
  }
  if (family_ == Address::Family::kV4) return;
  for (const std::string& host : hosts_) {
    if (std::find(wereOn_.begin(), wereOn_.end(), host) == wereOn_.end()) write(host + "/forwarding", "0");
  }
}

void Forwarding::switchOff() {
  if (int error = write("all/forwarding", "0"))
    throw SystemError(error, "cannot switch " + sysctlOf(family_) + " off again: " + std::strerror(error));
  for (const std::string& interface : wereOn_) write(interface + "/forwarding", "1");
  if (!redirects_.empty()) write("all/accept_redirects", redirects_);
}

}  // namespace braid
