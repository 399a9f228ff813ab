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

  /// `socket` must outlive it. `before`: what before() told to a process that was killed, or found() to this one; not
  /// empty: forwarding is switched off in the end.
  Forwarding(NetlinkSocket& socket, Address::Family family, std::string before)
      : socket_(socket), family_(family), before_(std::move(before)) {}

  /// Whether this machine has the family at all.
  bool isKnown() const;
  /// Interfaces that take router advertisements as before, though the host forwards.
  void setHosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }
  /// Switches it on where it is off (true), and sees to it that the hosts take router advertisements. Throws
  /// SystemError with a remedy.
  bool ensure();
  /// Switches it off if this has switched it on, and gives back what that changes beside. Throws SystemError.
  void giveBack();
  /// What giveBack() gives back, as words: IPv4's accept_redirects ("-": not known), then the interfaces that forwarded
  /// before. Empty: nothing, forwarding was on.
  const std::string& before() const { return before_; }
  /// before() of a process that would switch it on now.
  static std::string found(NetlinkSocket& socket, Address::Family family);

 private:
  /// -1: the family as a whole.
  std::map<int, bool> states() const;
  bool isOn() const;
  std::string look() const;
  void switchOn();
  void stayHost(const std::string& interface) const;
  /// Interfaces through which a router advertisement gave a default route.
  std::vector<std::string> advertised() const;
  /// Interfaces that go on taking router advertisements; one may be there twice.
  std::vector<std::string> takers() const;
  std::string folder() const;
  std::string value(const std::string& name) const;
  /// errno; 0: done.
  int write(const std::string& name, const std::string& value) const;

  NetlinkSocket& socket_;
  Address::Family family_;
  std::string before_;
  std::vector<std::string> hosts_;
  std::vector<std::string> routed_;  ///< advertised() when it was switched on
};

}  // namespace braid
