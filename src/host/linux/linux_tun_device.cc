#include "host/linux/linux_tun_device.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "host/linux/tun_io.h"
#include "host/system.h"

namespace braid {

namespace {

constexpr const char* kTunPath = "/dev/net/tun";

std::string quoted(const std::string& name) {
  return "device '" + name + "'";
}

[[noreturn]] void failOpen(int error) {
  std::string what = std::string("cannot open ") + kTunPath + ": " + std::strerror(error);
  if (error == ENOENT || error == ENODEV || error == ENXIO) {
    what +=
        "; load the kernel module (modprobe tun) and, in a container, pass the device node through";
  } else if (error == EACCES || error == EPERM) {
    what += "; the service must be allowed to use it (DeviceAllow=/dev/net/tun rw)";
  }
  throw SystemError(error, what);
}

[[noreturn]] void failAttach(int error, TunDevice::Kind kind, const std::string& name) {
  const char* wanted = kind == TunDevice::Kind::kTun ? "TUN" : "TAP";
  std::string what = std::string("cannot create ") + wanted + " " + quoted(name) + ": ";
  switch (error) {
    case EPERM:
      what += std::string(kNetAdminRemedy);
      break;
    case EBUSY:
      what +=
          "the name is taken by a device that another process uses; stop it or choose another name";
      break;
    case EINVAL:
      what += std::string("the name is taken by an interface that is not a ") + wanted +
              " device of the same settings, or by a device that another process uses, or is no "
              "interface name; "
              "choose another name";
      break;
    default:
      what += std::strerror(error);
  }
  throw SystemError(error, what);
}

constexpr size_t kEthernetHeader = 14;

bool attach(int fd, ifreq& request, TunDevice::Kind kind, int flags) {
  request.ifr_flags =
      static_cast<short>((kind == TunDevice::Kind::kTun ? IFF_TUN : IFF_TAP) | IFF_NO_PI | flags);
  return ::ioctl(fd, TUNSETIFF, &request) == 0;
}

// From Linux 6.2 on; not in the headers of Debian 12.
constexpr unsigned kUdpSegments = 0x20 | 0x40;  // TUN_F_USO4, TUN_F_USO6

// Tells the kernel that it may pass on packets that a network card would have to segment and
// checksum. True when it will do so for UDP, too. If it refuses even for TCP, each packet is passed
// on whole, after an empty header.
bool wantSegments(int fd) {
  constexpr unsigned kTcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  int size = sizeof(VirtioHeader);
  if (::ioctl(fd, TUNSETVNETHDRSZ, &size) != 0) return false;
  if (::ioctl(fd, TUNSETOFFLOAD, kTcp | kUdpSegments) == 0) return true;
  ::ioctl(fd, TUNSETOFFLOAD, kTcp);
  return false;
}

}  // namespace

LinuxTunDevice::LinuxTunDevice(const DeviceOptions& options) : kind_(options.kind) {
  const std::string& name = options.name;
  if (name.empty() || name.size() >= IFNAMSIZ) {
    throw SystemError(EINVAL, quoted(name) + ": an interface name has 1 to 15 bytes");
  }
  name_ = name;
  hasHeader_ = options.offloads && create(IFF_VNET_HDR, options.queues);
  if (!hasHeader_ && !create(0, options.queues)) failAttach(errno, kind_, name);
  bool takesUdp = hasHeader_ && wantSegments(fd());
  if (!hasHeader_)
    ::ioctl(fd(), TUNSETOFFLOAD, 0);  // a persistent device keeps its last owner's offloads
  writer_.emplace(rawFds(), kind_ == Kind::kTap ? kEthernetHeader : 0, hasHeader_, takesUdp);
  lengthenQueues();
}

// Opens the device and its queues. A device with several queues must be a new one (IFF_TUN_EXCL):
// otherwise this process might become an additional queue of another owner's device.
bool LinuxTunDevice::create(int flags, unsigned queues) {
  fds_.clear();
  for (unsigned wanted = queues; fds_.size() < wanted;) {
    UniqueFd fd(::open(kTunPath, O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!fd && fds_.empty()) failOpen(errno);
    ifreq request{};
    name_.copy(request.ifr_name, IFNAMSIZ - 1);
    int several = wanted == 1 ? 0 : fds_.empty() ? IFF_MULTI_QUEUE | IFF_TUN_EXCL : IFF_MULTI_QUEUE;
    if (fd && attach(fd.get(), request, kind_, flags | several)) {
      name_ = request.ifr_name;
      fds_.push_back(std::move(fd));
    } else if (wanted > 1 && fds_.empty()) {
      wanted = 1;
    } else {
      break;
    }
  }
  return !fds_.empty();
}

std::vector<int> LinuxTunDevice::rawFds() const {
  std::vector<int> out;
  for (const UniqueFd& fd : fds_) out.push_back(fd.get());
  return out;
}

// Sets the length of the kernel queues. Best effort: an unprivileged owner of a prepared device may
// not change it, and keeps the kernel's 500 packets.
void LinuxTunDevice::lengthenQueues() {
  UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name_.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_qlen = kKernelQueue;
  if (control) ::ioctl(control.get(), SIOCSIFTXQLEN, &request);
}

void LinuxTunDevice::watch(Loop& loop, IoWatcher::Callback onReadable) {
  onReadable_ = std::move(onReadable);
  for (size_t i = 0; i < fds_.size(); ++i) {
    watchers_.push_back(std::make_unique<IoWatcher>(loop, fds_[i].get(), [this, i] {
      if (reader_) reader_->setReady(i);
      onReadable_();
    }));
  }
}

size_t LinuxTunDevice::read(PacketPool& pool, size_t limit, const Sink& sink) {
  if (!reader_) {
    reader_.emplace(rawFds(), kind_, hasHeader_, pool);
    if (!watchers_.empty()) reader_->setWatched();
  }
  size_t packets = reader_->read(limit, counters_, sink);
  gone_ |= reader_->gone();
  return packets;
}

}  // namespace braid
