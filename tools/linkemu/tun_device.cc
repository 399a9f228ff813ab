#include "linkemu/tun_device.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace braid {

namespace {

// Packets that the kernel queues while linkemu is not scheduled: 40 ms at 300 Mbit/s.
constexpr int kTxQueueLen = 1000;

[[noreturn]] void fail(const std::string& device, const std::string& step) {
  throw std::system_error(errno, std::generic_category(), "device " + device + ": " + step);
}

/// Keeps the thread in a network namespace for the life of the object.
class NetnsScope {
 public:
  explicit NetnsScope(const std::string& netns) {
    if (netns.empty()) return;
    home_ = UniqueFd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!home_) throw std::system_error(errno, std::generic_category(), "own network namespace");
    UniqueFd target(::open(("/run/netns/" + netns).c_str(), O_RDONLY | O_CLOEXEC));
    if (!target)
      target = UniqueFd(::open(("/var/run/netns/" + netns).c_str(), O_RDONLY | O_CLOEXEC));
    if (!target || ::setns(target.get(), CLONE_NEWNET) != 0) {
      throw std::system_error(errno, std::generic_category(), "network namespace " + netns);
    }
  }
  ~NetnsScope() {
    if (home_ && ::setns(home_.get(), CLONE_NEWNET) != 0)
      std::perror("return from network namespace");
  }
  NetnsScope(const NetnsScope&) = delete;
  NetnsScope& operator=(const NetnsScope&) = delete;

 private:
  UniqueFd home_;
};

ifreq request(const std::string& device) {
  ifreq r{};
  std::strncpy(r.ifr_name, device.c_str(), IFNAMSIZ - 1);
  return r;
}

/// Without link-local addresses the kernel sends no packets itself, so packet numbers and
/// statistics count only the traffic. Where IPv6 is off nothing need be done.
void quietIpv6(const std::string& device) {
  constexpr char kNoAddress[] = "1";  // IN6_ADDR_GEN_MODE_NONE
  std::ofstream("/proc/sys/net/ipv6/conf/" + device + "/addr_gen_mode") << kNoAddress;
}

}  // namespace

UniqueFd makeTunDevice(const std::string& netns, const std::string& device, size_t mtu) {
  NetnsScope scope(netns);
  UniqueFd tun(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!tun) fail(device, "open /dev/net/tun");
  ifreq r = request(device);
  r.ifr_flags = static_cast<short>(IFF_TUN | IFF_NO_PI | IFF_TUN_EXCL);
  if (::ioctl(tun.get(), TUNSETIFF, &r) != 0) fail(device, "create");

  UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control) fail(device, "socket");
  r = request(device);
  r.ifr_mtu = static_cast<int>(mtu);
  if (::ioctl(control.get(), SIOCSIFMTU, &r) != 0) fail(device, "set MTU");
  r = request(device);
  r.ifr_qlen = kTxQueueLen;
  if (::ioctl(control.get(), SIOCSIFTXQLEN, &r) != 0) fail(device, "set txqueuelen");
  quietIpv6(device);
  r = request(device);
  if (::ioctl(control.get(), SIOCGIFFLAGS, &r) != 0) fail(device, "get flags");
  r.ifr_flags |= IFF_UP;
  if (::ioctl(control.get(), SIOCSIFFLAGS, &r) != 0) fail(device, "set up");
  return tun;
}

}  // namespace braid
