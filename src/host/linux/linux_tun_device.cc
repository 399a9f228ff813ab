#include "host/linux/linux_tun_device.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/system_error.h"

namespace braid {

namespace {

constexpr const char* kTunPath = "/dev/net/tun";

std::string quoted(const std::string& name) {
  return "device '" + name + "'";
}

[[noreturn]] void failOpen(int error) {
  std::string what = std::string("cannot open ") + kTunPath + ": " + std::strerror(error);
  if (error == ENOENT || error == ENODEV || error == ENXIO) {
    what += "; load the kernel module (modprobe tun) and, in a container, pass the device node through";
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
      what += "the name is taken by a device that another process uses; stop it or choose another name";
      break;
    case EINVAL:
      what += std::string("the name is taken by an interface that is not a ") + wanted +
              " device of the same settings, or is no interface name; choose another name";
      break;
    default:
      what += std::strerror(error);
  }
  throw SystemError(error, what);
}

}  // namespace

LinuxTunDevice::LinuxTunDevice(Kind kind, const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    throw SystemError(EINVAL, quoted(name) + ": an interface name has 1 to 15 bytes");
  }
  UniqueFd fd(::open(kTunPath, O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd) failOpen(errno);
  ifreq request{};
  std::copy(name.begin(), name.end(), request.ifr_name);
  request.ifr_flags = static_cast<short>((kind == Kind::kTun ? IFF_TUN : IFF_TAP) | IFF_NO_PI);
  if (::ioctl(fd.get(), TUNSETIFF, &request) < 0) failAttach(errno, kind, name);
  fd_ = std::move(fd);
  name_ = request.ifr_name;
  lengthenQueue();
}

// Best effort: an unprivileged owner of a prepared device may not do so, and then has the kernel's 500 packets.
void LinuxTunDevice::lengthenQueue() {
  UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name_.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_qlen = kKernelQueue;
  if (control) ::ioctl(control.get(), SIOCSIFTXQLEN, &request);
}

void LinuxTunDevice::watch(Loop& loop, IoWatcher::Callback onReadable) {
  watcher_ = std::make_unique<IoWatcher>(loop, fd(), std::move(onReadable));
}

size_t LinuxTunDevice::read(PacketPool& pool, size_t limit, const Sink& sink) {
  size_t reads = 0;
  for (; reads < limit; ++reads) {
    Packet p;
    if (!readOne(pool, p)) break;
    if (p) sink(std::move(p));
  }
  return reads;
}

bool LinuxTunDevice::readOne(PacketPool& pool, Packet& out) {
  uint8_t scratch[1];
  Packet p = pool.allocate();
  // One byte more than allowed tells a packet that fits from one that the kernel cut.
  uint8_t* where = p ? p.data() : scratch;
  size_t room = p ? pool.payload() + 1 : sizeof scratch;
  ssize_t n;
  do n = ::read(fd_.get(), where, room);
  while (n < 0 && errno == EINTR);
  if (n <= 0) {
    if (n < 0 && errno != EAGAIN) ++counters_.readErrors;
    gone_ |= n < 0 && errno == EBADFD;
    return false;
  }
  if (!p) {
    ++counters_.readNoBuffer;
  } else if (static_cast<size_t>(n) > pool.payload()) {
    ++counters_.readTooBig;
  } else {
    p.setSize(static_cast<size_t>(n));
    ++counters_.readPackets;
    counters_.readBytes += static_cast<uint64_t>(n);
    out = std::move(p);
  }
  return true;
}

bool LinuxTunDevice::write(ByteView packet) {
  ssize_t n;
  do n = ::write(fd_.get(), packet.data(), packet.size());
  while (n < 0 && errno == EINTR);
  if (n < 0) {
    ++(errno == EAGAIN || errno == ENOBUFS ? counters_.writeFull : counters_.writeErrors);
    return false;
  }
  ++counters_.writtenPackets;
  counters_.writtenBytes += packet.size();
  return true;
}

}  // namespace braid
