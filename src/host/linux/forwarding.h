#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/linux/netlink_socket.h"
#include "inet/endpoint.h"

namespace braid {

/// Forwarding of packets between this host's interfaces, of one family (net.ipv4.conf.all.forwarding, which is
/// net.ipv4.ip_forward, or net.ipv6.conf.all.forwarding). Netlink tells the state; the kernel lets it be changed by files
/// below /proc/sys/net only. A service whose /proc has no such files gets them in kServiceFolder (systemd/braid@.service).
class Forwarding {
 public:
  static constexpr const char* kFolder = "/proc/sys/net";
  static constexpr const char* kServiceFolder = "/run/braid-sysctl";

  /// `socket` must outlive it. `hosts`: interfaces that take router advertisements as before.
  Forwarding(NetlinkSocket& socket, Address::Family family, std::vector<std::string> hosts)
      : socket_(socket), family_(family), hosts_(std::move(hosts)) {}

  /// False also on a machine without the family.
  bool isOn() const;
  /// Whether this machine has the family at all.
  bool isKnown() const;
  /// Remembers what was there and switches it on. Throws SystemError with a remedy.
  void switchOn();
  /// Switches it off, and gives back what that changes beside. Throws SystemError.
  void switchOff();

 private:
  /// -1: the family as a whole.
  std::map<int, bool> states() const;
  std::string folder() const;
  std::string value(const std::string& name) const;
  /// errno; 0: done.
  int write(const std::string& name, const std::string& value) const;

  NetlinkSocket& socket_;
  Address::Family family_;
  std::vector<std::string> hosts_;
  std::vector<std::string> wereOn_;  ///< interfaces that forwarded before
  std::string redirects_;            ///< net.ipv4.conf.all.accept_redirects before; empty: not known
};

}  // namespace braid
