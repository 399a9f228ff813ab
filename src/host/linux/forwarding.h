#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/linux/netlink.h"
#include "inet/addresses.h"

namespace braid {

/// Controls the forwarding of packets between this host's interfaces, for one address family
/// (net.ipv4.conf.all.forwarding, which is net.ipv4.ip_forward, or net.ipv6.conf.all.forwarding).
/// The state can be read by netlink, but changed only through files below /proc/sys/net. A service
/// without access to these files finds them in kServiceFolder (systemd/braid@.service).
class Forwarding {
 public:
  static constexpr const char* kFolder = "/proc/sys/net";
  static constexpr const char* kServiceFolder = "/run/braid-sysctl";

  /// `socket` must outlive this. `before`: what before() returned in a process that was killed, or
  /// what found() returned in this one. If it is not empty, forwarding is switched off in the end.
  Forwarding(NetlinkSocket& socket, Address::Family family, std::string before)
      : socket_(socket), family_(family), before_(std::move(before)) {}

  /// Whether this machine supports the family.
  bool isKnown() const;
  /// Sets the interfaces that continue to accept router advertisements although the host forwards.
  void setHosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }
  /// Switches forwarding on if it is off (then returns true), and makes sure that the interfaces of
  /// setHosts() accept router advertisements. Throws SystemError with a remedy.
  bool ensure();
  /// Switches forwarding off if this object has switched it on, and restores the settings that the
  /// kernel changes along with it. Leaves it on if another program may need it by now. Throws
  /// SystemError.
  void reclaim();
  /// The state that reclaim() restores, as words: IPv4's accept_redirects ("-": not known), then
  /// the interfaces that there were, with "/" before those that did not forward. Empty: nothing,
  /// because forwarding was on.
  const std::string& before() const { return before_; }
  /// The interfaces in such a state that forwarded. Words that no interface can be called by are
  /// left out: the state comes from a file, and the names become names of files.
  static std::vector<std::string> forwardersIn(const std::string& before);
  /// What before() would be if forwarding were switched on now.
  static std::string found(NetlinkSocket& socket, Address::Family family);
  /// Whether the host forwards packets of the family that come in by the interface with this index.
  /// The kernel goes by that interface's setting for IPv4, and by the one of "all" for IPv6. Throws
  /// SystemError.
  static bool forwards(NetlinkSocket& socket, Address::Family family, int index);

 private:
  /// The forwarding state by interface index; index -1 stands for the family as a whole.
  std::map<int, bool> states() const;
  bool isOn() const;
  std::string look() const;
  void switchOn();
  bool isNeededByOthers() const;
  void stayHost(const std::string& interface) const;
  /// Interfaces through which a router advertisement gave a default route.
  std::vector<std::string> advertised() const;
  /// Interfaces that continue to accept router advertisements; may contain duplicates.
  std::vector<std::string> takers() const;
  std::string folder() const;
  std::string value(const std::string& name) const;
  /// Returns an errno; 0: done.
  int write(const std::string& name, const std::string& value) const;

  NetlinkSocket& socket_;
  Address::Family family_;
  std::string before_;
  std::vector<std::string> hosts_;
  std::vector<std::string> routed_;  ///< advertised() at the time when forwarding was switched on
};

}  // namespace braid
